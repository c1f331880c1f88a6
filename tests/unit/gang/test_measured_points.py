"""The twelve points measured on a live control plane, each kept.

What needs the real kube-scheduler is in tests/e2e; here the small cluster of tests/property stands
for it, which does what was measured.
"""

import pytest

from dragoon.api.gang import GATE
from dragoon.api.gang_plan import Step
from dragoon.gang.protocol.fencing import longest_wait
from dragoon.gang.protocol.model import Backlog, GangView, OnStuck, Settings
from dragoon.kube.port import CLAIMS, GANGS, JOBS, NODES, PODS, TAINT_RULES
from tests.property.gang_cluster import NAMESPACE
from tests.property.gang_scheduler import devices_of, node_of, pinned_to
from tests.property.gang_stage import Stage, at, running


async def test_point_1_the_rule_comes_before_we_let_go_and_stays_until_the_holder_is_gone() -> None:
    stage = Stage(nodes=1)
    await stage.start(1)
    stranger = await stage.given_twice()
    assert max(map(len, (await stage.cluster.holders()).values())) == 2
    before = len(stage.calls)

    await stage.pilot_until(lambda view: view.plan is None)

    writes = [call for call in stage.calls[before:] if call.verb in {"create", "patch"}]
    rule = next(i for i, call in enumerate(writes) if call.resource == TAINT_RULES)
    clear = next(i for i, call in enumerate(writes) if call.resource == CLAIMS)
    assert rule < clear
    held = await stage.cluster.holders()
    assert [len(uids) for uids in held.values()] == [1]

    # kube-scheduler believes now that the device is free; the rule keeps everybody off.
    await stage.cluster.create_pod()
    await stage.parts()
    await stage.schedule()
    await stage.pilot.sweep()
    assert await stage.guarded() == {"node-0/gpu"}
    assert await stage.cluster.holders() == held

    await stage.cluster.delete(stranger)
    await stage.parts()
    await stage.parts()
    await stage.pilot.sweep()
    assert await stage.guarded() == set()
    await stage.schedule()
    assert [len(uids) for uids in (await stage.cluster.holders()).values()] == [1]


async def test_point_1_the_gang_runs_on_another_pool_meanwhile() -> None:
    stage = Stage(nodes=2)
    await stage.start(1)
    await stage.given_twice()

    view = await stage.until(running(1))

    assert view.members[0].node == "node-1"


@pytest.mark.parametrize(
    ("qps", "pending", "free", "seconds"),
    [
        (50, 0, 8, 1.0),
        (50, 100, 800, 13.0),
        (50, 530, 800, 64.6),
        (50, 300, 20, 3.4),
        (20, 10, 10, 4.0),
        (1000, 50, 80, 4.0),
    ],
)
def test_point_2_the_wait_follows_what_is_in_flight(
    qps: float, pending: int, free: int, seconds: float
) -> None:
    backlog = Backlog(frozenset(map(str, range(pending))), free)

    assert longest_wait(backlog, Settings(qps=qps)) == pytest.approx(seconds)


async def test_point_2_only_what_is_free_after_the_wait_is_written() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(1)
    await stage.rival()
    await stage.pilot_until(at(Step.WAIT))
    await stage.cluster.scheduler.land()

    await stage.until(running(1))

    assert [len(uids) for uids in (await stage.cluster.holders()).values()] == [1, 1]
    assert await stage.guarded() == set()


def _all_nominated(view: GangView) -> bool:
    return all(one.nominated for one in view.members)


async def test_point_2_the_wait_ends_when_all_is_decided_but_not_before_a_second() -> None:
    stage = Stage(nodes=1, gpus=4)
    await stage.start(1)
    await stage.rival()
    await stage.pilot_until(lambda view: at(Step.WAIT)(view) and view.wait is not None)
    begun = stage.pilot.wait
    assert begun is not None
    assert begun.until - begun.started == pytest.approx(1.12)

    await stage.cluster.scheduler.land()
    while stage.pilot.pending or not _all_nominated(await stage.view()):
        await stage.pilot.step()
    await stage.pilot.step()
    await stage.pilot.step()
    assert stage.pilot.wake == begun.started + 1.0
    stage.pilot.tick = begun.started + 0.99
    await stage.pilot.step()
    await stage.pilot.step()
    assert at(Step.WAIT)(await stage.view())
    stage.pilot.tick = begun.started + 1.0
    await stage.pilot.step()
    assert stage.pilot.wake is None
    assert at(Step.WAIT)(await stage.view())
    assert stage.pilot.pending


async def test_point_2_a_new_leader_waits_anew() -> None:
    stage = Stage()
    await stage.start(1)
    await stage.pilot_until(lambda view: at(Step.WAIT)(view) and view.wait is not None)
    stage.pilot.crash()
    stage.pilot.tick += 100.0

    await stage.pilot.step()
    await stage.pilot.step()

    assert stage.pilot.wait is not None
    assert stage.pilot.wait.started == stage.pilot.tick
    assert at(Step.WAIT)(await stage.view())


