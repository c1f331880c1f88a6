"""Remembering which cards claims were refused because of, until the cause is gone.

An observer of prepare. What it knows is lost with the process: the kubelet asks again for the claim
that was refused, within 90 s, and is refused again.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

import structlog

from dragoon.errors import DeviceLostError, DragoonError
from dragoon.gpu.aside import Patients
from dragoon.gpu.faults import BlockedError, PlacementTakenError
from dragoon.gpu.model import PciAddress
from dragoon.gpu.obstacles import Obstacle, Scene, stands
from dragoon.gpu.port import MigCards, Processes
from dragoon.prepare.clock import Clock, LoopClock
from dragoon.prepare.observing import Event, Finished
from dragoon.prepare.waiting import Changes

_log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 5.0
"""How long a card may take: one that hangs must not keep others blocked that are free again."""
_NEVER: Final = 3600.0
_Key = tuple[PciAddress, bool]


class Blocking:
    """Tells what stands in the way. Belongs to the loop that runs run().

    mig and processes answer what is on a card now, and block. publish is told the obstacles at
    every change, look_again that a card is not as it was thought to be.
    """

    def __init__(
        self,
        mig: MigCards,
        processes: Processes,
        publish: Callable[[tuple[Obstacle, ...]], None],
        look_again: Callable[[], None],
        *,
        clock: Clock | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._patients = Patients(patience)
        self._mig = mig
        self._processes = processes
        self._publish = publish
        self._look_again = look_again
        self._clock = clock or LoopClock()
        self._changes = Changes(self._clock)
        self._inbox: deque[Obstacle] = deque()
        self._found: dict[_Key, tuple[Obstacle, float]] = {}

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """Those that stand, as far as it is known."""
        return tuple(obstacle for obstacle, _ in self._found.values())

    def observe(self, event: Event) -> None:
        """An event of prepare: a refusal for which a card is to blame is remembered."""
        if not isinstance(event, Finished) or event.operation != "prepare":
            return
        if isinstance(event.error, PlacementTakenError):
            self._look_again()
        if isinstance(event.error, BlockedError) and event.error.obstacle is not None:
            self._inbox.append(event.error.obstacle)
            self._changes.announce()

    def look_now(self) -> None:
        """Something has changed on the hardware: what was in the way may be gone."""
        self._changes.announce()

    async def run(self) -> None:
        """Keeps looking at what is in the way until it is gone, for ever."""
        while True:
            seen = self._changes.count
            before = self.obstacles
            while self._inbox:
                obstacle = self._inbox.popleft()
                key = (obstacle.card, obstacle.needs_mig)
                self._found[key] = (obstacle, self._clock.now())
            await self._forget_what_is_gone()
            if self.obstacles != before:
                self._publish(self.obstacles)
            pause = LOOK_SECONDS if self._found else _NEVER
            await self._changes.beyond(seen, pause)

    async def _forget_what_is_gone(self) -> None:
        for key, (obstacle, since) in list(self._found.items()):
            age = self._clock.now() - since
            card = obstacle.card
            try:
                scene = await self._patients.ask(card, partial(self._look, card))
            except DeviceLostError:
                del self._found[key]  # it is published as lost
            except DragoonError as error:
                _log.info("not known whether a card is still blocked", error=str(error))
            else:
                if not stands(obstacle, scene, age):
                    del self._found[key]
                    _log.info("a card is not blocked any more", card=str(card))

    def _look(self, address: PciAddress) -> Scene:
        card = self._mig.card(address)
        return Scene(
            card is not None and card.mode.enabled,
            bool(self._mig.instances(address)),
            frozenset(one.pid for one in self._processes(address)),
        )
