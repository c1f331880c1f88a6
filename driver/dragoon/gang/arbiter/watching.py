"""The standing watch over all claims: looks at the pools that changed, acts, looks again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

import structlog

from dragoon.allocator import Snapshot
from dragoon.allocator.contention import Contention, contentions
from dragoon.allocator.model import PoolId
from dragoon.gang.arbiter.deciding import arbitrate
from dragoon.gang.arbiter.ranking import holder_of
from dragoon.gang.protocol.actions import Action, Note
from dragoon.gang.protocol.executing import ANNOTATION_GIVEN_TWICE, Executor, Written
from dragoon.gang.protocol.facts import claim_key
from dragoon.gang.protocol.model import Raw, RuleFacts
from dragoon.gang.protocol.viewing import claim_facts

_log = structlog.get_logger(__name__)


class Cluster(Protocol):
    """What the arbiter reads: the informers' copies, which belong to the event loop."""

    def snapshot(self) -> Snapshot:
        """Pools and what is held of them."""
        ...

    def claim(self, namespace: str, name: str) -> Raw | None:
        """A raw claim."""
        ...

    def pods_using(self, namespace: str, claim: str) -> Iterable[Raw]:
        """The raw pods that name a claim."""
        ...

    def rules(self) -> Iterable[RuleFacts]:
        """The rules of ours."""
        ...


class Arbiter:
    """Resolves what was given twice. seen: told of each contention, once while it lasts.

    written: takes the API server's answers into the informers' copies. note: tells people. again:
    seconds until what could not be resolved at once is looked at again.
    """

    def __init__(
        self,
        cluster: Cluster,
        executor: Executor,
        *,
        written: Callable[[Written], None],
        note: Callable[[Note], None],
        seen: Callable[[Contention], None] = lambda _found: None,
        again: float = 1.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._executor = executor
        self._written = written
        self._note = note
        self._seen = seen
        self._again = again
        self._sleep = sleep
        self._dirty: dict[PoolId, None] = {}
        self._known: frozenset[Contention] = frozenset()
        self._work = asyncio.Event()

    def claim_changed(self, old: Raw | None, new: Raw | None) -> None:
        """A claim was seen to change: its pools are looked at."""
        before, after = _held(old), _held(new)
        if before != after:
            self._dirty.update((pool, None) for pool, *_ in before ^ after)
            self._work.set()

    def pool_changed(self, pool: PoolId) -> None:
        """Slices of a pool were seen to change: so may what there is of it."""
        self._dirty[pool] = None
        self._work.set()

    async def run(self) -> None:
        """Watches until cancelled; all pools are looked at first."""
        snapshot = self._cluster.snapshot()
        self._dirty |= dict.fromkeys((*snapshot.pools, *snapshot.usage))
        self._work.set()
        while True:
            await self._work.wait()
            self._work.clear()
            if await self.look():
                await self._sleep(self._again)
                self._work.set()

    async def look(self) -> bool:
        """Looks at what changed and acts; whether anything is contended now."""
        pools = dict.fromkeys((*self._dirty, *(one.pool for one in self._known)))
        found = contentions(self._cluster.snapshot(), pools)
        self._dirty.clear()
        for one in found:
            if one not in self._known:
                _log.error(
                    "given twice", pool=str(one.pool), what=one.what, claims=list(one.claims)
                )
                self._seen(one)
        self._known = frozenset(found)
        actions = self._decide(found)
        for action in actions:
            if isinstance(action, Note):
                self._note(action)
        outcome = await self._executor.execute(actions)
        for written in outcome.written:
            self._written(written)
        for error in outcome.errors:
            _log.warning("given twice: cannot act yet", code=error.code, error=str(error))
        return bool(found)

    def _decide(self, found: tuple[Contention, ...]) -> tuple[Action, ...]:
        raw = {name: self._claim(name) for one in found for name in one.claims}
        known: Mapping[str, Raw] = {name: claim for name, claim in raw.items() if claim is not None}
        holders = {
            name: holder_of(
                claim,
                self._cluster.pods_using(*claim_key(name)),
                marked=ANNOTATION_GIVEN_TWICE,
            )
            for name, claim in known.items()
        }
        facts = {claim_key(name): claim_facts(claim) for name, claim in known.items()}
        return arbitrate(found, self._cluster.rules(), facts, holders)

    def _claim(self, label: str) -> Raw | None:
        return self._cluster.claim(*claim_key(label))


def _held(claim: Raw | None) -> set[tuple[PoolId, str, str]]:
    """Pools, devices and shares that a raw claim has."""
    allocation: Any = ((claim or {}).get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return {
        (PoolId(one["driver"], one["pool"]), one["device"], one.get("shareID") or "")
        for one in results
    }
