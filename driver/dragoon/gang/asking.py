"""What the planner is asked for a gang: its members, the cluster, and what is promised to others.

Pure but for the holder `Promises`. A plan that is journaled and not yet written holds its devices
in no claim: other gangs must see them as taken all the same, and its own new plan must not.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from dragoon.allocator import ClusterState, Snapshot
from dragoon.allocator.gang import fit
from dragoon.allocator.gang.model import GangAsk, NodeFacts, PodAsk, Slot
from dragoon.allocator.gang.reading import pod_ask
from dragoon.allocator.model import Toleration
from dragoon.api import gang
from dragoon.api.gang import GangObject
from dragoon.api.gang_plan import HeldMember, Plan, PlannedClaim, Step
from dragoon.api.names import TAINT_GANG_ONLY
from dragoon.errors import InvalidInputError
from dragoon.gang.protocol.actions import RequestPlan
from dragoon.gang.protocol.model import Member, Ref
from dragoon.gang.protocol.returning import places
from dragoon.gang.records import PodRecord, Raw

Lookup = Callable[[str, str], Raw | None]
_GANG_ONLY: Final = Toleration(TAINT_GANG_ONLY, "Exists", "", "")
_VALUE: Final = 63
"""Characters of a gang's name that fit into the value of its taint."""
_WRITTEN: Final = frozenset((Step.RELEASE,))


@dataclass(frozen=True, slots=True)
class Scene:
    """A gang that asks. pods: its records by UID. members: as the protocol sees them."""

    gang: GangObject
    plan: Plan | None
    pods: Mapping[str, PodRecord]
    members: Sequence[Member]
    claims: Lookup


def gang_ref(one: GangObject) -> Ref:
    """The Gang as a write names it."""
    return Ref(one.namespace, one.name, one.uid, one.version)


def gang_ask(
    scene: Scene, request: RequestPlan, *, others: Iterable[GangObject], now: datetime
) -> GangAsk:
    """The ask for the pods of a request, beside the members that are placed already.

    others: all other Gangs; the fences of one that waits for successors are respected.
    Raises InvalidInputError for an amount that cannot be read.
    """
    held = scene.plan.held if scene.plan is not None else ()
    asked = set(request.pods)
    places = _places(scene)
    members = [
        pod_ask(
            _raw(scene.pods[uid]),
            _claims(scene, scene.pods[uid], released=request.spare),
            slot=places.get(uid),
        )
        for uid in request.pods
        if uid in scene.pods
    ]
    members += _placed(scene, held, asked)
    others = tuple(others)
    excluded = {
        *_excluded(scene, held, asked if request.spare else set(), now),
        *kept_by_namesakes(scene.gang.uid, scene.gang.name, others),
    }
    return GangAsk(
        name=str(scene.gang),
        members=tuple(members),
        minimum=len(members),
        topology=scene.gang.spec.topology,
        excluded=frozenset(excluded),
        tolerations=tuple(open_to(scene.gang.uid, scene.gang.name, others)),
    )


def _placed(scene: Scene, held: Iterable[HeldMember], asked: set[str]) -> Iterator[PodAsk]:
    """Living members of earlier rounds: where they are counts for the topology."""
    for one in held:
        pod = scene.pods.get(one.uid)
        if pod is not None and pod.is_alive and one.uid not in asked:
            yield pod_ask(_raw(pod), _claims(scene, pod), node=pod.node or one.node)


def _claims(scene: Scene, pod: PodRecord, *, released: bool = False) -> tuple[Raw, ...]:
    found = (scene.claims(pod.namespace, name) for name in dict.fromkeys(pod.claims))
    return tuple(_released(one) if released else one for one in found if one is not None)


def _released(claim: Raw) -> Raw:
    """The claim as it would be if it were to be allocated anew."""
    status = {**(claim.get("status") or {})}
    status.pop("allocation", None)
    return {**claim, "status": status}


def _raw(pod: PodRecord) -> Raw:
    return pod.raw or {}


def _places(scene: Scene) -> dict[str, Slot]:
    """Where members are tried first, by UID: where their predecessor was, or they themselves.

    A round that is planned anew because it lost a device stays on nodes that are fenced already,
    where nothing more is lost.
    """
    plan = scene.plan
    if plan is None:
        return {}
    left = places(plan)
    found = {
        member.ref.uid: Slot(left[member.slot]) for member in scene.members if member.slot in left
    }
    return found | {one.uid: Slot(one.node) for one in plan.members}


def _excluded(
    scene: Scene, held: Iterable[HeldMember], leaving: set[str], now: datetime
) -> Iterator[str]:
    """Nodes on which a member failed to bind lately, and those that members are to leave."""
    for one in scene.gang.status.avoided:
        if datetime.fromisoformat(one.until) > now:
            yield one.node
    yield from (one.node for one in held if one.uid in leaving)


def open_to(uid: str, name: str, others: Iterable[GangObject]) -> Iterator[Toleration]:
    """Taints that keep others than gangs away, for the gang with this UID and name.

    Fences keep kube-scheduler off, not other gangs, unless their devices wait for successors. A
    rule carries the gang's name as the value of its taint.
    """
    yield _GANG_ONLY
    rest = [one for one in others if one.uid != uid]
    closed = {
        _value(one.name)
        for one in rest
        if one.status.plan is not None and any(member.vacated for member in one.status.plan.held)
    }
    if not closed:
        yield Toleration(gang.TAINT, "Exists", "", "")
        return
    yield Toleration(gang.TAINT, "Equal", _value(name), "")
    for one in rest:
        if _value(one.name) not in closed:
            yield Toleration(gang.TAINT, "Equal", _value(one.name), "")


