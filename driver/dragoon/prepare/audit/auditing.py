"""The audit of a node: looks every few seconds, judges, and tells what stands."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from dragoon.errors import DragoonError
from dragoon.gpu.aside import Patient, Patients
from dragoon.gpu.model import PciAddress
from dragoon.gpu.port import MemoryLimits, Processes
from dragoon.kube.port import Api
from dragoon.prepare.audit.judging import Finding, Key, Known, judge
from dragoon.prepare.audit.looking import Sighting, look
from dragoon.prepare.audit.pods import AuditedPod, Pods
from dragoon.prepare.clock import Clock, LoopClock
from dragoon.prepare.effects import Effects
from dragoon.prepare.enforcement.usage import usage
from dragoon.prepare.journal import Journal
from dragoon.prepare.observing import Complaints, Observer, ignore
from dragoon.prepare.settings import PrepareSettings

PAUSE_S: Final = 3.0
"""Two looks confirm a finding: so it is told within 10 s."""
PATIENCE_S: Final = 5.0
"""How long a look at one card may take: a card that hangs must not keep the others from it."""

Report = Callable[[tuple[Finding, ...]], None]
"""Is told all findings that stand, at every change; on the event loop, and must not raise."""


class Audit:
    """Finds processes that no claim allows, or that nothing limits. Changes nothing.

    cards answers the addresses of this node's cards; limits are the driver's caps, where it has
    them; proc_root is where the node's procfs is seen, with the pids of the host; patience is in
    seconds, for each card.
    """

    def __init__(
        self,
        api: Api,
        effects: Effects,
        settings: PrepareSettings,
        *,
        cards: Callable[[], Iterable[PciAddress]],
        processes: Processes,
        report: Report,
        limits: MemoryLimits | None = None,
        proc_root: Path = Path("/proc"),
        clock: Clock | None = None,
        observer: Observer = ignore,
        patience: float = PATIENCE_S,
    ) -> None:
        self._effects = effects
        self._paths = settings.paths
        self._cards = cards
        self._processes = processes
        self._report = report
        self._limits = limits
        self._proc_root = proc_root
        self._clock = clock or LoopClock()
        self._journal = Journal(effects, self._paths)
        self._pods = Pods(api, settings.node, self._clock, patience=settings.api_patience_s)
        self._complaints = Complaints(observer)
        self._patients = Patients(patience)
        # The caps of shares, of all cards at once.
        self._caps = Patient(patience)
        self._suspects: frozenset[Key] = frozenset()
        self._standing: dict[Key, Finding] = {}

    async def run(self) -> None:
        """Looks for ever."""
        while True:
            await self.look()
            await self._clock.sleep(PAUSE_S)

    async def look(self) -> tuple[Finding, ...]:
        """Looks once; returns what stands: what this look and the one before have found.

        Where nothing can be seen or known now, what stood there before still stands.
        """
        cards = tuple(self._cards())
        looks = await asyncio.gather(*map(self._look_at, cards))
        seen = [one for found in looks if isinstance(found, tuple) for one in found]
        problems = {
            card: str(found)
            for card, found in zip(cards, looks, strict=True)
            if isinstance(found, DragoonError)
        }
        found: tuple[Finding, ...] = ()
        if seen:
            try:
                found = judge(seen, await self._known(seen))
            except DragoonError as error:
                problems |= dict.fromkeys(cards, f"claims cannot be read: {error}")
        told = [f"GPU {card}: {problem}" for card, problem in problems.items()]
        told += [self._pods.problem] if self._pods.problem else []
        self._complaints.are(
            {"": f"processes cannot be audited: {'; '.join(told)}"} if told else {}
        )
        self._settle((*found, *(o for o in self._standing.values() if o.card in problems)))
        return tuple(self._standing.values())

    async def _known(self, sightings: Iterable[Sighting]) -> Known:
        pods = await self._pods.of(frozenset(one.place for one in sightings if one.place))
        return await self._caps.ask(partial(self._read, pods))

    async def _look_at(self, card: PciAddress) -> tuple[Sighting, ...] | DragoonError:
        """What is seen of a card, or why nothing is: one that does not answer costs no other."""
        call = partial(look, card, self._processes, self._effects.mig, self._proc_root)
        try:
            return await self._patients.ask(card, call)
        except DragoonError as error:
            return error

    def _read(self, pods: Mapping[str, AuditedPod]) -> Known:
        contents = self._journal.contents()
        return Known(
            contents, pods, usage(contents.entries, self._effects, self._paths, self._limits)
        )

    def _settle(self, found: Iterable[Finding]) -> None:
        now = {one.key: one for one in found}
        standing = {
            key: self._standing.get(key, one) for key, one in now.items() if key in self._suspects
        }
        self._suspects = frozenset(now)
        if standing.keys() != self._standing.keys():
            self._standing = standing
            self._report(tuple(standing.values()))
