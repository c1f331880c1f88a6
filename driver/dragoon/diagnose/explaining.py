"""Why a claim or a pod has its devices, or waits for them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dragoon.allocator import Allocated, lines
from dragoon.api.gang import ANNOTATION_SIZE, LABEL, GangObject
from dragoon.diagnose import waiting
from dragoon.diagnose.cluster import Cluster, released
from dragoon.diagnose.codes import Check
from dragoon.diagnose.devices import GivenDevice, given, nodes_of
from dragoon.diagnose.documents import Origin
from dragoon.diagnose.gangs import GangAnswer, answer, find_gang, wish_of
from dragoon.diagnose.linting import Finding, lint
from dragoon.diagnose.manifests import Item, Manifests, Raw, listed, mapping, text
from dragoon.diagnose.near import did_you_mean
from dragoon.diagnose.node_fit import NOT_LOOKED_AT
from dragoon.diagnose.placing import Placement, Verdict, place
from dragoon.diagnose.pods import PodClaims, claims_of, has_ended, is_allocated, uses
from dragoon.diagnose.remedies import Remedies, remedies
from dragoon.diagnose.snapshot import ClusterSnapshot, identity
from dragoon.errors import DragoonError, InvalidInputError

CLAIM: Final = "ResourceClaim"
POD: Final = "Pod"
GANG: Final = "Gang"
STRANDED: Final = "stranded"
_INSTEAD: Final = (
    f"make the pod anew without a node of its own, or with the label {LABEL} and the annotation "
    f'{ANNOTATION_SIZE}: "1": then its claims are allocated for that node'
)
_DEFAULT_SCHEDULER: Final = "default-scheduler"


@dataclass(frozen=True, slots=True)
class Given:
    """A claim that has its devices. why: the allocator's reasons for just these, as text."""

    claim: str
    nodes: tuple[str, ...]
    devices: tuple[GivenDevice, ...]
    users: tuple[str, ...]
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explained:
    """The answer to `dragoon explain`.

    state: `allocated`, `stranded` for a pod that was bound past kube-scheduler and that nobody
    allocates for, or the verdict on what is not. given: claims that have devices.
    pending: names of claims that have none; placement and remedies are about them together. gang:
    what the planner says of a gang now. cause: why it waits, as a code.
    """

    kind: str
    name: str
    state: str
    message: str
    given: tuple[Given, ...] = ()
    pending: tuple[str, ...] = ()
    placement: Placement | None = None
    remedies: Remedies | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    gang: GangAnswer | None = None
    cause: Check | None = None

    @property
    def is_fine(self) -> bool:
        """Whether everything has its devices or would get them, and nothing is wrong."""
        wrong = any(one.severity == "error" for one in self.findings)
        return self.state in {"allocated", Verdict.PLACE} and not wrong


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """What is asked about: an object, the claims that decide, and the pod that uses them."""

    kind: str
    about: Raw
    claims: PodClaims
    pod: Raw | None = None
    notes: tuple[str, ...] = ()


def explain_claim(snapshot: ClusterSnapshot, namespace: str, name: str) -> Explained:
    """Explains a claim. Raises InvalidInputError where it is not there, with near names."""
    claim = _found(snapshot, CLAIM, namespace, name)
    pods = [pod for pod in snapshot.pods if uses(pod, claim)]
    cluster = Cluster(snapshot)
    if is_allocated(claim):
        return _explained(cluster, _Question(CLAIM, claim, PodClaims.of([claim])))
    waiting = next((pod for pod in pods if not has_ended(pod)), None)
    if waiting is None:
        note = "no pod uses it: a claim gets its devices when a pod that names it is scheduled"
        alone = PodClaims.of([claim])
        return _explained(cluster, _Question(CLAIM, claim, alone, notes=(note,)))
    others = claims_of(waiting, snapshot)
    note = f"with the other claims and the rules of pod {'/'.join(identity(waiting))}"
    notes = (note, *_of_pod(waiting))
    return _explained(cluster, _Question(CLAIM, claim, others, waiting, notes))