def kept_by_namesakes(uid: str, name: str, others: Iterable[GangObject]) -> Iterator[str]:
    """Nodes on which gangs of the same name, of other namespaces, wait for successors.

    Their fences carry the same value as those of the gang with this UID, which are open to it.
    """
    for one in others:
        plan = one.status.plan
        if one.uid != uid and plan is not None and _value(one.name) == _value(name):
            yield from (member.node for member in plan.held if member.vacated)


def _value(name: str) -> str:
    return name[:_VALUE].rstrip("-._")


class _Promise(NamedTuple):
    """What is promised to a gang, or to a Workload of Kueue, in a namespace."""

    namespace: str
    claims: tuple[PlannedClaim, ...]
    to_workload: bool


class Promises:
    """The named holder of plans that are not journaled yet, and of what is promised in all plans.

    Those of Workloads of Kueue that may start are here too. unpacked: the claims of a journaled
    plan.
    """

    def __init__(self, unpacked: Callable[[GangObject], Sequence[PlannedClaim]]) -> None:
        self._unpacked = unpacked
        self._proposed: dict[str, _Promise] = {}

    def keep(
        self,
        uid: str,
        namespace: str,
        claims: Sequence[PlannedClaim],
        *,
        to_workload: bool = False,
    ) -> None:
        """What the planner gave the owner of a UID; it holds until it is journaled or dropped."""
        self._proposed[uid] = _Promise(namespace, tuple(claims), to_workload)

    def to_workloads(self, named: Iterable[str], namespace: str) -> set[str]:
        """Those of the UIDs that are of Workloads in a namespace to which something is promised.

        named: by annotations of pods, in which anybody may write the UID of anything.
        """
        known = ((uid, self._proposed.get(uid)) for uid in named)
        return {
            uid
            for uid, one in known
            if one is not None and one.to_workload and one.namespace == namespace
        }

    def drop(self, uid: str) -> None:
        """What was kept for the owner of a UID is over: journaled, or not wanted any more."""
        self._proposed.pop(uid, None)

    def snapshot(
        self,
        state: ClusterState,
        own: Collection[str],
        gangs: Iterable[GangObject],
        kept: Iterable[tuple[GangObject, Sequence[PlannedClaim]]] = (),
    ) -> Snapshot:
        """The cluster as the owners of these UIDs may use it: with all that others are promised.

        kept: what is kept for gangs that wait, as far as these may not use it.
        """
        assumed: list[dict[str, Any]] = []
        try:
            for namespace, claim in (*self._others(own, gangs), *self._kept(kept)):
                raw = {"metadata": {"namespace": namespace, "name": claim.name, "uid": claim.uid}}
                state.assume(raw, claim.allocation)
                assumed.append(raw)
            return state.snapshot()
        finally:
            for raw in assumed:
                state.forget(raw)

    def _kept(
        self, kept: Iterable[tuple[GangObject, Sequence[PlannedClaim]]]
    ) -> Iterator[tuple[str, PlannedClaim]]:
        """What is kept for those that have no plan: a plan holds what it needs by itself."""
        for one, claims in kept:
            plan = one.status.plan
            if one.uid not in self._proposed and (plan is None or plan.step in _WRITTEN):
                yield from ((one.namespace, claim) for claim in claims)

    def _others(
        self, own: Collection[str], gangs: Iterable[GangObject]
    ) -> Iterator[tuple[str, PlannedClaim]]:
        for uid, promise in self._proposed.items():
            if uid not in own:
                yield from ((promise.namespace, claim) for claim in promise.claims)
        for one in gangs:
            plan = one.status.plan
            if one.uid not in own and plan is not None and plan.step not in _WRITTEN:
                yield from ((one.namespace, claim) for claim in self._readable(one))

    def _readable(self, one: GangObject) -> Sequence[PlannedClaim]:
        """A journal that is damaged promises nothing that could be known; its fences stand."""
        try:
            return self._unpacked(one)
        except InvalidInputError:
            return ()


def misfits(
    plan: Plan, pods: Mapping[str, PodRecord], nodes: Mapping[str, NodeFacts]
) -> dict[str, str]:
    """Planned pods that their node does not take any more, and why, by UID.

    nodes: what is left without the pods of the plan, by name. The pods of one node are put there
    one after the other. One that somebody else has bound is there, fit or not.
    """
    found: dict[str, str] = {}
    room = {name: dict(fit.free(facts)) for name, facts in nodes.items()}
    for member in plan.members:
        pod, facts = pods.get(member.uid), nodes.get(member.node)
        if pod is None or facts is None or not pod.is_alive:
            continue
        ask = pod_ask(_raw(pod))
        left = room[member.node]
        problem = fit.refusal(replace(ask, node=""), facts) or fit.shortage(ask.requests, left)
        if problem and not pod.node:
            found[member.uid] = problem
            continue
        left[fit.PODS] = left.get(fit.PODS, 0) - 1
        for name, amount in ask.requests.items():
            left[name] = left.get(name, 0) - amount
    return found


def closed(
    gang: GangObject,
    pods: Iterable[tuple[PodRecord, str]],
    nodes: Iterable[NodeFacts],
    now: datetime,
) -> frozenset[str]:
    """UIDs of pods that the node of the one that went before them does not take any more.

    pods: with the names of these nodes. nodes: those that there are.
    """
    avoided = {one.node for one in gang.status.avoided if datetime.fromisoformat(one.until) > now}
    facts = {one.name: one for one in nodes}
    return frozenset(
        pod.uid
        for pod, node in pods
        if node in avoided or node not in facts or fit.refusal(pod_ask(_raw(pod)), facts[node])
    )
