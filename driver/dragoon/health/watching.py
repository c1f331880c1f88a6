"""Listens to the cards, asks them, and keeps the verdicts of this node."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from dragoon.errors import DragoonError, HardwareError, StateError
from dragoon.gpu.aside import aside
from dragoon.gpu.condition import Condition, EventKind, GpuEvent, Polled
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.gpu.port import Conditions, GpuEvents, MigCards
from dragoon.health import remembering
from dragoon.health.judging import Observed, counts, judge
from dragoon.health.keeping import Keeping
from dragoon.health.observing import Observer, Raised, Trouble, changes, ignore
from dragoon.health.port import Memory
from dragoon.health.scope import Heard
from dragoon.health.scoping import Scopes
from dragoon.health.settings import HealthSettings
from dragoon.health.verdict import Health
from dragoon.health.xids import Meaning, meaning

_T = TypeVar("_T")

_EVENTS, _CONDITIONS, _MEMORY = "events", "conditions", "memory"
_MOST_WAITING = 1024
"""A sick driver may deliver any number as an XID, and a disk that hangs keeps them from being judged."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What is listened to and asked. mig: None where cards are never divided."""

    events: GpuEvents
    conditions: Conditions
    mig: MigCards | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: between two looks for events, between two questions, before a retry.

    patience: until a driver that does not answer is told. pause: between two questions at least,
    however often a card gives reason for one.
    """

    events: float = 0.25
    conditions: float = 15.0
    retry: float = 5.0
    patience: float = 30.0
    pause: float = 1.0


@dataclass(slots=True)
class _Known:
    """What is known and not judged yet. events: each once, in the order in which they came."""

    inventory: Inventory | None = None
    conditions: Mapping[PciAddress, Condition] = field(default_factory=dict)
    unwatched: Mapping[PciAddress, str] = field(default_factory=dict)
    events: dict[GpuEvent, None] = field(default_factory=dict)

    def knows(self, event: GpuEvent) -> bool:
        """Whether it is of a card of this node, as far as that is known."""
        if self.inventory is None:
            return event.address is not None
        return event.address in {card.address for card in self.inventory.cards}

    def hear(self, events: Iterable[GpuEvent]) -> None:
        """Takes in events that count. Of one card so many that no other would make it worse."""
        waiting = Counter(event.address for event in self.events)
        for event in events:
            if event not in self.events and waiting[event.address] < _MOST_WAITING:
                self.events[event] = None
                waiting[event.address] += 1


class HealthWatch:
    """The health of the cards of this node. Belongs to the loop that runs run().

    look: asks for a new inventory. Subscribers are called on the loop when the health, or what
    keeps it from being known (`blind`), differs from before; neither they nor the observer may
    block or raise.
    """

    def __init__(
        self,
        sources: Sources,
        memory: Memory,
        *,
        settings: HealthSettings | None = None,
        look: Callable[[], None] = lambda: None,
        observer: Observer = ignore,
        pace: Pace | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._sources = sources
        self._scopes = Scopes(sources.mig)
        self._settings = settings or HealthSettings()
        self._keeping = Keeping(memory, self._settings)
        self._look = look
        self._observer = observer
        self._pace = pace or Pace()
        self._now = now
        self._known = _Known()
        self._lost: set[PciAddress | None] = set()  # since the cards were asked last
        self._health: Health = {}
        self._subscribers: list[Callable[[], None]] = []
        self._news = asyncio.Event()
        self._ask = asyncio.Event()
        self._troubles: dict[str, str] = {}
        self.checked = now()
        """The Unix time at which the driver last answered."""

    @property
    def health(self) -> Health:
        """Every card as it was judged last."""
        return self._health

    @property
    def blind(self) -> str:
        """Why nothing new is known of the cards; empty while they can be listened to."""
        return self._troubles.get(_EVENTS, "")

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Calls back whenever `health` or `blind` has changed."""
        self._subscribers.append(callback)

    async def start(self) -> None:
        """Reads what lasts, so that the first judgement has it. Call it before run()."""
        await self._recall()
        if self._known.inventory is not None:
            self.show(self._known.inventory)

    def show(self, inventory: Inventory) -> None:
        """What was found on this node; the last one counts.

        Judged at once, so that no card is offered before: a look alone is nothing to be remembered.
        """
        self._known.inventory = inventory
        # What a lost card said before does not count when it is back: it is asked anew.
        lost = {card.address for card in inventory.lost}
        said = self._known.conditions
        self._known.conditions = {card: said[card] for card in said if card not in lost}
        self._lost |= lost
        if self._keeping.recalled:
            self._conclude(self._judged(inventory))
        self._ask.set()
        self._news.set()

    async def run(self) -> None:
        """Watches until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen())
            tasks.create_task(self._question())
            tasks.create_task(self._judge())

    async def _listen(self) -> NoReturn:
        while True:
            pause = self._pace.events
            try:
                polled = await self._answered(_EVENTS, self._sources.events.poll)
            except HardwareError as error:
                self._trouble(_EVENTS, error)
                pause = self._pace.retry
            else:
                self._trouble(_EVENTS, None)
                self.checked = self._now()
                self._heard(polled)
            await asyncio.sleep(pause)

    async def _answered(self, what: str, call: Callable[[], _T]) -> _T:
        """The driver's answer, however long it takes; that it takes long is told."""
        asking = aside(call)
        done, _ = await asyncio.wait({asking}, timeout=self._pace.patience)
        if not done:
            text = f"the GPU driver has not answered for {self._pace.patience:g} s"
            self._trouble(what, HardwareError(text, retryable=True))
        return await asking

    def _heard(self, polled: Polled) -> None:
        known, grave = self._known, False
        for event, times in Counter(polled.events).items():
            text, harmless = self._meaning(event)
            grave = grave or not harmless
            self._observer(Raised(event, known.knows(event), text, times))
        known.hear(event for event in polled.events if counts(event, self._settings))
        # An application that crashes in a loop must not have the cards looked at in a loop, nor a
        # card that is known to be lost, of which the driver says so in every opening.
        if grave or (polled.lost and not (known.inventory and known.inventory.degraded)):
            self._look()
        if grave or polled.renewed:
            self._ask.set()
        if grave or polled.unwatched != known.unwatched:
            known.unwatched = polled.unwatched
            self._news.set()

    def _meaning(self, event: GpuEvent) -> tuple[str, bool]:
        """What an event means in words, and whether it says nothing about the card."""
        if event.kind is not EventKind.XID:
            return event.kind.value, False
        found = meaning(event.number, self._settings)
        return found.value, found is Meaning.APPLICATION

    async def _question(self) -> NoReturn:
        now = asyncio.get_running_loop().time
        while True:
            self._ask.clear()
            self._lost.clear()
            began = now()
            try:
                said = await self._answered(_CONDITIONS, self._sources.conditions)
            except HardwareError as error:
                self._trouble(_CONDITIONS, error)
            else:
                self._trouble(_CONDITIONS, None)
                before = self._known.conditions
                # While one card took its time, another one may have answered and then been lost.
                found = {
                    card: condition.after(before.get(card))
                    for card, condition in said.items()
                    if card not in self._lost
                }
                if found != before:
                    self._known.conditions = found
                    self._news.set()
            await _either(self._ask, self._pace.conditions)
            await asyncio.sleep(began + self._pace.pause - now())

    async def _judge(self) -> NoReturn:
        self._news.set()  # What was not judged when an earlier run died never would be.
        while True:
            await _either(self._news, self._pace.retry if _MEMORY in self._troubles else None)
            self._news.clear()
            await self._recall()
            if self._known.inventory is not None:
                await self._judge_now(self._known.inventory)

    async def _judge_now(self, inventory: Inventory) -> None:
        events = tuple(self._known.events)
        about = [await self._scopes.of(event) for event in events]
        while True:
            before = self._health
            judged = self._judged(inventory, about)
            # Before anybody is told: a process that dies now must not forget what others know.
            await self._remember(judged)
            if self._health is before:
                break
            # A look was judged meanwhile: what was concluded from it must not be lost.
            inventory = self._known.inventory or inventory
        for event in events:
            self._known.events.pop(event, None)
        self._conclude(judged)

    def _judged(self, inventory: Inventory, about: Sequence[Heard] = ()) -> Health:
        seen = Observed(inventory, self._known.conditions, about, self._known.unwatched)
        return judge(seen, self._health, self._settings, now=self._now())

    def _conclude(self, judged: Health) -> None:
        before, self._health = self._health, judged
        if judged != before:
            for change in changes(before, judged):
                self._observer(change)
            for callback in tuple(self._subscribers):
                callback()

    async def _recall(self) -> None:
        """Takes over what lasts from before this process, once it can be read."""
        if self._keeping.recalled:
            return
        try:
            self._conclude(remembering.merged(await self._keeping.recall(), self._health))
        except StateError as error:
            self._trouble(_MEMORY, error)

    async def _remember(self, health: Health) -> None:
        if not self._keeping.recalled:
            return
        try:
            await self._keeping.remember(health)
        except StateError as error:
            self._trouble(_MEMORY, error)
        else:
            self._trouble(_MEMORY, None)

    def _trouble(self, what: str, error: DragoonError | None) -> None:
        """Told when it begins, changes or ends."""
        text = str(error) if error else ""
        if text == self._troubles.get(what, ""):
            return
        if error:
            self._troubles[what] = text
        else:
            del self._troubles[what]
        self._observer(Trouble(what, error))
        if what == _EVENTS:  # `blind` has changed
            for callback in tuple(self._subscribers):
                callback()


async def _either(event: asyncio.Event, seconds: float | None) -> None:
    """Returns when the event is set, or after so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