async def test_point_3_one_rule_for_each_planned_pool_and_our_allocation_binds_below_it() -> None:
    stage = Stage(nodes=2, gpus=2)
    await stage.start(3)

    await stage.until(running(3))

    rules = await stage.all(TAINT_RULES)
    pools = {rule["spec"]["deviceSelector"]["pool"] for rule in rules}
    assert pools == {"node-0/gpu", "node-1/gpu"}
    assert all(set(rule["spec"]["deviceSelector"]) == {"driver", "pool"} for rule in rules)
    assert all(rule["spec"]["taint"]["effect"] == "NoSchedule" for rule in rules)


async def test_point_4_a_gang_that_has_finished_is_written_no_more() -> None:
    stage = Stage()
    await stage.start(2)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    for pod in await stage.cluster.crew():
        await stage.cluster.finish(pod)
    await stage.until(lambda view: view.plan is None)
    assert await stage.all(TAINT_RULES) == ()
    await stage.parts()
    await stage.parts()
    version = stage.cluster.api.resource_version

    for _ in range(20):
        await stage.parts()
        await stage.pilot.step()
        await stage.pilot.sweep()

    assert stage.cluster.api.resource_version == version
    assert await stage.all(CLAIMS) == ()


async def test_point_5_without_the_controller_everything_of_a_running_gang_goes() -> None:
    stage = Stage()
    await stage.start(2)
    await stage.until(running(2))

    await stage.delete_all()

    assert await stage.all(CLAIMS) == ()


async def test_point_5_without_the_controller_a_committed_gang_goes_too() -> None:
    stage = Stage()
    await stage.start(2)
    await stage.pilot_until(at(Step.VERIFY))

    await stage.delete_all()

    assert await stage.all(CLAIMS) == ()
    await stage.pilot.sweep()
    assert await stage.all(TAINT_RULES) == ()


async def test_point_6_the_allocation_of_a_pinned_pod_stays_when_it_cannot_be_bound() -> None:
    stage = Stage(nodes=2, cpu=2, repair=False)
    await stage.start(1, job=False)
    await stage.pilot_until(at(Step.UNGATE))
    await stage.take_cpu("node-0")
    await stage.pilot_until(at(Step.HOLD))

    for _ in range(5):
        await stage.schedule()

    (claim,) = [one for one in await stage.all(CLAIMS) if devices_of(one)]
    assert node_of(claim["status"]["allocation"]) == "node-0"
    assert not stage.cluster.scheduler.decided


async def test_point_7_reserved_for_is_left_to_kube_scheduler() -> None:
    stage = Stage()
    await stage.start(2)

    await stage.pilot_until(at(Step.VERIFY))

    claims = await stage.all(CLAIMS)
    assert all(devices_of(one) and not one["status"].get("reservedFor") for one in claims)
    assert all("allocationTimestamp" in one["status"]["allocation"] for one in claims)


async def test_point_7_a_clear_that_was_decided_on_an_older_claim_does_nothing() -> None:
    stage = Stage()
    await stage.start(2)
    await stage.pilot_until(at(Step.VERIFY))
    await stage.cluster.delete((await stage.cluster.crew())[0])
    await stage.pilot_until(
        lambda view: at(Step.RELEASE)(view) and view.listed and bool(stage.pilot.pending)
    )
    (pod,) = await stage.cluster.crew()
    kept = await stage.claim_of(pod)
    name = kept["metadata"]["name"]
    labels = {"metadata": {"labels": {"touched": "yes"}}}
    await stage.cluster.api.patch(CLAIMS, name, labels, namespace=NAMESPACE)

    while stage.pilot.pending:
        await stage.pilot.step()

    assert devices_of(await stage.cluster.api.get(CLAIMS, name, namespace=NAMESPACE))


async def test_point_8_after_ungating_no_claim_of_a_living_pod_is_cleared() -> None:
    stage = Stage(nodes=2, repair=False)
    await stage.start(2)
    await stage.pilot_until(at(Step.UNGATE))
    await stage.pilot.step()
    await stage.pilot.step()
    await stage.cluster.api.delete(NODES, "node-0")
    allocated = {one["metadata"]["uid"] for one in await stage.all(CLAIMS) if devices_of(one)}

    for _ in range(30):
        await stage.pilot.step()
        stage.pilot.tick += 10

    still = {one["metadata"]["uid"] for one in await stage.all(CLAIMS) if devices_of(one)}
    assert still == allocated
    assert len(allocated) == 2


