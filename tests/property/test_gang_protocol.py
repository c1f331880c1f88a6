"""The gang protocol against a small cluster that races, with a controller killed at any write.

Two worlds: one in which kube-scheduler's decisions have landed when the wait is over, as measured;
and one in which they land whenever they like, for there is no proof that a wait is long enough.
"""

from collections import Counter
from collections.abc import Iterable
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.api.gang_plan import Step
from dragoon.gang.protocol.actions import DeleteRule
from dragoon.gang.protocol.model import Kind
from dragoon.kube.port import CLAIMS, GANGS, JOBS, TAINT_RULES, Resource
from racecampaign.wholeness import partial_gangs
from tests.property.gang_cluster import NAMESPACE, Cluster
from tests.property.gang_history import history
from tests.property.gang_pilot import Pilot
from tests.property.gang_scheduler import Raw, devices_of

_STEPS_BACK = (Step.FENCE, Step.WAIT, Step.COMMIT, Step.VERIFY, Step.RELEASE)
"""Steps from which a plan may still be taken back."""
_CALM = 400
"""Rounds after which everything has come to rest."""


class Run:
    """One run: steps in any order, then calm. honest: the wait is long enough.

    bound: one of the bare pods names its node.
    """

    def __init__(
        self, seed: int, *, honest: bool, size: int, job: bool, bound: bool = False
    ) -> None:
        self.rng = Random(seed)  # noqa: S311 - a run that can be repeated
        self.cluster = Cluster(self.rng, nodes=2, gpus=3, cpu=3)
        self.pilot = Pilot(self.cluster, lags=True)
        self.honest = honest
        self.size = size
        self.job = job
        self.bound = bound and not job
        self.ungated: set[str] = set()
        self.fenced: set[str] = set()
        self.placed = False

    async def start(self) -> None:
        await self.cluster.start()
        await self.cluster.create_gang(self.size, job=self.job)
        if self.bound:
            (first, *_) = await self.cluster.crew()
            await self.cluster.delete(first)
            pod = await self.cluster.create_pod(gang="crew", node="node-1")
            self.ungated.add(pod["metadata"]["uid"])

    async def step(self, name: str) -> None:
        await getattr(self, f"_{name}")()
        await self.check()

    async def _parts(self) -> None:
        """What runs by itself, in the order of a quiet cluster."""
        await self.cluster.job_controller()
        await self.cluster.claim_controller()
        await self.cluster.kubelets()

    async def _sync(self) -> None:
        await self.cluster.scheduler.sync()

    async def _attempt(self) -> None:
        await self.cluster.scheduler.attempt()

    async def _land(self) -> None:
        await self.cluster.scheduler.land()

    async def _informers(self) -> None:
        await self.pilot.informers()

    async def _pilot(self) -> None:
        await self._late()
        await self.pilot.step()

    async def _late(self) -> None:
        """Where the wait is too short, what was decided before the fence lands after our writes."""
        last = self.pilot.journaled[-1].plan if self.pilot.journaled else None
        committing = last is not None and last.step in {Step.COMMIT, Step.VERIFY}
        if committing and not self.honest and self.rng.random() < 0.3:
            await self.cluster.scheduler.land()

    async def _burst(self) -> None:
        """A controller that is quick for once."""
        await self.pilot.informers()
        for _ in range(6):
            await self._pilot()

    async def _crash(self) -> None:
        self.pilot.crash()

    async def _fails(self) -> None:
        self.pilot.trouble = "fails"
        await self.pilot.step()

    async def _answer_lost(self) -> None:
        self.pilot.trouble = "answer is lost"
        await self.pilot.step()

    async def _arbiter(self) -> None:
        await self.pilot.informers()
        await self.pilot.arbiter()

    async def _sweep(self) -> None:
        await self.pilot.informers()
        await self.pilot.sweep()

    async def _time(self) -> None:
        """Time passes; where the wait is long enough, what was decided before has landed."""
        if self.honest:
            await self.cluster.scheduler.sync()
            while self.cluster.scheduler.in_flight:
                await self.cluster.scheduler.land()
            await self.pilot.informers()
        if self.pilot.proposal is not None and self.pilot.proposal.refusal:
            self.pilot.proposal = None
        self.pilot.tick = max(self.pilot.tick + 0.5, self.pilot.wake or 0.0)

    async def _reserve(self) -> None:
        """Pools are kept for the gang while it waits, whatever it is doing."""
        pools = [f"node-{index}/gpu" for index in range(2)]
        await self.pilot.reserve(*self.rng.sample(pools, self.rng.randrange(1, 3)))

    async def _unreserve(self) -> None:
        await self.pilot.reserve()

    async def _stranger(self) -> None:
        if len(await self.cluster.strangers()) < 5:
            await self.cluster.create_pod(cpu=self.rng.choice((0, 1)))
            await self.cluster.claim_controller()

    async def _hog(self) -> None:
        """A pod that takes CPU and no GPU."""
        if len(await self.cluster.strangers()) < 5:
            await self.cluster.create_pod(gpus=0, cpu=self.rng.choice((1, 2, 3)))

    async def _stranger_ends(self) -> None:
        strangers = await self.cluster.strangers()
        if strangers:
            await self.cluster.delete(self.rng.choice(strangers))

    async def _node_goes(self) -> None:
        """A Node is deleted; its slices stay, as for a while they do."""
        await self.cluster.lose_node(f"node-{self.rng.randrange(2)}")

    async def _node_comes(self) -> None:
        await self.cluster.find_nodes()

    async def _two_members_go(self) -> None:
        """The owner makes them again, before anybody has freed what they had."""
        for _ in range(2):
            await self._member_ends()
        await self.cluster.job_controller()

    async def _member_ends(self) -> None:
        """A member of a Job is deleted, or fails."""
        crew = await self.cluster.crew()
        if not self.job or not crew:
            return
        pod = self.rng.choice(crew)
        if pod["status"]["phase"] == "Running" and self.rng.random() < 0.5:
            await self.cluster.finish(pod, "Failed")
        else:
            await self.cluster.delete(pod)

    async def check(self) -> None:
        """What holds at every moment."""
        claims = {claim["metadata"]["uid"]: claim for claim in (await self._all(CLAIMS))}
        crew = {pod["metadata"]["uid"] for pod in await self.cluster.crew()}
        members = {uid for uid, claim in claims.items() if _made_for(claim) & self.cluster.members}
        decided = self.cluster.scheduler.decided
        assert not members & decided, "kube-scheduler allocated a member by itself"
        held = await self.cluster.holders()
        given = [Counter(uid in decided for uid in uids) for uids in held.values()]
        assert all(one[True] < 2 for one in given), "a stranger got a stranger's device"
        assert all(one[False] < 2 for one in given), "we gave a device twice"
        if self.honest:
            assert all(len(uids) == 1 for uids in held.values()), "a device was given twice"
        assert len(set(self.cluster.prepared)) == len(self.cluster.prepared)
        await self._check_kept()
        await self._check_first_round(crew, claims)

    async def _check_kept(self) -> None:
        """A pool that is kept for the gang and fenced stays so until its members are ungated."""
        gang = next(iter(await self._all(GANGS)), None)
        status = (gang or {}).get("status") or {}
        step = (status.get("plan") or {}).get("step")
        kept = {one["pool"] for one in (status.get("reservation") or {}).get("pools") or ()}
        rules = {one["spec"]["deviceSelector"]["pool"] for one in await self._fences()}
        if step in {None, *_STEPS_BACK}:
            assert self.fenced & kept <= rules, f"a kept pool is open in step {step}"
        # What was decided before is still carried out; the next look makes it good.
        deleting = {one.rule.name for one in self.pilot.pending if isinstance(one, DeleteRule)}
        self.fenced = {
            one["spec"]["deviceSelector"]["pool"]
            for one in await self._fences()
            if one["metadata"]["name"] not in deleting
        }

    async def _fences(self) -> list[Raw]:
        rules = await self._all(TAINT_RULES)
        return [one for one in rules if one["metadata"]["labels"]["dragoon.dev/rule"] == "fence"]

    async def _check_first_round(self, crew: set[str], claims: dict[str, Raw]) -> None:
        """The first gate goes only when every member has what it needs."""
        ungated = {
            pod["metadata"]["uid"]
            for pod in await self.cluster.crew()
            if not pod["spec"].get("schedulingGates")
        }
        new = ungated - self.ungated
        gang = next(iter(await self._all(GANGS)), None)
        plan = ((gang or {}).get("status") or {}).get("plan")
        if new and plan and plan["step"] == Step.UNGATE and not plan.get("held"):
            with_devices = {
                uid for claim in claims.values() if devices_of(claim) for uid in _made_for(claim)
            }
            planned = {member["uid"] for member in plan["members"]}
            assert len(planned) == self.size
            assert planned & crew <= with_devices, "a member was ungated before all were allocated"
        self.ungated |= new

    async def calm(self) -> None:
        """No more races: strangers end, everybody gets to do what is to be done."""
        await self.cluster.find_nodes()
        await self.pilot.informers()
        await self.pilot.reserve()
        for pod in await self.cluster.strangers():
            await self.cluster.delete(pod)
        for _ in range(_CALM):
            await self._parts()
            await self._sync()
            await self._attempt()
            await self._land()
            await self._arbiter()
            await self._sweep()
            for _ in range(4):
                await self.pilot.informers()
                await self.pilot.step()
            await self._time()
            await self.check()
            if await self._is_still():
                return

    async def _is_still(self) -> bool:
        crew = await self.cluster.crew()
        gangs = await self._all(GANGS)
        rules = await self._all(TAINT_RULES)
        running = [pod for pod in crew if pod["status"]["phase"] == "Running"]
        if self.pilot.pending or await self._guarded_for_nobody(rules):
            return False
        if not gangs:
            return not rules and not crew and not await self._all(CLAIMS)
        return (
            len(running) == self.size == len([p for p in crew if p["status"]["phase"] != "Failed"])
        )

    async def _guarded_for_nobody(self, rules: Iterable[Raw]) -> bool:
        """Whether a pool is kept from everybody though nobody holds a device of it any more."""
        held = {pool for pool, _ in await self.cluster.holders()}
        return any(
            rule["metadata"]["labels"]["dragoon.dev/rule"] == Kind.DAMAGE
            and rule["spec"]["deviceSelector"]["pool"] not in held
            for rule in rules
        )

    async def _all(self, resource: Resource) -> tuple[Raw, ...]:
        return (await self.cluster.api.list(resource)).items


