"""The allocator's front: raw objects in, allocations or the reason out."""

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from dragoon.allocator.amounts import CapacityError
from dragoon.allocator.claims import claim_view, node_view
from dragoon.allocator.cluster_state import ClusterState
from dragoon.allocator.explanation import lines, reason
from dragoon.allocator.findings import Explanation
from dragoon.allocator.funnel import explain
from dragoon.allocator.model import Claim, Node, Raw
from dragoon.allocator.nodes import NodeSelectorError
from dragoon.allocator.problem import (
    ATTEMPT_LIMIT,
    AllDevicesError,
    Problem,
    SearchStoppedError,
    Solution,
    TooManyDevicesError,
)
from dragoon.allocator.result import ShareIds, allocation
from dragoon.allocator.search import solve
from dragoon.allocator.selection import SelectorError
from dragoon.allocator.snapshot import Snapshot

_FAILURES: Final = (
    SelectorError,
    TooManyDevicesError,
    AllDevicesError,
    CapacityError,
    NodeSelectorError,
)
"""What ends kube-scheduler's attempt with an error."""


def random_share_id() -> str:
    """A share ID as kube-scheduler makes them: the only thing here that is random."""
    return str(uuid4())


class Kind(enum.Enum):
    """How an attempt without a result ended.

    NO_FIT: nothing fits now. FAILED: kube-scheduler's attempt ends with an error, also on other
    nodes. STOPPED: given up, so whether something fits is not known.
    """

    NO_FIT = "no-fit"
    FAILED = "failed"
    STOPPED = "stopped"


class _Case:
    """What an answer is about; the explanation is made when somebody asks for it."""

    def __init__(self, problem: Problem | None, solution: Solution | None, node: str) -> None:
        self._problem, self._solution, self._node = problem, solution, node
        self._explanation: Explanation | None = None

    @property
    def explanation(self) -> Explanation:
        if self._explanation is None:
            self._explanation = (
                Explanation(self._node)
                if self._problem is None
                else explain(self._problem, self._solution)
            )
        return self._explanation


@dataclass(frozen=True, slots=True)
class Allocated:
    """The raw status.allocation of each claim, in the claims' order, and why these devices."""

    allocations: tuple[dict[str, Any], ...]
    node: str
    _case: _Case = field(repr=False, compare=False)

    @property
    def explanation(self) -> Explanation:
        """The funnel that led to these devices."""
        return self._case.explanation

    def lines(self) -> list[str]:
        """Why these devices, as text."""
        return lines(self.explanation)


@dataclass(frozen=True, slots=True)
class Unsatisfiable:
    """No allocation: how it ended, and the funnel. node: where it was tried."""

    kind: Kind
    node: str
    _sentence: str = field(repr=False)
    _case: _Case = field(repr=False, compare=False)

    @property
    def message(self) -> str:
        """One sentence why."""
        return self._sentence or reason(self.explanation)

    @property
    def explanation(self) -> Explanation:
        """What is left after each step."""
        return self._case.explanation

    def lines(self) -> list[str]:
        """The sentence, then the funnel, as text."""
        return [self.message, *lines(self.explanation)]


Answer = Allocated | Unsatisfiable


def snapshot(
    *,
    classes: Iterable[Raw],
    slices: Iterable[Raw],
    allocated_claims: Iterable[Raw],
    taint_rules: Iterable[Raw] = (),
) -> Snapshot:
    """Reads raw DeviceClasses, DeviceTaintRules, and all ResourceSlices and ResourceClaims.

    Claims without an allocation hold nothing. Raises InvalidInputError naming object and field.
    """
    state = ClusterState()
    for raw in classes:
        state.put_class(raw)
    for raw in slices:
        state.put_slice(raw)
    for raw in taint_rules:
        state.put_rule(raw)
    for raw in allocated_claims:
        state.put_claim(raw)
    return state.snapshot()


def allocate(
    claims: Sequence[Raw],
    *,
    classes: Iterable[Raw],
    slices: Iterable[Raw],
    allocated_claims: Iterable[Raw],
    node: Raw,
    taint_rules: Iterable[Raw] = (),
    share_ids: ShareIds = random_share_id,
) -> Answer:
    """What kube-scheduler 1.37 would give the claims of one pod on one node.

    claims: those that are not allocated yet, in the pod's order; all other arguments are raw
    objects too. Nothing is written anywhere, and no allocationTimestamp is set.

    Raises InvalidInputError for an object the API server would not store, UnsupportedError for
    what is legal and Dragoon does not do; both name the object and the field.
    """
    cluster = snapshot(
        classes=classes, slices=slices, allocated_claims=allocated_claims, taint_rules=taint_rules
    )
    return allocate_on(cluster, claims, node, share_ids=share_ids)


