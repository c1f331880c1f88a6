"""What is kept for gangs that wait: who still holds it, until when, and who else may use it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dragoon.allocator.contention import contentions
from dragoon.allocator.model import PoolId
from dragoon.allocator.usage import holds_of
from dragoon.api.gang import GangObject
from dragoon.api.gang_plan import PlannedClaim, stamp, unpack
from dragoon.errors import InvalidInputError
from dragoon.gang.pod_index import FamilyKey
from dragoon.gang.protocol.facts import problems_of
from dragoon.gang.protocol.model import Kind
from dragoon.gang.records import PodRecord
from dragoon.gang.waiting import durations, ranking
from dragoon.gang.waiting.backfilling import end_if_started, may_use
from dragoon.gang.world import World

_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept for one gang. holders: pods that it waits for, sorted.

    estimate: when all of them have ended, None where that is not known. orphans: claims that hold
    something of it and that no pod uses, as `namespace/name`. is_spoiled: a device of it cannot
    be used any more, or a node is gone.
    """

    gang: GangObject
    claims: tuple[PlannedClaim, ...]
    priority: int
    holders: tuple[PodRecord, ...] = ()
    orphans: tuple[str, ...] = ()
    estimate: datetime | None = None
    is_spoiled: bool = False

    def told(self) -> str:
        """In words."""
        found = self.gang.status.reservation
        nodes, since = ((), "") if found is None else (found.nodes, found.since)
        devices = sum(len(holds_of(one.allocation, one.name)) for one in self.claims)
        names = [*(f"pod {pod}" for pod in self.holders), *(f"claim {n}" for n in self.orphans)]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        who = f"waits for {', '.join(names[:_NAMED])}{more}" if names else "all are free"
        until = "" if self.estimate is None else f", until {stamp(self.estimate)} at the latest"
        where = f"{', '.join(nodes[:_NAMED])}{' and more' if len(nodes) > _NAMED else ''}"
        return f"{devices} device{'s' * (devices != 1)} on {where} since {since}; {who}{until}"


class Keeping:
    """Reads reservations out of Gangs; remembers the last one of each unpacked."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[str, tuple[str, tuple[PlannedClaim, ...]]] = {}

    def forget(self, uid: str) -> None:
        """A Gang is gone."""
        self._known.pop(uid, None)

    def kept(self, gang: GangObject, now: datetime) -> Kept | None:
        """What is kept for a gang, None where nothing is, or where it cannot be read."""
        claims = self._claims(gang)
        if gang.status.reservation is None or claims is None:
            return None
        world = self._world
        labels = self._holding(gang, claims)
        users = {label: world.users(*label.split("/", 1)) for label in labels}
        pods = {pod.uid: pod for found in users.values() for pod in found if not pod.ended}
        holders = sorted(pods.values(), key=lambda pod: pod.key)
        orphans = tuple(label for label, found in users.items() if not found)
        end = durations.latest(durations.ends(pod, world.jobs_by_uid, now) for pod in holders)
        return Kept(
            gang,
            claims,
            self.priority(gang),
            tuple(holders),
            orphans,
            None if orphans else end,
            self._is_spoiled(gang, claims),
        )

    def closed_to(
        self, own: GangObject, pods: Sequence[PodRecord], now: datetime
    ) -> Iterator[tuple[GangObject, Sequence[PlannedClaim]]]:
        """What is kept for others and this gang may not use.

        It may if it has the higher priority, if it runs already and only replaces members (who
        waits for it to end would wait for ever), or if it ends before the other one can start.
        """
        plan = own.status.plan
        if plan is not None and plan.held:
            return
        for kept in self._closed_to(ranking.priority(pods), now):
            end = end_if_started(pods, self._world.jobs_by_uid, now)
            if kept.gang.uid != own.uid and not may_use(end, kept.estimate):
                yield kept.gang, kept.claims

    def closed_to_priority(
        self, priority: int, now: datetime
    ) -> Iterator[tuple[GangObject, Sequence[PlannedClaim]]]:
        """What is kept for gangs and pods that are not there yet may not use."""
        for kept in self._closed_to(priority, now):
            yield kept.gang, kept.claims

    def _closed_to(self, priority: int, now: datetime) -> Iterator[Kept]:
        for one in self._world.copies.gangs.values():
            kept = self.kept(one, now)
            if kept is not None and priority <= kept.priority:
                yield kept

    def priority(self, gang: GangObject) -> int:
        """The priority of a gang's living pods."""
        return ranking.priority(self._world.family(FamilyKey(gang.namespace, gang.group)))

    def _claims(self, gang: GangObject) -> tuple[PlannedClaim, ...] | None:
        """What its claims would get; None for what somebody has edited: that keeps nothing."""
        found = gang.status.reservation
        if found is None:
            return None
        known = self._known.get(gang.uid)
        if known is None or known[0] != found.packed:
            try:
                claims = unpack(found.packed)
            except InvalidInputError:
                return None
            known = self._known[gang.uid] = found.packed, claims
        return known[1]

    def _holding(self, gang: GangObject, claims: Iterable[PlannedClaim]) -> tuple[str, ...]:
        """The claims of others that hold what is kept, by `namespace/name`."""
        own = {f"{gang.namespace}/{one.name}" for one in claims}
        more = [
            hold
            for one in claims
            for hold in holds_of(one.allocation, f"{gang.namespace}/{one.name}")
        ]
        found = contentions(self._world.snapshot(), {hold.pool for hold in more}, more)
        names = (name for one in found if not own.isdisjoint(one.claims) for name in one.claims)
        return tuple(sorted({name for name in names if name not in own}))

    def _is_spoiled(self, gang: GangObject, claims: Sequence[PlannedClaim]) -> bool:
        """Whether a device of it is gone or tainted, or a node is gone."""
        found = gang.status.reservation
        rules = self._world.rules()
        damaged = {PoolId(one.driver, one.pool) for one in rules if one.kind is Kind.DAMAGE}
        nodes = () if found is None else found.nodes
        problem = next(problems_of(claims, self._world.snapshot(), damaged), "")
        return bool(problem) or not self._world.node_names().issuperset(nodes)
