"""When there is no room: whether there ever will be, and the smallest change that makes it fit.

Every change is planned on a copy of the snapshot and verified before it is offered. They are tried
from what asks least of others to what asks most; the first that fits is offered.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from dragoon.allocator.gang import changing, fit
from dragoon.allocator.gang.attempt import Case, Failed, attempt, sort_out
from dragoon.allocator.gang.model import (
    Change,
    GangAsk,
    GangPlan,
    NodeFacts,
    NoRoom,
    PlacementSnapshot,
    PodAsk,
)
from dragoon.allocator.gang.releasing import claims_to_release
from dragoon.allocator.gang.shapes import Shape
from dragoon.allocator.gang.telling import Standing, missing, standing
from dragoon.allocator.gang.verifying import verify_plan
from dragoon.allocator.model import Toleration
from dragoon.api.gang import Topology

_NAMED: Final = 8
"""Claims and nodes that a text names; the others are counted."""
_ANY_TAINT: Final = Toleration("", "Exists", "", "")
"""A taint of a device goes with what is wrong with it, or with whom it is kept for."""
_MOST_NODES: Final = 64
"""More new nodes are not offered."""


def no_room(snapshot: PlacementSnapshot, failed: Failed, steps: int) -> NoRoom:
    """The answer for a gang that does not fit. steps: devices that may be tried for advice."""
    case = failed.case
    stand = standing(snapshot, case, failed.terrain)
    lacks, told = missing(snapshot, case, failed.terrain, stand)
    fitting, wanted = stand.members(case.shapes), len(case.core)
    never = _never(snapshot, case, failed, steps)
    advice = _Advice(snapshot, case, failed, stand, steps)
    message = "each member fits, but not all of them together"
    if lacks:
        message = f"{fitting} of {wanted} members fit; {lacks[0].members[0]} lacks: {lacks[0].what}"
    return NoRoom(
        message=message,
        never=never,
        fitting=fitting,
        wanted=wanted,
        missing=lacks,
        change=advice.change(never=never),
        explanation=tuple(told),
        grows=never and advice.with_nodes() is not None,
    )


def _never(snapshot: PlacementSnapshot, case: Case, failed: Failed, steps: int) -> bool:
    """Whether it would not fit if all others were gone, and all nodes and devices were well."""
    if failed.terrain.is_settling:
        return False  # A pool is being updated: nobody knows yet what it will have.
    ask = replace(case.ask, excluded=frozenset(), tolerations=(_ANY_TAINT,))
    alone = replace(sort_out(ask), extra=())
    found = attempt(changing.emptied(snapshot), alone, steps, str)
    return isinstance(found, Failed) and found.short.sure


class _Advice:
    """Thinks of changes and tries them."""

    def __init__(
        self, snapshot: PlacementSnapshot, case: Case, failed: Failed, stand: Standing, steps: int
    ) -> None:
        self._snapshot = snapshot
        self._case = case
        self._failed = failed
        self._stand = stand
        self._steps = steps

    def change(self, *, never: bool) -> Change | None:
        """The first change with which the gang fits."""
        waiting: list[Callable[[], Change | None]] = [
            self._uncordoned,
            self._released,
            self._with_room,
        ]
        others = [self._anywhere, self._smaller, self.with_nodes]
        for attempted in others if never else [*waiting, *others]:
            found = attempted()
            if found is not None:
                return found
        return None

    def with_nodes(self) -> Change | None:
        """More nodes like the one that there is most room on."""
        shape, lacking = self._first_short()
        terrain = self._failed.terrain
        rooms = {
            one.node.name: terrain.emptied(one).room(shape, lacking)
            for one in terrain.bins(self._stand.area)
        }
        name = min(rooms, key=lambda one: (-rooms[one], one), default="")
        if not name or not rooms[name]:
            return None
        more = -(-lacking // rooms[name])
        if more > _MOST_NODES or not self._fits(
            changing.with_more_like(self._snapshot, name, more)
        ):
            return None
        nodes = "one more node" if more == 1 else f"{more} more nodes"
        return Change("nodes", f"it fits with {nodes} like {name}")

    def _plan(self, snapshot: PlacementSnapshot, ask: GangAsk | None = None) -> GangPlan | None:
        """A plan without members beyond the minimum, None where there is none."""
        wanted = ask or self._case.ask
        case = replace(sort_out(wanted), extra=())
        found = attempt(snapshot, case, self._steps, changing.share_ids())
        return None if isinstance(found, Failed) else found

    def _fits(self, snapshot: PlacementSnapshot, ask: GangAsk | None = None) -> bool:
        """Whether there is a plan that the verifier accepts."""
        wanted = ask or self._case.ask
        found = self._plan(snapshot, wanted)
        return found is not None and not verify_plan(snapshot, wanted, found)

    def _uncordoned(self) -> Change | None:
        cordoned = {one.name for one in self._snapshot.nodes if one.unschedulable}
        nodes = self._nodes_that_help(cordoned, _uncordon)
        if not nodes:
            return None
        return Change("uncordon", f"uncordon {_listed(nodes)}")

    def _released(self) -> Change | None:
        shape, lacking = self._first_short()
        claims = claims_to_release(
            self._snapshot, shape, lacking, self._failed.terrain, self._stand
        )
        if not claims or not self._fits(changing.released(self._snapshot, frozenset(claims))):
            return None
        text = f"it fits when {_listed(claims)} {'has' if len(claims) == 1 else 'have'} let go"
        return Change("release", text, claims)

    def _with_room(self) -> Change | None:
        """Devices are there, and cpu, memory or pods are not."""
        nodes = self._nodes_that_help({one.name for one in self._snapshot.nodes}, _vacated)
        if not nodes:
            return None
        text = "; ".join(
            f"node {one.name}: {_short_on(one, nodes[one.name])}"
            for one in self._snapshot.nodes
            if one.name in nodes
        )
        return Change("capacity", f"it fits with more room: {text}")

    def _anywhere(self) -> Change | None:
        levels = self._case.ask.topology.required
        ask = replace(self._case.ask, topology=Topology(preferred=levels))
        if not levels or not self._fits(self._snapshot, ask):
            return None
        names = ", ".join(one.node_label or one.attribute for one in levels)
        return Change("topology", f"it fits where {names} is preferred, not required")

    def _smaller(self) -> Change | None:
        fixed = len(self._case.fixed)
        size = fixed + self._stand.members(self._case.shapes)
        if not fixed < size < self._case.ask.minimum:
            return None
        ask = replace(self._case.ask, minimum=size)
        return (
            Change("size", f"it fits with size {size}") if self._fits(self._snapshot, ask) else None
        )

    def _first_short(self) -> tuple[Shape, int]:
        """The first shape that does not fit, and how many of its blocks are missing."""
        for shape, placed in zip(self._case.shapes, self._stand.placed, strict=True):
            if placed < len(shape.blocks):
                return shape, len(shape.blocks) - placed
        last = self._case.shapes[self._failed.short.shape]
        return last, 1

    def _nodes_that_help(
        self, names: set[str], change: Callable[[NodeFacts], NodeFacts]
    ) -> dict[str, list[PodAsk]]:
        """Nodes whose change makes the gang fit, and the members on them; none if it does not."""
        if not names:
            return {}
        found = self._plan(changing.with_nodes(self._snapshot, names, change))
        if found is None:
            return {}
        members: dict[str, list[PodAsk]] = {}
        for one in found.placements:
            members.setdefault(one.node, []).append(one.pod)
        nodes = {
            one.name: members[one.name]
            for one in self._snapshot.nodes
            if one.name in names & members.keys()
            and (one.unschedulable or _short_on(one, members[one.name]))
        }
        fits = self._fits(changing.with_nodes(self._snapshot, nodes, change))
        return nodes if fits else {}


def _uncordon(node: NodeFacts) -> NodeFacts:
    return replace(node, unschedulable=False)


def _vacated(node: NodeFacts) -> NodeFacts:
    return replace(node, used={}, pods=0)


def _short_on(node: NodeFacts, pods: Iterable[PodAsk]) -> str:
    """What a node has too little of for these members."""
    left = dict(fit.free(node))
    for pod in pods:
        left[fit.PODS] -= 1
        for name, amount in pod.requests.items():
            left[name] = left.get(name, 0) - amount
    return ", ".join(
        f"{fit.shown(name, -amount)} more {name}" for name, amount in left.items() if amount < 0
    )


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more