def explain_pod(snapshot: ClusterSnapshot, namespace: str, name: str) -> Explained:
    """Explains a pod. Raises InvalidInputError where it is not there, with near names."""
    pod = _found(snapshot, POD, namespace, name)
    claims = claims_of(pod, snapshot)
    return _explained(Cluster(snapshot), _Question(POD, pod, claims, pod, tuple(_of_pod(pod))))


def explain_gang(snapshot: ClusterSnapshot, namespace: str, name: str) -> Explained:
    """Explains a gang: what the controller says, and what the planner says of it now.

    Raises InvalidInputError where it is not there, with near names, or cannot be read.
    """
    _found(snapshot, GANG, namespace, name)
    gang = find_gang(snapshot, namespace, name)
    if gang is None:
        raise InvalidInputError(f"{GANG} {namespace}/{name} is not there")
    return explain_gang_in(Cluster(snapshot), gang)


def explain_gang_in(cluster: Cluster, gang: GangObject) -> Explained:
    """The same for a gang that was found, without building the cluster once more."""
    snapshot = cluster.snapshot
    status = gang.status
    told = [f"phase {status.phase.value}"] if status.phase is not None else []
    told += [f"waits for {status.waiting_for}"] if status.waiting_for else []
    told += [
        f"{one.type}={one.status} {one.reason}: {one.message}"
        for one in status.conditions
        if one.message
    ]
    left_out = (f"left out: {one}" for one in (*snapshot.missing, *cluster.problems))
    wish = wish_of(gang, snapshot)
    so_far = Explained(GANG, str(gang), "allocated", "", notes=(*told, *left_out))
    if len(wish.members) < wish.size:
        message = f"{len(wish.members)} of {wish.size} members are there"
        cause = waiting.gang_reason(Verdict.WAIT, complete=False)
        return replace(so_far, state=Verdict.WAIT.value, message=message, cause=cause)
    found = answer(cluster, wish)
    if found.plan is not None and not found.plan.placements:
        return replace(so_far, message="every member has its place")
    cause = waiting.gang_reason(found.verdict, complete=True)
    return replace(
        so_far, state=found.verdict.value, message=found.message, gang=found, cause=cause
    )


def _explained(cluster: Cluster, question: _Question) -> Explained:
    snapshot, claims, pod = cluster.snapshot, question.claims, question.pod
    left_out = (f"left out: {one}" for one in (*snapshot.missing, *cluster.problems))
    answer = Explained(
        question.kind,
        "/".join(identity(question.about)),
        "allocated",
        "has its devices" if claims.allocated else "uses no claim",
        given=tuple(_given(claim, cluster) for claim in claims.allocated),
        pending=tuple("/".join(identity(one)) for one in claims.pending),
        findings=tuple(_findings(snapshot, [question.about, *claims.pending])),
        notes=(*question.notes, *left_out),
    )
    if not claims.pending and not claims.missing:
        return answer
    placement = place(cluster, claims, pod)
    if pod is not None and _is_stranded(pod):
        node = text(mapping(pod.get("spec")).get("nodeName"))
        message = (
            f"bound to node {node} past kube-scheduler, which alone would allocate: {_INSTEAD}"
        )
        return replace(
            answer, state=STRANDED, message=message, placement=placement, cause=waiting.STRANDED
        )
    fits = placement.verdict is Verdict.PLACE
    limits = () if pod is None else (f"not looked at: {NOT_LOOKED_AT}",)
    return replace(
        answer,
        state=placement.verdict.value,
        message=placement.message,
        placement=placement,
        remedies=None if fits else remedies(cluster, claims, pod),
        notes=(*answer.notes, *limits),
        cause=waiting.reason(placement, claims, cluster.view.classes),
    )


