"""Gangs for explain and simulate: the planner asked with what a snapshot or files show.

The controller asks the same planner; what it has promised to other gangs and not written yet is not
in a snapshot, so an answer here may be a little ahead of it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final
from uuid import UUID

from dragoon.allocator.gang import (
    ANYWHERE,
    GangAsk,
    GangPlan,
    NoRoom,
    Outcome,
    PlacementSnapshot,
    PodAsk,
    Refused,
    extended_resources,
    node_facts,
    plan,
    pod_ask,
)
from dragoon.allocator.gang.demand import Wish, mix_of, wishes_of
from dragoon.allocator.gang.mix import Mix
from dragoon.allocator.gang.model import Amounts
from dragoon.allocator.gang.reading import pod_amounts
from dragoon.allocator.model import Toleration
from dragoon.api import gang as api
from dragoon.api.gang import GangObject, Topology, gang_of
from dragoon.api.names import TAINT_GANG_ONLY
from dragoon.diagnose.cluster import Cluster
from dragoon.diagnose.manifests import Raw, mapping, text
from dragoon.diagnose.placing import Verdict
from dragoon.diagnose.pods import has_ended, named_claims_of
from dragoon.diagnose.snapshot import ClusterSnapshot, identity
from dragoon.errors import DragoonError, InvalidInputError

_SHARES: Final = 0xD4A601 << 104
"""Where made-up share IDs begin: random ones are elsewhere."""
_OURS: Final = (
    Toleration(api.TAINT, "Exists", "", ""),
    Toleration(TAINT_GANG_ONLY, "Exists", "", ""),
)
"""Taints of devices that keep others off, not gangs."""


@dataclass(frozen=True, slots=True)
class GangAnswer:
    """What the planner says, in words. plan: where all go, None where there is none.

    reasons: why not, line by line. change: what would help, planned and verified. instead: what to
    write in place of what was refused.
    """

    name: str
    verdict: Verdict
    message: str
    plan: GangPlan | None = None
    reasons: tuple[str, ...] = ()
    change: str = ""
    instead: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GangWish:
    """What a gang is to be. members: raw pods, those that are bound already among them."""

    name: str
    members: tuple[Raw, ...]
    size: int
    most: int = 0
    topology: Topology = ANYWHERE
    excluded: frozenset[str] = frozenset()


def answer(cluster: Cluster, wish: GangWish) -> GangAnswer:
    """Plans a gang in a snapshot; nothing is kept."""
    known = any(mapping(node.get("status")).get("allocatable") for node in cluster.nodes)
    notes = () if known else ("not looked at: CPU and memory, nodes do not say what they have",)
    try:
        members = tuple(_member(pod, cluster, amounts=known) for pod in wish.members)
        snapshot = _placement_snapshot(cluster, members)
    except (DragoonError, LookupError, TypeError, AttributeError, ValueError) as error:
        # The planner's records are made for what an API server has checked; a file has anything.
        return GangAnswer(wish.name, Verdict.NEVER, f"cannot be read: {error}")
    missing = [
        one for pod in wish.members for one in named_claims_of(pod, cluster.snapshot).missing
    ]
    if missing:
        return GangAnswer(wish.name, Verdict.WAIT, "; ".join(dict.fromkeys(missing)))
    ask = GangAsk(wish.name, members, wish.size, wish.most, wish.topology, wish.excluded, _OURS)
    numbers = count(1)
    outcome = plan(
        snapshot, ask, share_ids=lambda: str(UUID(int=_SHARES + next(numbers), version=4))
    )
    return replace(_told(wish.name, outcome), notes=notes)


def wish_of(gang: GangObject, snapshot: ClusterSnapshot) -> GangWish:
    """What a Gang of the cluster asks, with its living members."""
    known = snapshot.members.get(gang.key)
    members = [
        pod
        for pod in snapshot.pods
        if is_member(gang, pod) and (known is None or identity(pod)[1] in known)
    ]
    return GangWish(
        str(gang),
        tuple(members),
        gang.spec.size,
        gang.spec.max_size,
        gang.spec.topology,
        frozenset(one.node for one in gang.status.avoided),
    )


def find_gang(snapshot: ClusterSnapshot, namespace: str, name: str) -> GangObject | None:
    """A Gang of a snapshot. Raises InvalidInputError for one that cannot be read."""
    raw = snapshot.find(api.KIND, namespace, name)
    if raw is None:
        return None
    metadata = {"uid": "", **mapping(raw.get("metadata"))}
    try:
        return gang_of({**raw, "metadata": metadata})
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise InvalidInputError(f"Gang {namespace}/{name} cannot be read: {error}") from error


def is_member(gang: GangObject, pod: Raw) -> bool:
    """Whether a pod carries the gang's label, and lives."""
    metadata = mapping(pod.get("metadata"))
    if text(metadata.get("namespace")) != gang.namespace:
        return False
    if mapping(metadata.get("labels")).get(api.LABEL) != gang.group:
        return False
    return not metadata.get("deletionTimestamp") and not has_ended(pod)


