"""What users learn about their claims: conditions, events, taints of cards that refused them."""

from collections.abc import Callable, Sequence
from typing import Any

from dragoon.app.supervision import Part
from dragoon.gpu.model import Inventory
from dragoon.gpu.obstacles import Obstacle
from dragoon.gpu.port import MemoryLimits, MigCards, Processes
from dragoon.kube.events import EventRecorder
from dragoon.kube.port import Api
from dragoon.prepare.blocking import Blocking
from dragoon.prepare.effects import Effects
from dragoon.prepare.journal import Entry
from dragoon.prepare.observing import Event, Observer
from dragoon.prepare.settings import PrepareSettings
from dragoon.prepare.status.watching import UsageWatch
from dragoon.prepare.status.writing import StatusWriter
from dragoon.publish.offering import Offering


class Telling:
    """An observer of prepare, and the parts that tell what it observed.

    entry_of: see StatusWriter. mig, processes and limits: of the same cards, where there are any.
    """

    def __init__(
        self,
        api: Api,
        settings: PrepareSettings,
        effects: Effects,
        *,
        entry_of: Callable[[str], Entry | None],
        recorder: EventRecorder,
        on_refusal: str,
        offering: Offering,
        mig: MigCards | None = None,
        processes: Processes | None = None,
        limits: MemoryLimits | None = None,
        observer: Observer,
    ) -> None:
        self.statuses = StatusWriter(
            api, settings, entry_of, recorder, on_refusal=on_refusal, observer=observer
        )
        self._usage = UsageWatch(
            effects, settings.paths, self.statuses.observe, limits=limits, observer=observer
        )
        self._blocking: Blocking | None = None
        if mig and processes:
            self._blocking = Blocking(mig, processes, offering.block, offering.look_again)

    def observe(self, event: Event) -> None:
        """An event of prepare."""
        self.statuses.observe(event)
        if self._blocking is not None:
            self._blocking.observe(event)

    def found(self, _: Inventory) -> None:
        """The hardware is not what it was before."""
        if self._blocking is not None:
            self._blocking.look_now()

    def parts(self) -> Sequence[Part]:
        """What has to run."""
        found = [
            Part("claim status", self.statuses.run),
            Part("use of shares", self._usage.run),
        ]
        if self._blocking is not None:
            found.append(Part("blocked cards", self._blocking.run))
        return found

    def state(self) -> Sequence[dict[str, Any]]:
        """The cards that are blocked, for /debug/state."""
        obstacles = self._blocking.obstacles if self._blocking is not None else ()
        return [_shown(one) for one in obstacles]


def _shown(one: Obstacle) -> dict[str, Any]:
    return {"card": str(one.card), "forms": sorted(one.forms), "code": one.code, "by": one.who}
