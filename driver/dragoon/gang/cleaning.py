"""Sweeps what outlived its gang: rules, allocations (`protocol.sweeping`)."""

import asyncio
from collections.abc import Mapping
from typing import Final

import structlog

from dragoon.allocator.model import PoolId
from dragoon.allocator.usage import UNUSED
from dragoon.gang.protocol.executing import Executor
from dragoon.gang.protocol.facts import claim_key
from dragoon.gang.protocol.model import ClaimFacts, Kind, RuleFacts
from dragoon.gang.protocol.sweeping import Leftovers, sweep
from dragoon.gang.protocol.viewing import claim_facts
from dragoon.gang.records import PodRecord
from dragoon.gang.world import World

_log = structlog.get_logger(__name__)

_EVERY_S: Final = 60.0
_PAUSE_S: Final = 0.2
"""A burst of changes is one sweep."""

ClaimKey = tuple[str, str]


class Cleaning:
    """Sweeps when rules or Gangs changed, and every minute."""

    def __init__(
        self, world: World, executor: Executor, *, every: float = _EVERY_S, pause: float = _PAUSE_S
    ) -> None:
        self._world = world
        self._executor = executor
        self._every = every
        self._pause = pause
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Something that may be swept has changed."""
        self._changed.set()

    async def run(self) -> None:
        """Sweeps until cancelled."""
        while True:
            self._changed.clear()
            await self.sweep()
            await asyncio.sleep(self._pause)
            try:
                async with asyncio.timeout(self._every):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def sweep(self) -> None:
        """Looks once; a write that fails is tried again by the next sweep."""
        actions = sweep(self._leftovers())
        if not actions:
            return
        outcome = await self._executor.execute(actions)
        for resource, written in outcome.written:
            self._world.copies.observe(resource, written)
        for error in outcome.errors:
            _log.warning("sweep failed", code=error.code, error=str(error))
        if outcome.written:
            self._changed.set()

    def _leftovers(self) -> Leftovers:
        world = self._world
        gangs = frozenset(one.uid for one in world.copies.gangs.values())
        snapshot = world.snapshot()
        rules = tuple(
            rule for rule in world.rules() if rule.kind is Kind.DAMAGE or rule.gang not in gangs
        )
        keys = {key for rule in rules for key in self._keys(rule)}
        return Leftovers(
            rules=rules,
            gangs=gangs,
            claims=self._facts(keys),
            in_use=frozenset(key for key in keys if self._is_used(key)),
            snapshot=snapshot,
            stray=self._stray(),
        )

    def _keys(self, rule: RuleFacts) -> set[ClaimKey]:
        """The claims that a rule is about, and those that hold anything of its pool."""
        usage = self._world.snapshot().usage.get(PoolId(rule.driver, rule.pool), UNUSED)
        holding = {
            claim_key(hold.claim)
            for holds in (*usage.exclusive.values(), *usage.shared.values())
            for hold in holds
        }
        return holding | {(one.namespace, one.name) for one in rule.claims}

    def _facts(self, keys: set[ClaimKey]) -> Mapping[ClaimKey, ClaimFacts]:
        found = {key: self._world.claim(*key) for key in keys}
        return {key: claim_facts(raw) for key, raw in found.items() if raw is not None}

    def _is_used(self, key: ClaimKey) -> bool:
        """Whether a living pod that we do not hold back names the claim."""
        return any(pod.is_alive and not pod.gated for pod in self._world.users(*key))

    def _stray(self) -> tuple[ClaimFacts, ...]:
        """Claims made for gated pods that have no Gang."""
        lonely = (
            pod
            for key in self._world.families()
            if not self._world.gangs_of(key)
            for pod in self._world.family(key)
            if pod.gated
        )
        return tuple(fact for pod in lonely for fact in self._own(pod))

    def _own(self, pod: PodRecord) -> tuple[ClaimFacts, ...]:
        facts = self._facts({(pod.namespace, name) for name in pod.claims})
        return tuple(one for one in facts.values() if one.made_for == pod.uid)