def allocate_on(
    cluster: Snapshot,
    claims: Sequence[Raw],
    node: Raw | Node,
    *,
    attempts: int = ATTEMPT_LIMIT,
    share_ids: ShareIds = random_share_id,
) -> Answer:
    """The same as allocate, on a snapshot; gives up after that many attempts."""
    views = tuple(map(claim_view, claims))
    where = node if isinstance(node, Node) else node_view(node)
    try:
        site = cluster.site(where)
    except NodeSelectorError as error:
        return Unsatisfiable(Kind.FAILED, where.name, str(error), _Case(None, None, where.name))
    problem = Problem(views, cluster.classes, site.pools, cluster.usage, where)
    return _answer(problem, attempts, share_ids)


def allocate_over(
    cluster: Snapshot,
    claims: Sequence[Raw],
    nodes: Iterable[Raw | Node],
    *,
    attempts: int = ATTEMPT_LIMIT,
    share_ids: ShareIds = random_share_id,
) -> Iterator[Answer]:
    """The answer of each node in turn, each made when it is asked for.

    A node that is as it was when the same wish did not fit there is answered from memory.
    """
    views = tuple(map(claim_view, claims))
    misfits = cluster.memory.misfits(_wish(cluster, views))
    for one in nodes:
        node = one if isinstance(one, Node) else node_view(one)
        try:
            site = cluster.site(node)
        except NodeSelectorError as error:
            yield Unsatisfiable(Kind.FAILED, node.name, str(error), _Case(None, None, node.name))
            continue
        problem = Problem(views, cluster.classes, site.pools, cluster.usage, node)
        state = (site.serial, *(problem.usage_of(pool).serial for pool in site.pools))
        if misfits.get(node.name) == state:
            yield Unsatisfiable(Kind.NO_FIT, node.name, "", _Case(problem, None, node.name))
            continue
        answer = _answer(problem, attempts, share_ids)
        if isinstance(answer, Unsatisfiable) and answer.kind is Kind.NO_FIT:
            misfits[node.name] = state
        yield answer


def allocate_anywhere(
    cluster: Snapshot,
    claims: Sequence[Raw],
    nodes: Iterable[Raw | Node],
    *,
    attempts: int = ATTEMPT_LIMIT,
    share_ids: ShareIds = random_share_id,
) -> Answer | None:
    """The answer of the first node on which the claims fit, in the order of the nodes.

    Ends at the first node on which kube-scheduler's attempt fails, too. Where no node fits, the
    answer of the last one that is not sure (STOPPED), else of the last; None without nodes.
    """
    last: Unsatisfiable | None = None
    for answer in allocate_over(cluster, claims, nodes, attempts=attempts, share_ids=share_ids):
        if isinstance(answer, Allocated) or answer.kind is Kind.FAILED:
            return answer
        if last is None or last.kind is not Kind.STOPPED:
            last = answer
    return last


def _answer(problem: Problem, attempts: int, share_ids: ShareIds) -> Answer:
    node = problem.node.name
    try:
        solution = solve(problem, attempts=attempts)
        if solution is None:
            return Unsatisfiable(Kind.NO_FIT, node, "", _Case(problem, None, node))
        allocations = tuple(
            allocation(claim, chosen, problem.classes, problem.node, share_ids)
            for claim, chosen in zip(problem.claims, solution, strict=True)
        )
    except _FAILURES as error:
        return Unsatisfiable(Kind.FAILED, node, str(error), _Case(problem, None, node))
    except SearchStoppedError as error:
        return Unsatisfiable(Kind.STOPPED, node, str(error), _Case(problem, None, node))
    return Allocated(allocations, node, _Case(problem, solution, node))


def _wish(cluster: Snapshot, claims: Sequence[Claim]) -> Any:
    """All that decides whether claims fit on a node in a given state."""
    return tuple(
        (
            claim.requests,
            claim.constraints,
            tuple(
                cluster.classes.get(request.class_name)
                for wanted in claim.requests
                for request in wanted.alternatives
            ),
        )
        for claim in claims
    )
