"""Runs the gang protocol against the small cluster, one write at a time, so that it can be killed.

It does what the controller's loop does: makes views, keeps the wait and the planner's answer in
memory, carries out actions. `crash` loses what is in memory and the rest of the actions.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from dragoon.allocator import ClusterState, Snapshot
from dragoon.allocator.contention import Contention, contentions
from dragoon.api.gang import GangObject, Owner, Reservation, gang_of
from dragoon.api.gang_plan import PlannedClaim, PlannedMember, PlannedPool
from dragoon.api.names import DRIVER_NAME
from dragoon.gang.arbiter.deciding import arbitrate
from dragoon.gang.arbiter.ranking import holder_of
from dragoon.gang.discovering.grouping import slot_of
from dragoon.gang.protocol.actions import (
    Action,
    Journal,
    Note,
    Relist,
    RequestPlan,
    Reserve,
    StartWait,
    WaitUntil,
)
from dragoon.gang.protocol.deciding import decide
from dragoon.gang.protocol.executing import ANNOTATION_GIVEN_TWICE, Executor
from dragoon.gang.protocol.facts import claim_key, pool_id
from dragoon.gang.protocol.model import Backlog, GangView, Proposal, RuleFacts, Settings, Wait
from dragoon.gang.protocol.objects import rule_facts
from dragoon.gang.protocol.sweeping import Leftovers, sweep
from dragoon.gang.protocol.viewing import (
    Unpacked,
    claim_facts,
    claims_of_interest,
    member_of,
    ref,
)
from dragoon.gang.records import pod_record
from dragoon.kube.port import CLAIMS, GANGS, JOBS, NODES, PODS, SLICES, TAINT_RULES
from tests.property.gang_cluster import NAMESPACE, Cluster
from tests.property.gang_scheduler import (
    Raw,
    allocation_of,
    claims_of,
    cpu_left,
    devices_of,
    pinned_to,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
_KINDS = (PODS, CLAIMS, GANGS, JOBS, NODES, SLICES, TAINT_RULES)


@dataclass
class Seen:
    """What the informers show: raw objects of each kind."""

    items: dict[Any, list[Raw]]

    def claim(self, namespace: str, name: str) -> Raw | None:
        return next((one for one in self.items[CLAIMS] if ref(one)[:2] == (namespace, name)), None)

    @property
    def rules(self) -> list[RuleFacts]:
        facts = (rule_facts(raw) for raw in self.items[TAINT_RULES])
        return [one for one in facts if one is not None]

    def snapshot(self) -> Snapshot:
        state = ClusterState()
        for raw in self.items[SLICES]:
            state.put_slice(raw)
        for raw in self.items[CLAIMS]:
            state.put_claim(raw)
        for raw in self.items[TAINT_RULES]:
            state.put_rule(raw)
        return state.snapshot()


@dataclass
class Pilot:
    """One controller process after the other.

    lags: its informers show what they showed when `informers` was called last, and own writes.
    trouble: what happens to the next write: `fails`, or its `answer is lost`.
    """

    cluster: Cluster
    settings: Settings = field(default_factory=Settings)
    tick: float = 0.0
    wait: Wait | None = None
    proposal: Proposal | None = None
    listed: bool = False
    notes: list[Note] = field(default_factory=list)
    pending: list[Action] = field(default_factory=list)
    wake: float | None = None
    asked: list[RequestPlan] = field(default_factory=list)
    journaled: list[Journal] = field(default_factory=list)
    lags: bool = False
    trouble: str = ""

    def __post_init__(self) -> None:
        self._executor = Executor(self.cluster.api)
        self._unpacked = Unpacked()
        self._seen: Seen | None = None

    def crash(self) -> None:
        """The process dies: memory and what was still to be written are gone."""
        self.wait = self.proposal = self.wake = None
        self.listed = False
        self.pending.clear()
        self._unpacked = Unpacked()
        self._seen = None

    async def informers(self) -> None:
        """The informers catch up."""
        self._seen = await self._list()

    async def see(self) -> Seen:
        """What the informers show now."""
        if self._seen is None or not self.lags:
            self._seen = await self._list()
        return self._seen

    async def _list(self) -> Seen:
        return Seen({kind: list((await self.cluster.api.list(kind)).items) for kind in _KINDS})

    async def step(self) -> bool:
        """One write, or one look if nothing is left to write; whether anything was done."""
        if not self.pending:
            return await self._look()
        action = self.pending.pop(self.cluster.rng.randrange(len(self.pending)))
        await self._carry_out(action)
        return True

    async def _carry_out(self, action: Action) -> None:
        match action:
            case StartWait(wait):
                self.wait = wait
            case WaitUntil(tick):
                self.wake = tick if self.wake is None else min(self.wake, tick)
            case RequestPlan():
                self.asked.append(action)
                self.proposal = plan(await self.see(), action)
            case Relist():
                seen = await self.see()
                seen.items[CLAIMS] = list((await self.cluster.api.list(CLAIMS)).items)
                self.listed = True
            case Note():
                self.notes.append(action)
            case _:
                self.listed = False
                if isinstance(action, Journal):
                    self.proposal = None
                    self.journaled.append(action)
                await self._write(action)

    async def _write(self, action: Action) -> None:
        faults = self.cluster.api.faults
        if self.trouble == "fails":
            faults.fail()
        elif self.trouble:
            faults.lose_answer()
        outcome = await self._executor.execute([action])
        faults.clear()
        assert all(error.retryable for error in outcome.errors), (action, outcome.errors)
        assert self.trouble or not outcome.errors, (action, outcome.errors)
        self.trouble = ""
        seen = await self.see()
        for resource, raw in outcome.written:
            same = ref(raw)[:2]
            others = [one for one in seen.items[resource] if ref(one)[:2] != same]
            seen.items[resource] = [*others, raw]

    async def _look(self) -> bool:
        self.wake = None
        view = await self.view()
        if view is None:
            return False
        self.pending = list(decide(view, self.settings))
        return any(not isinstance(one, Note | WaitUntil) for one in self.pending) or self._waits()

    def _waits(self) -> bool:
        return any(isinstance(one, WaitUntil) for one in self.pending)

    async def view(self) -> GangView | None:
        """The gang as it is seen now, None where it is gone."""
        seen = await self.see()
        if not seen.items[GANGS]:
            return None
        raw = seen.items[GANGS][0]
        gang: GangObject = gang_of(raw)
        plan_ = gang.status.plan
        planned = self._unpacked.of(ref(raw), plan_)
        members = tuple(
            member_of(pod, seen.claim, slot=slot_of(pod_record(pod)))
            for pod in seen.items[PODS]
            if pod["metadata"]["uid"] in self.cluster.members
        )
        snapshot = seen.snapshot()
        job = next(iter(seen.items[JOBS]), None)
        owner = None
        if job is not None:
            name, uid = job["metadata"]["name"], job["metadata"]["uid"]
            owner = Owner(api_version="batch/v1", kind="Job", name=name, uid=uid)
        return GangView(
            now=START + timedelta(seconds=self.tick),
            tick=self.tick,
            gang=ref(raw),
            minimum=gang.spec.size,
            members=members,
            claims=claims_of_interest(
                NAMESPACE,
                members=members,
                plan=plan_,
                planned=planned,
                snapshot=snapshot,
                claims=seen.claim,
            ),
            rules=tuple(seen.rules),
            snapshot=snapshot,
            nodes=frozenset(node["metadata"]["name"] for node in seen.items[NODES]),
            backlog=Backlog(pending(seen), 4),
            reserved=tuple(map(pool_id, gang.status.reservation.pools))
            if gang.status.reservation
            else (),
            maximum=gang.spec.max_size,
            deleting=gang.deleting,
            plan=plan_,
            planned=planned,
            misfits=misfits(seen, plan_.members if plan_ else ()),
            roomy=roomy(seen, plan_.members if plan_ else ()),
            listed=self.listed,
            wait=self.wait,
            proposal=self.proposal,
            owner=owner,
            suspended=bool(job and job["spec"]["suspend"]),
        )

    async def reserve(self, *pools: str) -> None:
        """Another part of the process journals that these pools are kept for the gang, or none."""
        seen = await self.see()
        if not seen.items[GANGS]:
            return
        kept = tuple(PlannedPool(driver=DRIVER_NAME, pool=pool) for pool in pools)
        now = (START + timedelta(seconds=self.tick)).isoformat()
        found = Reservation(since=now, pools=kept) if pools else None
        await self._write(Reserve(ref(seen.items[GANGS][0]), found))

    async def arbiter(self) -> tuple[Contention, ...]:
        """One look of the standing watch, and what it does."""
        seen = await self.see()
        snapshot = seen.snapshot()
        found = contentions(snapshot, snapshot.usage)
        names = {name: seen.claim(*claim_key(name)) for one in found for name in one.claims}
        holders = {
            name: holder_of(
                claim,
                [pod for pod in seen.items[PODS] if claim_key(name)[1] in claims_of(pod)],
                marked=ANNOTATION_GIVEN_TWICE,
            )
            for name, claim in names.items()
            if claim is not None
        }
        facts = {claim_key(name): claim_facts(claim) for name, claim in names.items() if claim}
        actions = arbitrate(found, seen.rules, facts, holders)
        await self._executor.execute(actions)
        return found

    async def sweep(self) -> None:
        """Removes what is left of gangs that are gone, and guards that are over."""
        seen = await self.see()
        gangs = frozenset(raw["metadata"]["uid"] for raw in seen.items[GANGS])
        members = [
            member_of(pod, seen.claim, slot=slot_of(pod_record(pod))) for pod in seen.items[PODS]
        ]
        await self._executor.execute(
            sweep(
                Leftovers(
                    rules=tuple(seen.rules),
                    gangs=gangs,
                    claims={ref(raw)[:2]: claim_facts(raw) for raw in seen.items[CLAIMS]},
                    in_use=frozenset(
                        (one.ref.namespace, name)
                        for one in members
                        if one.is_alive and not one.gated
                        for name in one.claims
                    ),
                    snapshot=seen.snapshot(),
                )
            )
        )


def pending(seen: Seen) -> frozenset[str]:
    """Unallocated claims of pods that kube-scheduler may schedule."""
    names = {
        name
        for pod in seen.items[PODS]
        if not pod["spec"].get("schedulingGates")
        and not pod["spec"].get("nodeName")
        and pod["status"]["phase"] == "Pending"
        for name in claims_of(pod)
    }
    return frozenset(
        claim["metadata"]["uid"]
        for claim in seen.items[CLAIMS]
        if claim["metadata"]["name"] in names and not devices_of(claim)
    )


def misfits(seen: Seen, members: tuple[PlannedMember, ...]) -> dict[str, str]:
    """Planned pods for whose CPU their node has no room any more."""
    nodes = {node["metadata"]["name"]: node for node in seen.items[NODES]}
    pods = {pod["metadata"]["uid"]: pod for pod in seen.items[PODS]}
    found = {}
    for member in members:
        pod, node = pods.get(member.uid), nodes.get(member.node)
        if pod is None or node is None:
            continue
        if cpu_left(node, seen.items[PODS], member.uid) < pod["spec"]["cpu"]:
            found[member.uid] = "no CPU"
    return found


def roomy(seen: Seen, members: tuple[PlannedMember, ...]) -> frozenset[str]:
    """Planned pods whose node has twice the CPU for which all of them ask there."""
    nodes = {node["metadata"]["name"]: node for node in seen.items[NODES]}
    pods = {pod["metadata"]["uid"]: pod for pod in seen.items[PODS]}
    asked: dict[str, int] = {}
    for member in members:
        if member.uid in pods:
            cpu = pods[member.uid]["spec"]["cpu"]
            asked[member.node] = asked.get(member.node, 0) + cpu
    planned = {member.uid for member in members}
    wide = {
        name
        for name, cpu in asked.items()
        if name in nodes and cpu_left(nodes[name], seen.items[PODS], *planned) >= 2 * cpu
    }
    return frozenset(member.uid for member in members if member.node in wide)


def plan(seen: Seen, request: RequestPlan) -> Proposal:
    """A planner: first fit over nodes and free devices, all pods or none."""
    asked = frozenset(request.pods)
    by_uid = {pod["metadata"]["uid"]: pod for pod in seen.items[PODS]}
    if not asked <= set(by_uid):
        return Proposal(asked, refusal="a pod is gone")
    taken = set().union(*map(devices_of, seen.items[CLAIMS])) if seen.items[CLAIMS] else set()
    fenced = {rule.pool for rule in seen.rules if rule.kind == "damage"}
    free = {
        one["spec"]["nodeName"]: [
            (one["spec"]["pool"]["name"], device["name"])
            for device in one["spec"]["devices"]
            if (one["spec"]["pool"]["name"], device["name"]) not in taken
            and one["spec"]["pool"]["name"] not in fenced
        ]
        for one in seen.items[SLICES]
    }
    room = {
        node["metadata"]["name"]: cpu_left(
            node, [pod for pod in seen.items[PODS] if pod["metadata"]["uid"] not in asked], ""
        )
        for node in seen.items[NODES]
    }
    members, claims = [], []
    for uid in request.pods:
        pod = by_uid[uid]
        claim = seen.claim(NAMESPACE, claims_of(pod)[0])
        assert claim is not None
        count = pod["spec"]["gpus"]
        node = next(
            (
                name
                for name in sorted(room)
                if len(free.get(name, ())) >= count
                and room[name] >= pod["spec"]["cpu"]
                and not (request.spare and name in pinned_to(pod))
                and pod["spec"].get("nodeName") in {None, name}
            ),
            None,
        )
        if node is None:
            return Proposal(asked, refusal="no room")
        chosen, free[node] = free[node][:count], free[node][count:]
        room[node] -= pod["spec"]["cpu"]
        name = claim["metadata"]["name"]
        claims.append(
            PlannedClaim(
                name=name,
                uid=claim["metadata"]["uid"],
                allocation={
                    key: value
                    for key, value in allocation_of(node, chosen).items()
                    if key != "allocationTimestamp"
                },
            )
        )
        members.append(
            PlannedMember(pod=pod["metadata"]["name"], uid=uid, node=node, claims=(name,))
        )
    pools = {
        result
        for claim in claims
        for result in devices_of({"status": {"allocation": claim.allocation}})
    }
    return Proposal(
        asked,
        members=tuple(members),
        claims=tuple(claims),
        pools=tuple(
            PlannedPool(driver=DRIVER_NAME, pool=pool)
            for pool in sorted({pool for pool, _ in pools})
        ),
    )