def _member(pod: Raw, cluster: Cluster, *, amounts: bool) -> PodAsk:
    claims = named_claims_of(pod, cluster.snapshot)
    if claims.wrong:
        raise InvalidInputError("; ".join(claims.wrong))
    found = [_with_uid(one) for one in (*claims.allocated, *claims.pending)]
    ask = pod_ask(pod, found)
    name = "/".join(identity(pod))
    requests = ask.requests if amounts else _counted(ask, cluster)
    return replace(ask, uid=ask.uid or name, requests=requests)


def _counted(ask: PodAsk, cluster: Cluster) -> Amounts:
    """What a member asks for by number: no node needs to say that it has it."""
    counted = extended_resources(cluster.snapshot.classes)
    return {name: amount for name, amount in ask.requests.items() if name in counted}


def _with_uid(claim: Raw) -> Raw:
    """A claim of a file has no UID yet."""
    metadata = mapping(claim.get("metadata"))
    uid = text(metadata.get("uid")) or f"new:{'/'.join(identity(claim))}"
    return {**claim, "metadata": {**metadata, "uid": uid}}


def _placement_snapshot(cluster: Cluster, members: Sequence[PodAsk]) -> PlacementSnapshot:
    """The cluster as the planner sees it; members that are to be placed count nowhere."""
    moving = {(one.namespace, one.name) for one in members if not one.node}
    on: dict[str, list[Raw]] = {}
    for pod in cluster.snapshot.pods:
        node = text(mapping(pod.get("spec")).get("nodeName")) or text(
            mapping(pod.get("status")).get("nominatedNodeName")
        )
        if node and identity(pod) not in moving:
            on.setdefault(node, []).append(pod)
    nodes = tuple(node_facts(raw, on.get(identity(raw)[1], ())) for raw in cluster.nodes)
    return PlacementSnapshot(
        cluster.view,
        nodes,
        extended=extended_resources(cluster.snapshot.classes),
        mix=_mix(cluster),
    )


def _mix(cluster: Cluster) -> Mix:
    """What the pods that are there ask for; one that cannot be read asks for nothing."""
    counts: Counter[Wish] = Counter()
    for pod in cluster.snapshot.pods:
        claims = named_claims_of(pod, cluster.snapshot)
        found = (*claims.allocated, *claims.pending)
        if found and not claims.wrong:
            counts.update(wishes_of(_amounts(pod), found))
    return mix_of(counts)


def _amounts(pod: Raw) -> Amounts:
    try:
        return pod_amounts(pod)
    except InvalidInputError:
        return {}


def _told(name: str, outcome: Outcome) -> GangAnswer:
    if isinstance(outcome, GangPlan):
        nodes = len({one.node for one in outcome.placements})
        on = "1 node" if nodes == 1 else f"{nodes} nodes"
        message = f"{len(outcome.placements)} members fit on {on}"
        notes = tuple(f"not looked at on pods: {rule}" for rule in outcome.optimistic)
        return GangAnswer(name, Verdict.PLACE, message, outcome, notes=notes)
    if isinstance(outcome, NoRoom):
        verdict = Verdict.NEVER if outcome.never else Verdict.WAIT
        change = outcome.change.text if outcome.change else ""
        return GangAnswer(
            name, verdict, outcome.message, reasons=outcome.explanation, change=change
        )
    if isinstance(outcome, Refused):
        return GangAnswer(name, Verdict.NEVER, outcome.message, instead=outcome.instead)
    return GangAnswer(name, Verdict.UNKNOWN, outcome.message)


def size_from(annotations: Mapping[str, Any], members: int) -> int:
    """The size that pods ask for, all of them where they say nothing.

    Raises InvalidInputError for what is none.
    """
    written = annotations.get(api.ANNOTATION_SIZE)
    if written is None:
        return members
    size = api.members_in(str(written))
    if size is None:
        raise InvalidInputError(
            f"annotation {api.ANNOTATION_SIZE}: found {written!r}, allowed is {api.SIZES}"
        )
    return size
