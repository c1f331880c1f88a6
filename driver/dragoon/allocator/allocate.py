"""The allocator's front: raw objects in, allocations or the reason out."""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dragoon.allocator.claims import claim_view, class_view, node_view
from dragoon.allocator.explanation import lines, reason
from dragoon.allocator.funnel import Explanation, explain
from dragoon.allocator.model import DeviceClass, Raw, Slice
from dragoon.allocator.pools import pools_for
from dragoon.allocator.result import allocation
from dragoon.allocator.search import (
    ATTEMPT_LIMIT,
    Problem,
    SearchStoppedError,
    TooManyDevicesError,
    solve,
)
from dragoon.allocator.selection import SelectorError
from dragoon.allocator.slices import slice_view
from dragoon.allocator.usage import Usage, usage_of


class Kind(enum.Enum):
    """How an attempt without a result ended.

    NO_FIT: nothing fits now. FAILED: kube-scheduler's attempt ends with an error, also on other
    nodes. STOPPED: given up, so whether something fits is not known.
    """

    NO_FIT = "no-fit"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Allocated:
    """The raw status.allocation of each claim, in the claims' order, and why these devices."""

    allocations: tuple[dict[str, Any], ...]
    explanation: Explanation

    def lines(self) -> list[str]:
        """Why these devices, as text."""
        return lines(self.explanation)


@dataclass(frozen=True, slots=True)
class Unsatisfiable:
    """No allocation: how it ended, one sentence why, and the funnel."""

    kind: Kind
    message: str
    explanation: Explanation

    def lines(self) -> list[str]:
        """The sentence, then the funnel, as text."""
        return [self.message, *lines(self.explanation)]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a cluster has: the same for all pods and nodes, so it is read once."""

    classes: dict[str, DeviceClass]
    slices: tuple[Slice, ...]
    usage: Usage


def snapshot(
    *, classes: Iterable[Raw], slices: Iterable[Raw], allocated_claims: Iterable[Raw]
) -> Snapshot:
    """Reads raw DeviceClasses, all ResourceSlices of the cluster, and all ResourceClaims.

    Claims without an allocation hold nothing. Raises InvalidInputError naming object and field.
    """
    views = map(class_view, classes)
    return Snapshot(
        {view.name: view for view in views},
        tuple(map(slice_view, slices)),
        usage_of(allocated_claims),
    )


def allocate(
    claims: Sequence[Raw],
    *,
    classes: Iterable[Raw],
    slices: Iterable[Raw],
    allocated_claims: Iterable[Raw],
    node: Raw,
) -> Allocated | Unsatisfiable:
    """What kube-scheduler 1.37 would give the claims of one pod on one node.

    claims: those that are not allocated yet, in the pod's order; all other arguments are raw
    objects too. Nothing is written anywhere, and no allocationTimestamp is set.

    Raises InvalidInputError for an object the API server would not store, UnsupportedError for
    what is legal and Dragoon does not do; both name the object and the field.
    """
    cluster = snapshot(classes=classes, slices=slices, allocated_claims=allocated_claims)
    return allocate_on(cluster, claims, node)


def allocate_on(
    cluster: Snapshot, claims: Sequence[Raw], node: Raw, *, attempts: int = ATTEMPT_LIMIT
) -> Allocated | Unsatisfiable:
    """The same as allocate, on a snapshot; gives up after that many attempts."""
    where = node_view(node)
    problem = Problem(
        tuple(map(claim_view, claims)),
        cluster.classes,
        pools_for(where, cluster.slices),
        cluster.usage,
        where,
    )
    try:
        solution = solve(problem, attempts=attempts)
    except (SelectorError, TooManyDevicesError) as error:
        return Unsatisfiable(Kind.FAILED, str(error), _explained(problem))
    except SearchStoppedError as error:
        return Unsatisfiable(Kind.STOPPED, str(error), _explained(problem))
    explanation = explain(problem, solution)
    if solution is None:
        return Unsatisfiable(Kind.NO_FIT, reason(explanation), explanation)
    allocations = tuple(
        allocation(claim, chosen, cluster.classes, where)
        for claim, chosen in zip(problem.claims, solution, strict=True)
    )
    return Allocated(allocations, explanation)


def _explained(problem: Problem) -> Explanation:
    """The funnel, or only the node where a selector does not even compile."""
    try:
        return explain(problem, None)
    except SelectorError:
        return Explanation(problem.node.name)
