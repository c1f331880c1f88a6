"""What a look sees of one gang: its pods as they are now, and the view that the protocol decides on."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from dragoon.allocator.gang.model import NodeFacts
from dragoon.allocator.model import PoolId
from dragoon.api.gang import GangObject, Owner
from dragoon.api.gang_plan import Plan, Step
from dragoon.gang import asking
from dragoon.gang.discovering.grouping import slot_of
from dragoon.gang.protocol import viewing
from dragoon.gang.protocol.facts import pool_id
from dragoon.gang.protocol.model import Backlog, GangView, Kind, Member, Settings
from dragoon.gang.protocol.returning import places
from dragoon.gang.questions import Questions
from dragoon.gang.records import JobRecord, PodRecord
from dragoon.gang.remembering import Case, Memory
from dragoon.gang.world import World

_FENCED: Final = frozenset((Step.FENCE, Step.WAIT))


class Seeing:
    """Makes views from the world. questions: knows what the plans of gangs promise."""

    def __init__(
        self,
        world: World,
        questions: Questions,
        *,
        settings: Settings,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        self._world = world
        self._questions = questions
        self._settings = settings
        self._clock = clock
        self._now = now

    def now_of(self, case: Case) -> Case | None:
        """The case with Gang and pods as the copies have them now: what was just written shows.

        None where the Gang is gone.
        """
        gang = self._world.copies.gangs.get(case.gang.name, case.gang.namespace)
        if gang is None or gang.uid != case.gang.uid:
            return None
        found = (self._world.copies.pods.get(pod.name, pod.namespace) for pod in case.pods)
        pods = tuple(
            now
            for now, pod in zip(found, case.pods, strict=True)
            if now is not None and now.uid == pod.uid
        )
        return replace(case, gang=gang, pods=pods)

    def view(self, case: Case, memory: Memory, *, listed: bool) -> GangView:
        """The gang now. listed: all claims have just been listed, after its last write.

        Raises InvalidInputError for a journal that is damaged.
        """
        world, gang, plan = self._world, case.gang, case.gang.status.plan
        pods = {pod.uid: pod for pod in case.pods}
        members = tuple(
            viewing.member_of(pod.raw, world.claim, slot=slot_of(pod))
            for pod in case.pods
            if pod.raw is not None
        )
        planned = self._questions.claims_of(gang)
        if plan is not None and plan.step is Step.WAIT:
            # Two plans over one device can only come of a leader's late write: here it shows.
            snapshot = self._questions.snapshot(gang)
        else:
            snapshot = world.snapshot()
        job = self._job(case)
        return GangView(
            now=self._now(),
            tick=self._clock(),
            gang=asking.gang_ref(gang),
            minimum=gang.spec.size,
            maximum=gang.spec.max_size,
            members=members,
            claims=viewing.claims_of_interest(
                gang.namespace,
                members=members,
                plan=plan,
                planned=planned,
                snapshot=snapshot,
                claims=world.claim,
            ),
            rules=tuple(
                rule for rule in world.rules() if rule.gang == gang.uid or rule.kind is Kind.DAMAGE
            ),
            snapshot=snapshot,
            nodes=world.node_names(),
            reserved=_reserved(gang),
            backlog=self._backlog(plan),
            deleting=gang.deleting,
            plan=plan,
            planned=planned,
            misfits=self._misfits(plan, pods) if listed else {},
            closed=self._closed(gang, members, pods),
            listed=listed,
            wait=memory.wait,
            proposal=memory.proposal,
            owner=None if job is None else _owner(job),
            suspended=job is not None and job.suspended,
        )

    def _job(self, case: Case) -> JobRecord | None:
        """The Job that we suspended, else the one that all living pods come from."""
        plan = case.gang.status.plan
        if plan is not None and plan.suspended:
            # Its pods are gone, and it has to be resumed.
            return self._world.jobs_by_uid.get(plan.suspended)
        owner = _job_of(case.pods)
        return self._world.jobs_by_uid.get(owner.uid) if owner is not None else None

    def _backlog(self, plan: Plan | None) -> Backlog:
        """What kube-scheduler may have in flight; only counted where it is waited for."""
        if plan is None or plan.step not in _FENCED:
            return Backlog()
        drivers = {pool.driver for pool in plan.pools}
        return Backlog(self._world.pending_claims(), self._world.free_devices(drivers))

    def _misfits(self, plan: Plan | None, pods: Mapping[str, PodRecord]) -> Mapping[str, str]:
        """Planned pods that do not fit any more; only asked for the last look."""
        if plan is None or plan.step is not Step.VERIFY:
            return {}
        return asking.misfits(plan, pods, self._nodes_without(plan, pods))

    def _closed(
        self, gang: GangObject, members: Iterable[Member], pods: Mapping[str, PodRecord]
    ) -> frozenset[str]:
        """Successors that cannot come back to where the one before them was."""
        nodes = places(gang.status.plan)
        found = [
            (pods[one.ref.uid], nodes[one.slot])
            for one in members
            if one.gated and one.is_alive and one.slot in nodes
        ]
        if not found:
            return frozenset()
        facts = self._world.node_facts(names={node for _, node in found})
        return asking.closed(gang, found, facts, self._now())

    def _nodes_without(self, plan: Plan, pods: Mapping[str, PodRecord]) -> Mapping[str, NodeFacts]:
        """What the planned nodes are without the pods of the plan, by name."""
        planned = [pods[one.uid].key for one in plan.members if one.uid in pods]
        names = {one.node for one in plan.members}
        return {one.name: one for one in self._world.node_facts(without=planned, names=names)}


def _job_of(pods: Iterable[PodRecord]) -> Owner | None:
    """The Job that all living pods come from, None where they do not."""
    owners = {pod.owner for pod in pods if pod.is_alive}
    if len(owners) != 1:
        return None
    owner = owners.pop()
    is_job = owner is not None and owner.kind == "Job" and owner.api_version == "batch/v1"
    return owner if is_job else None


def _reserved(gang: GangObject) -> tuple[PoolId, ...]:
    """The pools that are kept for a gang."""
    found = gang.status.reservation
    return () if found is None else tuple(map(pool_id, found.pools))


def _owner(job: JobRecord) -> Owner:
    return Owner(api_version="batch/v1", kind="Job", name=job.name, uid=job.uid)
