"""Where claims and pods would be placed: the allocator on every node of a snapshot.

The allocator's answers are kept as data; here they are only counted, and the telling one is chosen.
"""

import enum
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dragoon.allocator import Allocated, Explanation, Kind, Unsatisfiable, lines
from dragoon.diagnose import node_fit
from dragoon.diagnose.cluster import Cluster
from dragoon.diagnose.manifests import Raw, listed, mapping
from dragoon.diagnose.pods import PodClaims
from dragoon.diagnose.snapshot import identity
from dragoon.errors import DragoonError, UnsupportedError

EXPLAINED: Final = 128
"""Nodes whose reasons are worked out, those with the most free devices first."""
_EXAMPLE: Final = "; for example "
"""What follows in a reason of the allocator differs from node to node."""


class Verdict(enum.StrEnum):
    """PLACE: fits now. WAIT: fits when others let go. NEVER: not even then. UNKNOWN: given up."""

    PLACE = "place"
    WAIT = "wait"
    NEVER = "never"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Placement:
    """What the allocator says of the claims of one pod, over all nodes.

    node: where they fit, or the node that comes nearest and that the explanation is about; empty
    where there is none. allocations: raw, in the order of the claims. fitting: nodes on which they
    fit, looked: nodes that were tried. refused: nodes that the pod may not run on, counted by
    reason. others: reasons on the other nodes that were tried, counted. failed: the allocator
    refused the claims themselves.
    """

    verdict: Verdict
    message: str
    node: str = ""
    allocations: tuple[dict[str, Any], ...] = ()
    explanation: Explanation | None = None
    fitting: int = 0
    looked: int = 0
    refused: tuple[tuple[str, int], ...] = ()
    others: tuple[tuple[str, int], ...] = ()
    failed: bool = False

    def funnel(self) -> list[str]:
        """The explanation as text."""
        return [] if self.explanation is None else lines(self.explanation)


@dataclass(slots=True)
class _Tally:
    """What was found on the nodes so far."""

    fits: list[Allocated] = field(default_factory=list)
    misfits: list[tuple[Raw, Unsatisfiable]] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


def place(
    cluster: Cluster, claims: PodClaims, pod: Raw | None = None, *, first: bool = False
) -> Placement:
    """Where the claims of a pod, or claims without a pod, would be allocated.

    first: the first node that fits is enough.
    """
    if claims.wrong:
        return Placement(Verdict.NEVER, "; ".join(claims.wrong))
    if claims.missing:
        return Placement(Verdict.WAIT, "; ".join(claims.missing))
    try:
        tally = _tried(cluster, claims, pod, first=first)
    except DragoonError as error:
        unknown = isinstance(error, UnsupportedError)
        verdict = Verdict.UNKNOWN if unknown else Verdict.NEVER
        return Placement(verdict, str(error), failed=True)
    if tally.fits:
        found = _fitting(tally)
    elif tally.misfits:
        found = _nearest(cluster, claims, tally)
    else:
        why = ", ".join(f"{reason} ({count})" for reason, count in tally.refused.most_common())
        found = Placement(Verdict.NEVER, f"no node can be used: {why or 'there is none'}")
    looked = len(tally.fits) + len(tally.misfits)
    return replace(found, looked=looked, refused=tuple(tally.refused.most_common()))


def nearest_misfits(
    cluster: Cluster, claims: PodClaims, pod: Raw | None
) -> list[tuple[Raw, Unsatisfiable]]:
    """The nodes on which the claims do not fit, those that come nearest to it first.

    Raises as the allocator does.
    """
    return _ranked(cluster, _tried(cluster, claims, pod, first=False).misfits)


def usable_nodes(cluster: Cluster, claims: PodClaims, pod: Raw | None) -> Iterator[tuple[Raw, str]]:
    """Every node with the reason why the pod may not run there, empty if it may."""
    rules = None if pod is None else node_fit.rules_of(pod)
    for node in cluster.nodes:
        reason = "" if rules is None else node_fit.refusal(rules, node)
        yield node, reason or _elsewhere(claims.allocated, node)


def _tried(cluster: Cluster, claims: PodClaims, pod: Raw | None, *, first: bool) -> _Tally:
    tally = _Tally()
    nodes: list[Raw] = []
    for node, reason in usable_nodes(cluster, claims, pod):
        if reason:
            tally.refused[reason] += 1
        else:
            nodes.append(node)
    for node, answer in zip(nodes, cluster.allocate_over(claims.pending, nodes), strict=False):
        if isinstance(answer, Unsatisfiable):
            tally.misfits.append((node, answer))
            continue
        tally.fits.append(answer)
        if first:
            break
    return tally


def _fitting(tally: _Tally) -> Placement:
    chosen = tally.fits[0]
    return Placement(
        Verdict.PLACE,
        f"fits on node {chosen.node}",
        chosen.node,
        chosen.allocations,
        chosen.explanation,
        len(tally.fits),
    )


def _nearest(cluster: Cluster, claims: PodClaims, tally: _Tally) -> Placement:
    ranked = _ranked(cluster, tally.misfits)
    _, nearest = ranked[0]
    others = Counter(one.message.partition(_EXAMPLE)[0] for _, one in ranked[1:])
    unexplained = len(tally.misfits) - len(ranked)
    if unexplained:
        others["not worked out"] = unexplained
    return Placement(
        _verdict(cluster, claims, tally.misfits),
        nearest.message,
        nearest.node,
        explanation=nearest.explanation,
        others=tuple(others.most_common()),
    )


def _elsewhere(allocated: Sequence[Raw], node: Raw) -> str:
    """Why a claim that is allocated keeps the pod from this node."""
    for claim in allocated:
        selector = mapping(mapping(claim.get("status")).get("allocation")).get("nodeSelector")
        if selector is not None and not node_fit.admits(mapping(selector), node):
            return f"claim {'/'.join(identity(claim))} has devices of another node"
    return ""


def _verdict(
    cluster: Cluster, claims: PodClaims, misfits: Sequence[tuple[Raw, Unsatisfiable]]
) -> Verdict:
    """Whether waiting helps: on some node they fit if nothing else is held there."""
    kinds = {one.kind for _, one in misfits}
    for node, misfit in misfits:
        if any(not note.problem.startswith("invalid") for note in misfit.explanation.pools):
            return Verdict.WAIT  # A pool is being updated: nobody knows yet what it will have.
        gone = cluster.holders(node)
        alone = cluster.allocate_without(claims.pending, node, gone) if gone else misfit
        if isinstance(alone, Allocated):
            return Verdict.WAIT
        kinds.add(alone.kind)
    return Verdict.UNKNOWN if Kind.STOPPED in kinds else Verdict.NEVER


def _ranked(
    cluster: Cluster, misfits: Sequence[tuple[Raw, Unsatisfiable]]
) -> list[tuple[Raw, Unsatisfiable]]:
    """The nearest first. Only that many are explained; the others are left out."""
    by_free = sorted(misfits, key=lambda one: (-_free(cluster, one[0]), identity(one[0])[1]))
    return sorted(by_free[:EXPLAINED], key=_distance)


def _free(cluster: Cluster, node: Raw) -> int:
    """Roughly how many devices of a node nobody holds."""
    slices = cluster.slices(node)
    devices = sum(len(listed(mapping(one.get("spec")).get("devices"))) for one in slices)
    return devices - len(cluster.holders(node))


def _distance(misfit: tuple[Raw, Unsatisfiable]) -> tuple[int, int, int, str]:
    node, answer = misfit
    return *answer.explanation.distance, identity(node)[1]
