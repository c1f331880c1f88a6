"""Runs the gang protocol against the small cluster, one write at a time, so that it can be killed.

It does what the controller's loop does: makes views, keeps the wait and the planner's answer in
memory, carries out actions. `crash` loses what is in memory and the rest of the actions.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from dragoon.allocator.contention import Contention, contentions
from dragoon.api.gang import GangObject, Owner, Reservation, gang_of
from dragoon.api.gang_plan import PlannedPool
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
from dragoon.gang.protocol.model import Backlog, GangView, Proposal, Settings, Wait
from dragoon.gang.protocol.sweeping import Leftovers, sweep
from dragoon.gang.protocol.viewing import Unpacked, claim_facts, claims_of_interest, member_of, ref
from dragoon.gang.records import pod_record
from dragoon.kube.port import CLAIMS, GANGS, JOBS, NODES, PODS, SLICES, TAINT_RULES
from tests.property.gang_cluster import NAMESPACE, Cluster
from tests.property.gang_scheduler import claims_of
from tests.property.gang_sight import Seen, misfits, pending, plan

START = datetime(2026, 1, 1, tzinfo=UTC)


_KINDS = (PODS, CLAIMS, GANGS, JOBS, NODES, SLICES, TAINT_RULES)


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
