import asyncio
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

import pytest

from dragoon.kube.leading import Election, LeadershipLostError, Timing
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import LEASES, Object

TIMING = Timing(lease=15, renew=10, retry=2)
CALLER = ContextVar("caller", default="")
"""Which candidate's tasks make a call."""


class Time:
    """One clock for all candidates; `pass_` lets sleepers run when their time has come."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def clock(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return datetime(2026, 11, 29, tzinfo=UTC) + timedelta(seconds=self.now)

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, woken))
        await woken

    async def pass_(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            await settle()
            due = sorted(at for at, woken in self._sleepers if not woken.done())
            if not due or due[0] > end:
                break
            self.now = due[0]
            for at, woken in self._sleepers:
                if at <= self.now and not woken.done():
                    woken.set_result(None)
        self.now = end
        await settle()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Candidate:
    def __init__(self, api: MemoryApi, time: Time, name: str) -> None:
        self.election = Election(
            api,
            namespace="d",
            name="lease",
            identity=name,
            timing=TIMING,
            clock=time.clock,
            now=time.wall,
            sleep=time.sleep,
        )
        self.works = False
        mine = CALLER.set(name)
        self.task = asyncio.ensure_future(self.election.lead(self._work))
        CALLER.reset(mine)

    async def _work(self) -> None:
        self.works = True
        try:
            await asyncio.Event().wait()
        finally:
            self.works = False

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
def time() -> Time:
    return Time()


async def lease(api: MemoryApi) -> dict[str, object]:
    found: dict[str, object] = (await api.get(LEASES, "lease", namespace="d"))["spec"]
    return found


async def test_one_of_two_leads_and_keeps_it(time: Time) -> None:
    api = MemoryApi()
    one = Candidate(api, time, "one")
    await settle()
    two = Candidate(api, time, "two")
    await time.pass_(60)
    assert (one.works, two.works) == (True, False)
    assert two.election.leader == "one"
    found = await lease(api)
    assert found["holderIdentity"] == "one"
    assert found["leaseTransitions"] == 0
    assert found["renewTime"] != found["acquireTime"]
    await one.stop()
    await two.stop()


async def test_a_leader_that_stops_hands_over_at_once(time: Time) -> None:
    api = MemoryApi()
    one = Candidate(api, time, "one")
    await settle()
    two = Candidate(api, time, "two")
    await time.pass_(3)
    await one.stop()
    await time.pass_(TIMING.retry)
    assert two.works
    assert (await lease(api))["leaseTransitions"] == 1
    await two.stop()


async def test_a_leader_that_dies_is_waited_for_and_then_replaced(time: Time) -> None:
    api = MemoryApi()
    body: Object = {"metadata": {"name": "lease", "namespace": "d"}}
    body["spec"] = {"holderIdentity": "dead", "leaseDurationSeconds": 15}
    await api.create(LEASES, body)
    two = Candidate(api, time, "two")
    await time.pass_(14)
    assert not two.works
    await time.pass_(4)
    assert two.works
    await two.stop()


async def test_a_clock_that_is_wrong_does_not_matter(time: Time) -> None:
    """What the lease says of the time is never compared with ours."""
    api = MemoryApi()
    body: Object = {"metadata": {"name": "lease", "namespace": "d"}}
    old = "2001-01-01T00:00:00.000000Z"
    body["spec"] = {
        "holderIdentity": "slow",
        "leaseDurationSeconds": 15,
        "renewTime": old,
    }
    await api.create(LEASES, body)
    two = Candidate(api, time, "two")
    await time.pass_(14)
    assert not two.works
    await two.stop()


async def test_a_leader_that_cannot_renew_stops_before_another_may_start(time: Time) -> None:
    api = MemoryApi()
    one = Candidate(api, time, "one")
    await settle()
    two = Candidate(api, time, "two")
    await time.pass_(4)
    # Only the leader is cut off from here on.
    renewals = api.faults.fail(
        times=None, resource=LEASES, when=lambda call: call.verb == "replace" and one.works
    )
    started = time.now
    while one.works:
        await time.pass_(1)
        assert not two.works
    assert time.now - started <= TIMING.lease
    with pytest.raises(LeadershipLostError):
        await one.task
    renewals.lift()
    await time.pass_(TIMING.lease + 2 * TIMING.retry)
    assert two.works
    await two.stop()


@pytest.mark.parametrize("is_cut_off", [True, False])
@pytest.mark.parametrize("late", [1, 7, 9, 11, 20])
async def test_whoever_hears_late_that_it_has_the_lease_never_works_beside_another(
    time: Time, late: float, is_cut_off: bool
) -> None:
    """Late by a slow server or a frozen process: others count from the write, not from then."""
    api = MemoryApi()
    answer = api.faults.hold_answer(verb="create", resource=LEASES)
    one = Candidate(api, time, "one")
    await settle()
    two = Candidate(api, time, "two")
    await time.pass_(late)
    answer.lift()
    if is_cut_off:
        api.faults.fail(times=None, resource=LEASES, when=lambda _: CALLER.get() == "one")
    for _ in range(80):
        await time.pass_(0.25)
        assert not (one.works and two.works), f"both work after {time.now} s"
    # Whoever hears late but in time leads all the same.
    assert two.works if is_cut_off or late > TIMING.lease else one.works
    await asyncio.gather(one.stop(), two.stop())


async def test_a_leader_that_slept_through_a_renewal_asks_again_at_once(time: Time) -> None:
    api = MemoryApi()
    one = Candidate(api, time, "one")
    await settle()
    two = Candidate(api, time, "two")
    answer = api.faults.hold_answer(verb="replace", resource=LEASES)
    await time.pass_(TIMING.retry + TIMING.lease + 2 * TIMING.retry)
    assert answer.hits
    assert two.works
    answer.lift()
    await time.pass_(0)
    assert not one.works
    await asyncio.gather(one.stop(), two.stop())


async def test_a_renewal_that_hangs_ends_the_work_too() -> None:
    # On a busy machine a short time can be over before the lease is renewed.
    for seconds in (0.2, 2.0, 20.0):
        api = MemoryApi()
        timing = Timing(lease=seconds * 1.5, renew=seconds, retry=0.01)
        election = Election(api, namespace="d", name="lease", identity="one", timing=timing)
        renewals = api.faults.hang(
            times=None, resource=LEASES, when=lambda call: call.verb == "replace"
        )
        with pytest.raises(LeadershipLostError):
            await asyncio.wait_for(election.lead(asyncio.Event().wait), 60)
        if renewals.hits:
            break
    assert renewals.hits
    assert not election.is_leading


async def test_a_leader_whose_lease_was_taken_stops(time: Time) -> None:
    api = MemoryApi()
    one = Candidate(api, time, "one")
    await settle()
    await api.patch(LEASES, "lease", {"spec": {"holderIdentity": "thief"}}, namespace="d")
    await time.pass_(TIMING.retry + 0.1)
    assert not one.works
    with pytest.raises(LeadershipLostError, match="held by thief"):
        await one.task


async def test_an_error_of_the_work_ends_it_and_frees_the_lease(time: Time) -> None:
    api = MemoryApi()
    election = Election(
        api, namespace="d", name="lease", identity="one", clock=time.clock, sleep=time.sleep
    )

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await election.lead(fail)
    assert (await lease(api))["holderIdentity"] == ""


async def test_candidates_that_race_for_a_new_lease_do_not_fail(time: Time) -> None:
    api = MemoryApi()
    candidates = [Candidate(api, time, str(index)) for index in range(5)]
    await time.pass_(30)
    assert sum(one.works for one in candidates) == 1
    for one in candidates:
        await one.stop()