def _made_for(claim: Raw) -> set[str]:
    return {owner["uid"] for owner in claim["metadata"].get("ownerReferences") or ()}


_WEIGHTS = {
    "pilot": 20,
    "burst": 8,
    "informers": 3,
    "parts": 8,
    "sync": 5,
    "attempt": 12,
    "land": 2,
    "time": 6,
    "stranger": 10,
    "hog": 2,
    "stranger_ends": 4,
    "crash": 2,
    "fails": 1,
    "answer_lost": 1,
    "arbiter": 2,
    "sweep": 1,
    "member_ends": 1,
    "two_members_go": 1,
    "node_goes": 1,
    "node_comes": 2,
    "reserve": 2,
    "unreserve": 1,
}
_STEPS = st.lists(
    st.sampled_from([name for name, weight in _WEIGHTS.items() for _ in range(weight)]),
    max_size=250,
)


async def _lives(
    seed: int, steps: list[str], *, honest: bool, size: int, job: bool, bound: bool = False
) -> Run:
    run = Run(seed, honest=honest, size=size, job=job, bound=bound)
    await run.start()
    for name in steps:
        await run.step(name)
    await run.calm()
    assert await run._is_still(), await _story(run)
    await _end(run)
    if not run.bound:
        # Whatever each check saw between two steps: now the whole history is judged.
        assert partial_gangs(await history(run.cluster.api, NAMESPACE), {"crew": size}) == []
    return run


