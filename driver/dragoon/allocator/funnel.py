"""Why a claim gets its devices, or why not: how many devices each step leaves, and the losers.

The funnel is made after the search and apart from it. Unlike the search it looks at every device
of the node, so that its numbers do not depend on where the search stopped.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dragoon.allocator.constraints import attribute_of
from dragoon.allocator.model import Claim, Constraint, Device, DeviceId, Node, Request, Slice
from dragoon.allocator.search import Problem, Solution
from dragoon.allocator.selection import Selection, Selector, is_on_node, selection_of
from dragoon.allocator.taints import preventing
from dragoon.allocator.usage import Usage
from dragoon.cel.values import show

_NAMED: Final = 3
"""Losers that a step names; the others are counted."""


@dataclass(frozen=True, slots=True)
class Loser:
    """A device that a step took out, and why, with values."""

    device: DeviceId
    reason: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step: how many devices are left after it, how many it took out, the first of those."""

    name: str
    left: int
    lost: int
    losers: tuple[Loser, ...]


@dataclass(frozen=True, slots=True)
class Funnel:
    """All steps of one request. total: devices of the usable pools. left: after all steps.

    chosen: what the request got, empty where there is no solution. passed_over: usable devices
    that come earlier in the order and were not taken.
    """

    claim: str
    request: str
    class_name: str
    needed: int
    total: int
    steps: tuple[Step, ...]
    left: tuple[DeviceId, ...]
    chosen: tuple[DeviceId, ...] = ()
    passed_over: tuple[Loser, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Candidates with one value of the attribute of a constraint; value in CEL's notation."""

    value: str
    devices: tuple[DeviceId, ...]


@dataclass(frozen=True, slots=True)
class GroupFinding:
    """What a matchAttribute constraint leaves of the candidates of its requests.

    groups: largest first. without: candidates that have no such attribute.
    """

    claim: str
    attribute: str
    requests: tuple[str, ...]
    needed: int
    groups: tuple[Group, ...]
    without: tuple[DeviceId, ...]

    @property
    def largest(self) -> int:
        """Devices in the largest group, 0 without groups."""
        return len(self.groups[0].devices) if self.groups else 0


@dataclass(frozen=True, slots=True)
class PoolNote:
    """A pool whose devices cannot be allocated now, and why."""

    pool: str
    problem: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything there is to say about the claims of one pod on one node."""

    node: str
    funnels: tuple[Funnel, ...] = ()
    groups: tuple[GroupFinding, ...] = ()
    pools: tuple[PoolNote, ...] = ()


_Entry = tuple[Slice, Device]
_Test = Callable[[_Entry], str]
"""Why a device is out, empty if it is not."""


def explain(problem: Problem, solution: Solution | None) -> Explanation:
    """The funnels of all requests. A selector that fails on a device takes that device out."""
    entries = [entry for pool in problem.pools if not pool.problem for entry in pool.devices()]
    funnels: list[Funnel] = []
    groups: list[GroupFinding] = []
    for index, claim in enumerate(problem.claims):
        candidates: dict[str, list[_Entry]] = {}
        of_claim: list[Funnel] = []
        for request in claim.requests:
            selection = selection_of(request, str(claim), problem.classes)
            steps, candidates[request.name] = _steps(request, selection, problem, entries)
            of_claim.append(
                Funnel(
                    str(claim),
                    request.name,
                    request.class_name,
                    request.count,
                    len(entries),
                    steps,
                    _ids(candidates[request.name]),
                )
            )
        groups += (_group(claim, constraint, candidates) for constraint in claim.constraints)
        if solution is not None:
            of_claim = [
                _with_choice(funnel, claim, solution, index, entries) for funnel in of_claim
            ]
        funnels += of_claim
    notes = tuple(PoolNote(str(pool.id), pool.problem) for pool in problem.pools if pool.problem)
    return Explanation(problem.node.name, tuple(funnels), tuple(groups), notes)


def _steps(
    request: Request, selection: Selection, problem: Problem, entries: Sequence[_Entry]
) -> tuple[tuple[Step, ...], list[_Entry]]:
    tests: tuple[tuple[str, _Test], ...] = (
        (f"class {request.class_name}", _by_selectors(selection.of_class)),
        ("selectors of the request", _by_selectors(selection.of_request)),
        ("usable on the node", _by_node(problem.node)),
        ("taints", _by_taints(request)),
        ("not in use", _by_usage(problem.usage)),
        ("can be allocated by Dragoon", _by_support),
    )
    left = list(entries)
    steps: list[Step] = []
    for name, test in tests:
        losers = [(entry, reason) for entry in left if (reason := test(entry))]
        lost = {id(entry) for entry, _ in losers}
        left = [entry for entry in left if id(entry) not in lost]
        named = tuple(Loser(device.id, reason) for (_, device), reason in losers[:_NAMED])
        steps.append(Step(name, len(left), len(losers), named))
    return tuple(steps), left


def _by_selectors(selectors: tuple[Selector, ...]) -> _Test:
    def test(entry: _Entry) -> str:
        for selector in selectors:
            trace = selector.program.explain(entry[1].view)
            if not trace.result:
                return "; ".join(map(str, trace.findings))
        return ""

    return test


def _by_node(node: Node) -> _Test:
    return lambda entry: "" if is_on_node(*entry, node) else f"not usable on node {node.name}"


def _by_taints(request: Request) -> _Test:
    def test(entry: _Entry) -> str:
        taint = preventing(entry[1], request)
        return "" if taint is None else f"taint {taint} is not tolerated"

    return test


def _by_usage(usage: Usage) -> _Test:
    def test(entry: _Entry) -> str:
        holder = usage.exclusive.get(entry[1].id)
        return "" if holder is None else f"held by claim {holder}"

    return test


def _by_support(entry: _Entry) -> str:
    field = entry[1].unsupported
    return f"Dragoon does not allocate devices with {field}" if field else ""


def _group(
    claim: Claim, constraint: Constraint, candidates: dict[str, list[_Entry]]
) -> GroupFinding:
    covered = [request for request in claim.requests if constraint.covers(request.name)]
    devices: dict[DeviceId, Device] = {
        device.id: device for request in covered for _, device in candidates[request.name]
    }
    groups: dict[str, list[DeviceId]] = {}
    without: list[DeviceId] = []
    for device in devices.values():
        value = attribute_of(device, constraint.attribute)
        if value is None or not value[0]:
            without.append(device.id)
        else:
            groups.setdefault(show(value[1]), []).append(device.id)
    largest_first = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return GroupFinding(
        str(claim),
        constraint.attribute,
        tuple(request.name for request in covered),
        sum(request.count for request in covered),
        tuple(Group(value, tuple(ids)) for value, ids in largest_first),
        tuple(without),
    )


def _with_choice(
    funnel: Funnel, claim: Claim, solution: Solution, index: int, entries: Sequence[_Entry]
) -> Funnel:
    """The funnel with the devices chosen for its request and those passed over for them."""
    chosen = [one.device for one in solution[index] if one.request.name == funnel.request]
    ids = _ids_of(chosen)
    order = [device.id for _, device in entries]
    last = max((order.index(id_) for id_ in ids), default=-1)
    usable = set(funnel.left)
    passed = [
        device for _, device in entries[:last] if device.id in usable and device.id not in ids
    ]
    losers = tuple(
        Loser(device.id, _why_passed_over(device, funnel.request, claim, solution, index))
        for device in passed
    )
    return Funnel(
        funnel.claim,
        funnel.request,
        funnel.class_name,
        funnel.needed,
        funnel.total,
        funnel.steps,
        funnel.left,
        ids,
        losers[:_NAMED],
    )


def _why_passed_over(
    device: Device, request: str, claim: Claim, solution: Solution, index: int
) -> str:
    for of_claim in solution:
        for one in of_claim:
            if one.device.id == device.id:
                return f"taken by request {one.request.name} of the same pod"
    for constraint in claim.constraints:
        if not constraint.covers(request):
            continue
        value = attribute_of(device, constraint.attribute)
        if value is None:
            return f"has no attribute {constraint.attribute}"
        for one in solution[index]:
            other = attribute_of(one.device, constraint.attribute)
            if constraint.covers(one.request.name) and other is not None and other != value:
                return f"{constraint.attribute} is {show(value[1])}, not {show(other[1])}"
    return "with it, the rest could not be placed"


def _ids(entries: Iterable[_Entry]) -> tuple[DeviceId, ...]:
    return tuple(device.id for _, device in entries)


def _ids_of(devices: Iterable[Device]) -> tuple[DeviceId, ...]:
    return tuple(device.id for device in devices)