def _found(snapshot: ClusterSnapshot, kind: str, namespace: str, name: str) -> Raw:
    raw = snapshot.find(kind, namespace, name)
    if raw is not None:
        return raw
    known = [other for space, other, _ in snapshot.named(kind) if space == namespace]
    elsewhere = [space for space, other, _ in snapshot.named(kind) if other == name]
    hint = f"it is in namespace {', '.join(sorted(elsewhere))}" if elsewhere else ""
    raise InvalidInputError(
        f"{kind} {namespace}/{name} is not there", hint=hint or did_you_mean(name, known)
    )


def _given(claim: Raw, cluster: Cluster) -> Given:
    reserved = [
        f"{text(one.get('resource'))} {text(one.get('name'))}"
        for one in map(mapping, listed(mapping(claim.get("status")).get("reservedFor")))
    ]
    return Given(
        "/".join(identity(claim)),
        nodes_of(claim),
        given(claim, cluster.snapshot),
        tuple(reserved),
        tuple(_why(claim, cluster)),
    )


def _why(claim: Raw, cluster: Cluster) -> Iterator[str]:
    """The allocator's reasons, from asking it again without this claim."""
    nodes = nodes_of(claim)
    node = next((one for one in cluster.nodes if identity(one)[1] in nodes), None)
    if node is None:
        return
    try:
        again = cluster.allocate_without([released(claim)], node, [claim])
    except DragoonError as error:
        yield f"cannot be asked again: {error}"
        return
    had = sorted((one.driver, one.pool, one.device) for one in given(claim, cluster.snapshot))
    if not isinstance(again, Allocated):
        yield f"today it would not get devices there: {again.message}"
        return
    now = mapping(again.allocations[0].get("devices")).get("results")
    would = sorted((one["driver"], one["pool"], one["device"]) for one in listed(now))
    if would != had:
        names = ", ".join(device for _, _, device in would)
        yield f"today it would get {names}: what was free has changed, or somebody else chose"
    yield from lines(again.explanation)


def _of_pod(pod: Raw) -> Iterator[str]:
    """What the pod says about its own scheduling."""
    spec, status = mapping(pod.get("spec")), mapping(pod.get("status"))
    if has_ended(pod):
        yield f"the pod has ended ({status.get('phase')})"
    node = text(spec.get("nodeName"))
    if node:
        yield f"the pod is bound to node {node}"
    gates = [text(mapping(one).get("name")) for one in listed(spec.get("schedulingGates"))]
    if gates:
        yield f"the pod is held by scheduling gates: {', '.join(gates)}"
    scheduler = text(spec.get("schedulerName"))
    if scheduler and scheduler != _DEFAULT_SCHEDULER:
        yield f"the pod is for scheduler {scheduler}, whose choices are not modelled"
    for condition in map(mapping, listed(status.get("conditions"))):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            yield f"the scheduler says: {text(condition.get('message')) or condition.get('reason')}"
    extended = mapping(status.get("extendedResourceClaimStatus"))
    if extended:
        yield f"extended resources were turned into claim {extended.get('resourceClaimName')}"


def _is_stranded(pod: Raw) -> bool:
    """Whether nobody gives a pod the devices that it lacks: it is bound, and in no gang."""
    labels = mapping(mapping(pod.get("metadata")).get("labels"))
    bound = bool(text(mapping(pod.get("spec")).get("nodeName")))
    return bound and not has_ended(pod) and LABEL not in labels


def _findings(snapshot: ClusterSnapshot, objects: Sequence[Raw]) -> Iterator[Finding]:
    """What the lints say about these objects of the cluster."""
    kinds = {CLAIM: "resource.k8s.io/v1", POD: "v1"}
    items = []
    for raw in objects:
        kind = text(raw.get("kind"))
        namespace, _ = identity(raw)
        whole: dict[str, Any] = {"apiVersion": kinds.get(kind, ""), **raw}
        items.append(Item(Origin(snapshot.source), whole, namespace))
    yield from lint(Manifests(tuple(items)), snapshot)