async def _end(run: Run) -> None:
    """The gang goes: nothing of it is left, and kube-scheduler's memory is right."""
    api = run.cluster.api
    await api.delete(GANGS, "crew", namespace=NAMESPACE)
    if run.job:
        await api.delete(JOBS, "crew", namespace=NAMESPACE)
    for pod in await run.cluster.crew():
        await run.cluster.delete(pod)
    await run.calm()
    assert await run._all(TAINT_RULES) == ()
    assert await run._all(CLAIMS) == ()
    assert run.cluster.scheduler.taken == set()


async def _story(run: Run) -> str:
    view = await run.pilot.view()
    return f"{view and view.plan} {view and view.members} {await run._all(TAINT_RULES)}"


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), steps=_STEPS, size=st.integers(1, 3), job=st.booleans())
async def test_no_partial_gang_no_leak_no_double_allocation_whatever_dies(
    seed: int, steps: list[str], size: int, job: bool
) -> None:
    await _lives(seed, steps, honest=True, size=size, job=job)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), steps=_STEPS, size=st.integers(1, 3), job=st.booleans())
async def test_a_wait_that_was_too_short_costs_nobody_else_a_device(
    seed: int, steps: list[str], size: int, job: bool
) -> None:
    await _lives(seed, steps, honest=False, size=size, job=job)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), steps=_STEPS, size=st.integers(1, 3), honest=st.booleans())
async def test_c48_a_member_that_names_its_node_changes_nothing_of_that(
    seed: int, steps: list[str], size: int, *, honest: bool
) -> None:
    await _lives(seed, steps, honest=honest, size=size, job=False, bound=True)
