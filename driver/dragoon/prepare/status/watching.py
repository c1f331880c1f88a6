"""Looking at what shares use, and telling claims whose use crossed the mark."""

from collections.abc import Callable
from typing import Final

from dragoon.api.claims import ClaimRef
from dragoon.api.device_status import MEMORY_PRESSURE
from dragoon.errors import DragoonError
from dragoon.gpu.aside import Patient
from dragoon.gpu.port import MemoryLimits
from dragoon.prepare.clock import Clock, LoopClock
from dragoon.prepare.effects import Effects
from dragoon.prepare.enforcement.usage import usage
from dragoon.prepare.journal import Entry, Journal
from dragoon.prepare.observing import Complaints, Observer, ignore
from dragoon.prepare.paths import Paths
from dragoon.prepare.status.outcome import Marked
from dragoon.prepare.status.pressure import Told, Use, by_claim, crossed, marks

PAUSE_SECONDS: Final = 30.0


class UsageWatch:
    """Looks every half minute. tell: is given the marks of a claim, at every crossing.

    limits: the driver's caps, where it has them.
    """

    def __init__(
        self,
        effects: Effects,
        paths: Paths,
        tell: Callable[[Marked], None],
        *,
        limits: MemoryLimits | None = None,
        clock: Clock | None = None,
        observer: Observer = ignore,
    ) -> None:
        self._effects = effects
        self._paths = paths
        self._tell = tell
        self._limits = limits
        self._clock = clock or LoopClock()
        self._complaints = Complaints(observer)
        self._patient = Patient(PAUSE_SECONDS)
        self._told: dict[ClaimRef, Told] = {}

    async def run(self) -> None:
        """Looks for ever."""
        while True:
            await self.look()
            await self._clock.sleep(PAUSE_SECONDS)

    async def look(self) -> None:
        """Looks once. A journal that cannot be read is reported."""
        try:
            found = await self._patient.ask(self._uses)
        except DragoonError as error:
            self._complaints.are({"": f"the use of shares cannot be looked at: {error}"})
            return
        self._complaints.are({})
        self._told = {claim: told for claim, told in self._told.items() if claim in found}
        for claim, uses in found.items():
            told = crossed(uses, self._told.get(claim, Told()), self._clock.now())
            if told is not None:
                self._told[claim] = told
                self._tell(Marked(claim, MEMORY_PRESSURE, marks(uses, told)))

    def _uses(self) -> dict[ClaimRef, tuple[Use, ...]]:
        boot_id = self._effects.boot_id()
        contents = Journal(self._effects, self._paths).contents()
        entries: list[Entry] = [one for one in contents.entries if one.answered_in(boot_id)]
        return by_claim(usage(entries, self._effects, self._paths, self._limits), entries)