async def test_point_9_a_job_that_cannot_start_is_suspended_and_resumed_and_no_pod_is_deleted() -> (
    None
):
    stage = Stage(nodes=1, cpu=2, on_stuck=OnStuck.RELEASE, repair=False)
    await stage.start(2)
    await stage.pilot_until(at(Step.UNGATE))
    await stage.take_cpu("node-0")
    first = {pod["metadata"]["uid"] for pod in await stage.cluster.crew()}

    await stage.until(lambda view: view.plan is not None and bool(view.plan.suspended))
    await stage.until(lambda view: view.suspended)
    await stage.until(lambda view: view.plan is None or not view.plan.suspended)

    (job,) = await stage.all(JOBS)
    assert job["spec"]["suspend"] is False
    assert not stage.evictions
    await stage.parts()
    crew = {pod["metadata"]["uid"] for pod in await stage.cluster.crew()}
    assert len(crew) == 2
    assert first.isdisjoint(crew)


async def test_point_9_members_are_evicted_one_at_a_time_and_only_if_there_is_room_elsewhere() -> (
    None
):
    stage = Stage(nodes=2, cpu=2)
    await stage.start(2)
    await stage.pilot_until(at(Step.UNGATE))
    await stage.take_cpu("node-0")

    await stage.until(lambda _view: bool(stage.evictions))
    assert len(stage.evictions) == 1
    view = await stage.until(lambda view: any(one.node == "node-1" for one in view.members))

    assert len([one for one in view.members if one.is_alive]) == 2
    assert [request.spare for request in stage.pilot.asked[:2]] == [False, True]


async def test_point_9_a_bare_pod_is_never_deleted_and_the_gang_says_which_it_is() -> None:
    stage = Stage(nodes=2, cpu=2, on_stuck=OnStuck.RELEASE)
    await stage.start(1, job=False)
    await stage.pilot_until(at(Step.UNGATE))
    await stage.take_cpu("node-0")

    await stage.until(lambda _view: bool(stage.pilot.notes))

    note = stage.pilot.notes[-1]
    assert note.reason == "Stuck"
    for part in ("pod-0", "node-0", "0 nodes are available", "no owner"):
        assert part in note.message
    assert not stage.evictions


async def test_point_10_members_are_nominated_before_they_are_ungated() -> None:
    stage = Stage(nodes=1, cpu=3)
    await stage.start(2)

    view = await stage.pilot_until(at(Step.VERIFY))

    assert {(one.nominated, one.gated) for one in view.members} == {("node-0", True)}
    # Somebody who wants the CPU stays out.
    await stage.cluster.create_pod(gpus=0, cpu=2)
    await stage.until(running(2))


async def test_point_10_members_are_nominated_while_the_fence_is_waited_for() -> None:
    stage = Stage()
    await stage.start(3)

    view = await stage.pilot_until(lambda view: at(Step.WAIT)(view) and _all_nominated(view))
    assert {one.gated for one in view.members} == {True}
    assert not any(claim.allocation for claim in view.claims.values())


async def test_point_10_what_is_nominated_by_any_plan_is_taken_back_with_the_round() -> None:
    stage = Stage()
    await stage.start(2)
    await stage.pilot_until(lambda view: at(Step.WAIT)(view) and _all_nominated(view))
    name = (await stage.cluster.crew())[0]["metadata"]["name"]
    elsewhere = {"status": {"nominatedNodeName": "node-of-a-plan-before"}}
    await stage.cluster.api.patch(PODS, name, elsewhere, namespace=NAMESPACE, subresource="status")
    claim = (await stage.all(CLAIMS))[0]["metadata"]["name"]
    await stage.cluster.api.delete(CLAIMS, claim, namespace=NAMESPACE)

    await stage.undone()


async def test_point_11_a_member_costs_one_write_of_its_claim_and_two_of_its_pod() -> None:
    stage = Stage(nodes=4, gpus=2, cpu=3)
    await stage.start(8)
    before = len(stage.calls)

    await stage.pilot_until(at(Step.HOLD))

    writes = [call for call in stage.calls[before:] if call.verb in {"create", "patch", "delete"}]
    assert len([call for call in writes if call.resource == CLAIMS]) == 8
    assert len([call for call in writes if call.resource == PODS]) == 2 * 8
    assert len([call for call in writes if call.resource == TAINT_RULES]) == 4
    assert len([call for call in writes if call.resource == GANGS]) == 6


async def test_point_12_ungating_leaves_the_scheduling_group_as_it_is() -> None:
    stage = Stage()
    await stage.cluster.start()
    await stage.cluster.create_gang(1, job=False)
    (pod,) = await stage.cluster.crew()
    name = pod["metadata"]["name"]
    spec = {"schedulingGroup": {"podGroupName": "native"}}
    await stage.cluster.api.patch(PODS, name, {"spec": spec}, namespace=NAMESPACE)
    await stage.parts()

    await stage.pilot_until(at(Step.HOLD))

    pod = await stage.cluster.api.get(PODS, name, namespace=NAMESPACE)
    assert pod["spec"]["schedulingGroup"] == {"podGroupName": "native"}
    assert GATE not in [gate["name"] for gate in pod["spec"]["schedulingGates"]]
    assert pinned_to(pod) == ["node-0"]
