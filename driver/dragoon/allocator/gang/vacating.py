"""Which others would have to leave for a gang to fit: the least priority, then few pods.

What is answered was planned and verified with just these gone. That none of them can be kept is
certain; that no other set has fewer pods is not: two orders are tried, and the better one taken.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dragoon.allocator.gang.attempt import Case, Failed, attempt, sort_out
from dragoon.allocator.gang.changing import released, share_ids
from dragoon.allocator.gang.model import (
    STEPS,
    Amounts,
    GangAsk,
    GangPlan,
    NodeFacts,
    PlacementSnapshot,
)
from dragoon.allocator.gang.verifying import verify_plan
from dragoon.errors import InvalidInputError, UnsupportedError

TRIES: Final = 200
"""Copies of the cluster that are planned, at most."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """Pods that are of no use without each other: a gang, those that share a claim, or one pod.

    name: as people know it. priority: the highest of its pods. pods: as `namespace/name`.
    claims: which hold nothing when all of them are gone, as `namespace/name`. used: what the pods
    take of each node. counts: how many are on each node. lasting: seconds until it ends by itself,
    infinite where that is not known.
    """

    name: str
    priority: int
    pods: tuple[str, ...]
    claims: tuple[str, ...] = ()
    used: Mapping[str, Amounts] = field(default_factory=dict, compare=False)
    counts: Mapping[str, int] = field(default_factory=dict, compare=False)
    lasting: float = float("inf")


@dataclass(frozen=True, slots=True, eq=False)
class Vacated:
    """occupants: who leaves, by name. plan: where the gang goes then.

    least: each of them has to leave; False where the search was stopped before that was known.
    """

    occupants: tuple[Occupant, ...]
    plan: GangPlan
    least: bool

    @property
    def pods(self) -> tuple[str, ...]:
        """All pods that leave."""
        return tuple(pod for one in self.occupants for pod in one.pods)

    @property
    def priority(self) -> int:
        """The highest priority among them."""
        return max((one.priority for one in self.occupants), default=0)


def vacate(
    snapshot: PlacementSnapshot,
    ask: GangAsk,
    occupants: Iterable[Occupant],
    *,
    by_priority: bool = True,
    tries: int = TRIES,
    steps: int = STEPS,
) -> Vacated | None:
    """Who of these has to leave. None: not even all of them are enough, or the ask is wrong.

    by_priority: the highest priority among those that leave is as low as it can be. steps: devices
    tried for one copy. Members beyond the gang's minimum do not count.
    """
    try:
        case = replace(sort_out(ask), extra=())
    except (InvalidInputError, UnsupportedError):
        return None
    search = _Search(snapshot, case, tries, steps)
    known = sorted(occupants, key=lambda one: one.name)
    able = _of_least_priority(search, known) if by_priority else known
    found = search.plan(able)
    if found is None:
        return None
    if not able:
        return Vacated((), found, least=True)
    orders = (_densest_last(snapshot, able), _bulkiest_last(snapshot, able))
    near = _on_nodes(able, found)
    chosen = _cheapest(search, [near, *orders] if search.plan(near) else list(orders))
    final = search.plan(chosen)
    if final is None or verify_plan(left(snapshot, chosen), case.ask, final):
        return None
    ordered = tuple(sorted(chosen, key=lambda one: one.name))
    return Vacated(ordered, final, least=not search.is_stopped)


def left(snapshot: PlacementSnapshot, gone: Iterable[Occupant]) -> PlacementSnapshot:
    """The cluster when these have left: their claims hold nothing, their nodes have more room."""
    leaving = tuple(gone)
    used: defaultdict[str, Counter[str]] = defaultdict(Counter)
    pods: Counter[str] = Counter()
    for one in leaving:
        pods.update(one.counts)
        for node, amounts in one.used.items():
            used[node].update(amounts)
    claims = frozenset(claim for one in leaving for claim in one.claims)
    freed = released(snapshot, claims)
    nodes = tuple(
        _with_less(node, used[node.name], pods[node.name]) if pods[node.name] else node
        for node in freed.nodes
    )
    return replace(freed, nodes=nodes)


def _with_less(node: NodeFacts, used: Mapping[str, int], pods: int) -> NodeFacts:
    rest = {name: max(0, amount - used.get(name, 0)) for name, amount in node.used.items()}
    return replace(node, used=rest, pods=max(0, node.pods - pods))


class _Search:
    """Plans copies of the snapshot; remembers what it found, and how much it may still do."""

    def __init__(self, snapshot: PlacementSnapshot, case: Case, tries: int, steps: int) -> None:
        self._snapshot = snapshot
        self._case = case
        self._left = tries
        self._steps = steps
        self._known: dict[frozenset[str], GangPlan | None] = {}

    @property
    def is_stopped(self) -> bool:
        """Whether it has done all that it may."""
        return self._left <= 0

    def plan(self, gone: Sequence[Occupant]) -> GangPlan | None:
        """Where the gang goes when these have left; None also when the search is stopped."""
        key = frozenset(one.name for one in gone)
        if key not in self._known:
            if self.is_stopped:
                return None
            self._left -= 1
            found = attempt(left(self._snapshot, gone), self._case, self._steps, share_ids())
            self._known[key] = None if isinstance(found, Failed) else found
        return self._known[key]

    def fits(self, gone: Sequence[Occupant]) -> bool:
        """Whether there is a plan when these have left."""
        return self.plan(gone) is not None


def _of_least_priority(search: _Search, occupants: Sequence[Occupant]) -> list[Occupant]:
    """Those up to the lowest priority with which the gang fits; all where it never does."""
    levels = sorted({one.priority for one in occupants})
    low, high = 0, len(levels)
    while low < high:
        middle = (low + high) // 2
        if search.fits([one for one in occupants if one.priority <= levels[middle]]):
            high = middle
        else:
            low = middle + 1
    highest = levels[low] if low < len(levels) else None
    return [one for one in occupants if highest is None or one.priority <= highest]


def _cheapest(search: _Search, orders: Sequence[Sequence[Occupant]]) -> list[Occupant]:
    """The best of what is left when, in each of these orders, whoever can stay stays."""
    found = [_keep(search, list(order), list(order)) for order in orders]
    return min(found, key=_cost)


def _cost(leaving: Sequence[Occupant]) -> tuple[int, int, float, list[str]]:
    pods = sum(len(one.pods) for one in leaving)
    longest = max((one.lasting for one in leaving), default=0.0)
    priority = max((one.priority for one in leaving), default=0)
    return priority, pods, longest, sorted(one.name for one in leaving)


def _keep(search: _Search, run: list[Occupant], leaving: list[Occupant]) -> list[Occupant]:
    """Of those leaving whoever is left when all of the run stay that can, the first ones first."""
    if search.is_stopped:
        return leaving
    names = {one.name for one in run}
    rest = [one for one in leaving if one.name not in names]
    if not run or search.fits(rest):
        return rest
    if len(run) == 1:
        return leaving
    half = len(run) // 2
    return _keep(search, run[half:], _keep(search, run[:half], leaving))


def _bulkiest_last(
    snapshot: PlacementSnapshot, occupants: Sequence[Occupant]
) -> tuple[Occupant, ...]:
    """Those first whose leaving frees least for each pod."""
    held = _held(snapshot)
    return tuple(
        sorted(
            occupants,
            key=lambda one: (-one.priority, -_pods_per_device(one, held), -one.lasting, one.name),
        )
    )


def _densest_last(
    snapshot: PlacementSnapshot, occupants: Sequence[Occupant]
) -> tuple[Occupant, ...]:
    """Those first whose nodes are emptied at the price of most pods."""
    held = _held(snapshot)
    pods: Counter[str] = Counter()
    devices: Counter[str] = Counter()
    for one in occupants:
        pods.update(one.counts)
        for node in one.counts:
            devices[node] += sum(held[claim] for claim in one.claims)
    price = {node: pods[node] / max(1, devices[node]) for node in pods}

    def cheapest(one: Occupant) -> float:
        return min((price[node] for node in one.counts), default=0.0)

    return tuple(
        sorted(
            occupants,
            key=lambda one: (
                -one.priority,
                -cheapest(one),
                min(one.counts, default=""),
                -_pods_per_device(one, held),
                -one.lasting,
                one.name,
            ),
        )
    )


def _held(snapshot: PlacementSnapshot) -> Counter[str]:
    """How many devices each claim holds."""
    return Counter(
        hold.claim
        for usage in snapshot.cluster.usage.values()
        for holds in (*usage.exclusive.values(), *usage.shared.values())
        for hold in holds
    )


def _pods_per_device(one: Occupant, held: Mapping[str, int]) -> float:
    return len(one.pods) / max(1, sum(held.get(claim, 0) for claim in one.claims))


def _on_nodes(occupants: Sequence[Occupant], plan: GangPlan) -> list[Occupant]:
    """Those that are on the nodes of a plan, the most important first."""
    nodes = {one.node for one in plan.placements}
    there = (one for one in occupants if not nodes.isdisjoint(one.counts))
    return sorted(there, key=lambda one: (-one.priority, len(one.pods), -one.lasting, one.name))
