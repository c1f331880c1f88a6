"""Each change is allocated on a copy of the snapshot, and verified, before it is offered."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dragoon.allocator import Allocated, Answer, Kind, Unsatisfiable
from dragoon.diagnose.cluster import Cluster
from dragoon.diagnose.manifests import Raw
from dragoon.diagnose.placing import nearest_misfits
from dragoon.diagnose.pods import PodClaims, uses
from dragoon.diagnose.remedies.candidates import changes
from dragoon.diagnose.remedies.change import Change, dotted
from dragoon.diagnose.snapshot import ClusterSnapshot, identity
from dragoon.errors import DragoonError

TRIALS: Final = 600
"""Allocations before it gives up: about a second."""
_ATTEMPTS: Final = 2_000
"""Devices tried in one allocation: some tens of milliseconds."""
_STOPPED: Final = 20
"""Allocations that one counts for which reached this limit."""
NODES: Final = 8
"""Nodes that are tried, those that come nearest to fitting first."""
OFFERED: Final = 5
"""Changes that are offered; further ones are larger."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change with which the claims fit on a node.

    claim: the claim to change; for holders that would be gone, their claims. pods: that use them.
    """

    kind: str
    claim: str
    path: str
    before: str
    after: str
    node: str
    pods: tuple[str, ...] = ()

    def __str__(self) -> str:
        used = f" (used by pod {', '.join(self.pods)})" if self.pods else ""
        words = {
            "guard": f"guard the read: {self.after}",
            "amount": f"{self.after} instead of {self.before}",
            "count": f"{self.after} instead of {self.before}",
            "toleration": f"tolerate {self.after}",
            "clause": self.after or "leave this selector out",
            "constraint": f"leave the constraint on {self.before} out",
            "class": f"class {self.after} instead of {self.before}",
            "holder": f"claim {self.claim} gone{used}",
        }[self.kind]
        place = f"claim {self.claim}, {self.path}: " if self.path else ""
        return f"{place}{words}; then it fits on node {self.node}"

    def data(self) -> dict[str, Any]:
        """For JSON and YAML."""
        return {
            "kind": self.kind,
            "claim": self.claim,
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "node": self.node,
            "pods": list(self.pods),
            "text": str(self),
        }


@dataclass(frozen=True, slots=True)
class Remedies:
    """What would help, the smallest change first. tried: changes that were tried.

    complete: of every change that was thought of it is known whether it helps.
    """

    offered: tuple[Remedy, ...] = ()
    tried: int = 0
    complete: bool = True

    def summary(self) -> str:
        """One line for people."""
        if self.offered:
            return "the smallest changes with which it fits, each tried on a copy"
        end = "" if self.complete else "; stopped at the limit"
        return f"none of the {self.tried} single changes that were tried would help{end}"


class _Budget:
    """Mutable: the trials that are left."""

    def __init__(self, trials: int) -> None:
        self._left = trials
        self.tried = 0
        self.is_sure = True

    @property
    def is_spent(self) -> bool:
        return self._left <= 0

    def charge(self, answer: Answer) -> None:
        """Counts an allocation; one that was given up leaves it open whether the change helps."""
        stopped = isinstance(answer, Unsatisfiable) and answer.kind is Kind.STOPPED
        self._left -= _STOPPED if stopped else 1
        self.is_sure &= not stopped


def remedies(
    cluster: Cluster, claims: PodClaims, pod: Raw | None = None, *, trials: int = TRIALS
) -> Remedies:
    """The smallest changes with which claims that do not fit now would fit.

    Changes are tried on the nodes that come nearest to fitting. Of changes of one kind to one
    field only the smallest is offered.
    """
    if claims.missing or claims.wrong:
        return Remedies()
    try:
        nodes = [node for node, _ in nearest_misfits(cluster, claims, pod)[:NODES]]
    except DragoonError:
        return Remedies()  # The claims cannot be read: what is wrong is said elsewhere.
    if not nodes:
        return Remedies()
    budget = _Budget(trials)
    offered = [*_to_claims(cluster, claims, nodes, budget)]
    if len(offered) < OFFERED:
        offered += _holders(cluster, claims, nodes, budget)
    return Remedies(tuple(offered), budget.tried, budget.is_sure and not budget.is_spent)


def _to_claims(
    cluster: Cluster, claims: PodClaims, nodes: Sequence[Raw], budget: _Budget
) -> Iterator[Remedy]:
    done: set[tuple[int, str, str]] = set()
    for index, change in _changes(claims.pending, _near(cluster, nodes)):
        group = (index, *change.group)
        if group in done:
            continue
        if budget.is_spent or len(done) == OFFERED:
            return
        budget.tried += 1
        changed = (*claims.pending[:index], change.claim, *claims.pending[index + 1 :])
        node = _fits(cluster, changed, nodes, budget)
        if node is not None:
            done.add(group)
            yield Remedy(
                change.kind,
                "/".join(identity(change.claim)),
                dotted(change.path),
                change.before,
                change.after,
                identity(node)[1],
            )


def _near(cluster: Cluster, nodes: Sequence[Raw]) -> ClusterSnapshot:
    """The slices of these nodes and the claims that hold devices of them."""
    slices = {identity(one): one for node in nodes for one in cluster.slices(node)}
    held = {identity(one): one for node in nodes for one in cluster.holders(node)}
    return ClusterSnapshot(
        classes=cluster.snapshot.classes,
        slices=tuple(slices.values()),
        claims=tuple(held.values()),
        taint_rules=cluster.snapshot.taint_rules,
    )


def _changes(claims: Sequence[Raw], near: ClusterSnapshot) -> list[tuple[int, Change]]:
    found = [(index, one) for index, claim in enumerate(claims) for one in changes(claim, near)]
    return sorted(found, key=lambda one: (*one[1].size[:2], one[0], *one[1].size[2:]))


def _fits(
    cluster: Cluster,
    claims: Sequence[Raw],
    nodes: Sequence[Raw],
    budget: _Budget,
    gone: Sequence[Raw] = (),
) -> Raw | None:
    """The first node on which the claims fit, by the allocator and by its verifier."""
    for node in nodes:
        if budget.is_spent:
            return None
        try:
            answer = cluster.allocate_without(claims, node, gone, attempts=_ATTEMPTS)
        except DragoonError:
            return None  # A change that makes a claim Dragoon cannot read.
        budget.charge(answer)
        if isinstance(answer, Allocated) and not cluster.verify(
            claims, answer.allocations, node, gone
        ):
            return node
    return None


def _holders(
    cluster: Cluster, claims: PodClaims, nodes: Sequence[Raw], budget: _Budget
) -> Iterator[Remedy]:
    """Claims that could go: one of them, or the fewest that are needed together on one node."""
    for node in nodes:
        for one in cluster.holders(node):
            if budget.is_spent:
                return
            budget.tried += 1
            if _fits(cluster, claims.pending, [node], budget, [one]) is not None:
                yield _gone(cluster, [one], node)
                return
    for node in nodes:
        together = _fewest(cluster, claims, node, budget)
        if together:
            yield _gone(cluster, together, node)
            return


def _fewest(cluster: Cluster, claims: PodClaims, node: Raw, budget: _Budget) -> list[Raw]:
    """Claims of which none can stay if the others go; none where even all are not enough."""
    gone = cluster.holders(node)
    if len(gone) < 2 or budget.is_spent:  # One alone has been tried.
        return []
    budget.tried += 1
    if _fits(cluster, claims.pending, [node], budget, gone) is None:
        return []
    for claim in list(gone):
        fewer = [one for one in gone if one is not claim]
        if _fits(cluster, claims.pending, [node], budget, fewer) is not None:
            gone = fewer
    return gone


def _gone(cluster: Cluster, claims: Sequence[Raw], node: Raw) -> Remedy:
    names = ", ".join("/".join(identity(one)) for one in claims)
    pods = tuple(
        "/".join(identity(pod))
        for pod in cluster.snapshot.pods
        if any(uses(pod, claim) for claim in claims)
    )
    return Remedy("holder", names, "", "", "", identity(node)[1], pods)
