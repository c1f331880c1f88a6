"""Courses of the gang protocol: what goes wrong on the way, and how gangs live on and end."""

import msgspec
import pytest

from dragoon.api.gang_plan import Step
from dragoon.gang.protocol.actions import (
    Journal,
    Note,
    RequestPlan,
    StartWait,
    Ungate,
    WaitUntil,
)
from dragoon.gang.protocol.deciding import decide
from dragoon.gang.protocol.model import GangView, Settings
from dragoon.gang.protocol.sweeping import release
from dragoon.gang.protocol.viewing import claim_facts, member_of, ref
from dragoon.kube.port import CLAIMS, GANGS, NODES, PODS, SLICES, TAINT_RULES
from tests.property.gang_cluster import NAMESPACE, claim_body
from tests.property.gang_scheduler import Raw, devices_of, node_of
from tests.property.gang_stage import Stage, at, running

_PLACED = (Step.FENCE, Step.WAIT, Step.COMMIT, Step.VERIFY)


async def _undone(stage: Stage) -> None:
    """The round is over and has left nothing: no allocation, nomination, rule."""
    await stage.pilot_until(lambda view: view.plan is None)
    assert await stage.all(TAINT_RULES) == ()
    assert [claim for claim in await stage.all(CLAIMS) if devices_of(claim)] == []
    for pod in await stage.cluster.crew():
        assert pod["spec"]["schedulingGates"]
        assert "nominatedNodeName" not in pod["status"]


@pytest.mark.parametrize("step", _PLACED)
async def test_c45_a_member_deleted_before_ungating_leaves_nothing_behind(step: Step) -> None:
    stage = Stage()
    await stage.start(3)
    await stage.pilot_until(at(step))
    await stage.pilot.step()
    await stage.pilot.step()

    await stage.cluster.delete((await stage.cluster.crew())[1])
    await stage.cluster.claim_controller()

    await _undone(stage)


@pytest.mark.parametrize("step", _PLACED)
async def test_a_claim_deleted_before_ungating_leaves_nothing_behind(step: Step) -> None:
    stage = Stage()
    await stage.start(2)
    await stage.pilot_until(at(step))
    await stage.pilot.step()
    name = (await stage.all(CLAIMS))[0]["metadata"]["name"]
    await stage.cluster.api.delete(CLAIMS, name, namespace=NAMESPACE)

    await stage.pilot_until(at(Step.RELEASE))
    view = await stage.view()

    assert view.plan is not None
    assert view.plan.reason == f"claim {name} is gone"


@pytest.mark.parametrize("step", [Step.COMMIT, Step.VERIFY])
async def test_a_node_that_goes_between_plan_and_bind_is_planned_around(step: Step) -> None:
    stage = Stage(nodes=2)
    await stage.start(2)
    await stage.pilot_until(at(step))
    await stage.cluster.api.delete(NODES, "node-0")
    await stage.cluster.api.delete(SLICES, "node-0-gpus")

    view = await stage.until(running(2))

    assert {member.node for member in view.members} == {"node-1"}


@pytest.mark.parametrize("step", [Step.WAIT, Step.COMMIT, Step.VERIFY])
@pytest.mark.parametrize("change", ["tainted", "gone"])
async def test_a_device_that_fails_between_plan_and_bind_is_planned_around(
    step: Step, change: str
) -> None:
    stage = Stage(nodes=2, gpus=1)
    await stage.start(1)
    await stage.pilot_until(at(step))
    taint = {"key": "dragoon.dev/lost", "effect": "NoSchedule"}
    devices = [{"name": "gpu-0", "taints": [taint]}] if change == "tainted" else []
    body = {"spec": {"devices": devices}}
    await stage.cluster.api.patch(SLICES, "node-0-gpus", body)

    await stage.pilot_until(lambda view: view.plan is None or view.plan.serial == 2)
    left = [claim for claim in await stage.all(CLAIMS) if devices_of(claim)]

    assert not any(node_of(claim["status"]["allocation"]) == "node-0" for claim in left)


async def test_a_rule_that_somebody_deletes_while_it_is_needed_voids_the_wait() -> None:
    stage = Stage()
    await stage.start(1)
    await stage.pilot_until(lambda view: at(Step.WAIT)(view) and view.wait is not None)
    await stage.cluster.api.delete(
        TAINT_RULES, (await stage.all(TAINT_RULES))[0]["metadata"]["name"]
    )
    first = stage.pilot.wait
    assert first is not None
    stage.pilot.tick = first.until + 5.0

    view = await stage.pilot_until(lambda view: view.wait is not None and view.wait != first)

    assert len(await stage.all(TAINT_RULES)) == 1
    assert view.wait is not None
    assert view.wait.started == first.until + 5.0


async def test_a_rule_that_is_deleted_during_the_commit_undoes_it() -> None:
    stage = Stage()
    await stage.start(2)
    await stage.pilot_until(at(Step.VERIFY))
    await stage.cluster.api.delete(
        TAINT_RULES, (await stage.all(TAINT_RULES))[0]["metadata"]["name"]
    )

    await stage.pilot_until(at(Step.RELEASE))
    await _undone(stage)


async def test_a_member_that_no_longer_fits_its_node_undoes_the_round_before_a_gate_goes() -> None:
    stage = Stage(nodes=1, cpu=3)
    await stage.start(2)
    await stage.pilot_until(at(Step.VERIFY))
    await stage.take_cpu("node-0")

    await stage.pilot_until(at(Step.RELEASE))
    view = await stage.view()

    assert view.plan is not None
    assert "no CPU" in view.plan.reason
    await _undone(stage)


async def test_claims_are_listed_again_after_the_last_write_before_a_gate_goes() -> None:
    stage = Stage()
    await stage.start(2)
    stage.pilot.lags = True
    await stage.pilot.informers()
    stranger = await stage.cluster.create_pod()
    await stage.cluster.claim_controller()
    await stage.cluster.scheduler.sync()
    await stage.cluster.scheduler.attempt()
    await stage.pilot_until(at(Step.VERIFY))
    await stage.cluster.scheduler.land()  # The informers do not show it.

    await stage.pilot_until(at(Step.RELEASE))

    assert all(pod["spec"].get("schedulingGates") for pod in await stage.cluster.crew())
    assert stranger["metadata"]["uid"]


async def test_a_member_that_loses_its_claim_while_others_are_ungated_is_placed_again() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(2)
    await stage.pilot_until(at(Step.UNGATE))
    await stage.pilot.step()
    await stage.pilot.step()
    gated = next(p for p in await stage.cluster.crew() if p["spec"].get("schedulingGates"))
    (claim,) = [c for c in await stage.all(CLAIMS) if _is_of(c, gated)]
    finalizers: Raw = {"metadata": {"finalizers": []}}
    name = claim["metadata"]["name"]
    stage.pilot.pending.clear()
    await stage.cluster.api.patch(CLAIMS, name, finalizers, namespace=NAMESPACE)
    await stage.cluster.api.delete(CLAIMS, name, namespace=NAMESPACE)
    await stage.pilot_until(at(Step.HOLD))
    still = await stage.cluster.api.get(PODS, gated["metadata"]["name"], namespace=NAMESPACE)
    assert still["spec"]["schedulingGates"], "without its claim it would be allocated by itself"

    body = claim_body(name, 1, claim["metadata"]["ownerReferences"][0])
    await stage.cluster.api.create(CLAIMS, body)
    await stage.until(running(2))


async def test_a_dead_member_is_replaced_on_its_devices_under_the_rule() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(2)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    devices = set(await stage.cluster.holders())
    for _ in range(3):
        await stage.cluster.create_pod()
    await stage.cluster.delete((await stage.cluster.crew())[0])

    await stage.until(running(2))

    held = await stage.cluster.holders()
    assert set(held) == devices
    assert not stage.cluster.scheduler.decided, "a stranger got the slot"


async def test_a_whole_gang_that_restarts_is_placed_all_together_again() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(2)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    for _ in range(3):
        await stage.cluster.create_pod()
    for pod in await stage.cluster.crew():
        await stage.cluster.finish(pod, "Failed")

    await stage.until(running(2))

    assert [len(request.pods) for request in stage.pilot.asked] == [2, 2]
    assert not stage.cluster.scheduler.decided


async def test_members_beyond_the_minimum_come_one_by_one_up_to_the_maximum() -> None:
    stage = Stage(nodes=1, gpus=4, cpu=8)
    await stage.start(2, job=False)
    await stage.cluster.api.patch(GANGS, "crew", {"spec": {"maxSize": 3}}, namespace=NAMESPACE)
    for _ in range(2):
        await stage.cluster.create_pod(gang="crew")

    await stage.until(lambda view: running(3)(view) and at(Step.HOLD)(view))
    for _ in range(10):
        await stage.pilot.step()

    assert [len(request.pods) for request in stage.pilot.asked] == [2, 1]
    crew = await stage.cluster.crew()
    assert len([pod for pod in crew if pod["spec"].get("schedulingGates")]) == 1


async def test_c49_finished_members_count_as_done() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(2)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    first, second = await stage.cluster.crew()
    await stage.cluster.finish(first)
    await stage.parts()
    await stage.cluster.finish(second, "Failed")

    view = await stage.until(lambda view: sum(one.phase == "Running" for one in view.members) == 1)

    assert sum(one.phase == "Succeeded" for one in view.members) == 1


async def test_an_empty_slot_is_held_for_so_long_and_then_given_up() -> None:
    stage = Stage(nodes=2, gpus=1, slot_grace=60)
    await stage.start(2, job=False)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    gone = next(p for p in await stage.cluster.crew() if p["spec"]["nodeName"] == "node-0")
    await stage.cluster.delete(gone)
    await stage.parts()
    await stage.parts()
    died = stage.pilot.tick

    while stage.pilot.tick < died + 59:
        await stage.pilot.step()
        assert len(await stage.all(TAINT_RULES)) == 2
        stage.pilot.tick += 1
    stage.pilot.tick += 2
    for _ in range(6):
        await stage.pilot.step()

    (rule,) = await stage.all(TAINT_RULES)
    assert rule["spec"]["deviceSelector"]["pool"] == "node-1/gpu"


async def _user_claim(stage: Stage) -> Raw:
    """A gang of one bare pod that names a claim made by a user."""
    await stage.cluster.start()
    await stage.cluster.create_gang(1, job=False, gpus=0)
    claim = await stage.cluster.api.create(CLAIMS, claim_body("mine", 1, None))
    (pod,) = await stage.cluster.crew()
    spec = {"gpus": 1, "resourceClaims": [{"name": "gpus", "resourceClaimName": "mine"}]}
    name = pod["metadata"]["name"]
    await stage.cluster.api.patch(PODS, name, {"spec": spec}, namespace=NAMESPACE)
    return claim


async def test_a_claim_made_by_a_user_is_freed_when_its_gang_goes_before_a_pod_used_it() -> None:
    stage = Stage()
    await _user_claim(stage)
    await stage.pilot_until(at(Step.VERIFY))
    (pod,) = await stage.cluster.crew()
    await stage.cluster.delete(pod)
    await stage.cluster.api.delete(GANGS, "crew", namespace=NAMESPACE)

    await stage.pilot.sweep()
    await stage.pilot.sweep()

    (claim,) = await stage.all(CLAIMS)
    assert not devices_of(claim)
    assert await stage.all(TAINT_RULES) == ()


async def test_a_claim_made_by_a_user_is_freed_when_its_only_pod_goes_after_ungating() -> None:
    stage = Stage()
    await _user_claim(stage)
    await stage.pilot_until(at(Step.HOLD))
    (pod,) = await stage.cluster.crew()
    await stage.cluster.delete(pod)

    await stage.pilot_until(
        lambda view: all(claim.allocation is None for claim in view.claims.values())
    )


async def test_a_claim_allocated_by_somebody_else_is_kept_and_the_pod_goes_there() -> None:
    stage = Stage()
    await _user_claim(stage)
    await stage.pilot_until(at(Step.FENCE))
    result = {"request": "gpu", "driver": "other.example.com", "pool": "p", "device": "d"}
    status = {"status": {"allocation": {"devices": {"results": [result]}}}}
    await stage.cluster.api.patch(CLAIMS, "mine", status, namespace=NAMESPACE, subresource="status")

    await stage.pilot_until(lambda view: view.plan is None)

    (claim,) = await stage.all(CLAIMS)
    assert claim["status"]["allocation"]["devices"]["results"] == [result]
    assert await stage.all(TAINT_RULES) == ()


async def test_what_an_earlier_gang_left_on_gated_pods_is_taken_back_first() -> None:
    stage = Stage()
    await stage.start(2)
    await stage.pilot_until(at(Step.VERIFY))
    before = await stage.cluster.holders()
    await stage.cluster.api.patch(
        GANGS, "crew", {"status": {"plan": None}}, namespace=NAMESPACE, subresource="status"
    )
    assert before

    await stage.pilot_until(lambda _view: bool(stage.pilot.asked[1:]))

    assert await stage.cluster.holders() == {}


async def test_a_gang_that_is_deleted_is_undone_where_nobody_was_ungated() -> None:
    stage = Stage()
    await stage.start(2)
    finalizers = {"metadata": {"finalizers": ["example.com/keep"]}}
    await stage.cluster.api.patch(GANGS, "crew", finalizers, namespace=NAMESPACE)
    await stage.pilot_until(at(Step.VERIFY))
    await stage.cluster.api.delete(GANGS, "crew", namespace=NAMESPACE)

    await _undone(stage)


async def test_a_gang_that_is_deleted_while_it_runs_leaves_its_pods_and_takes_its_rules() -> None:
    stage = Stage()
    await stage.start(2)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    finalizers = {"metadata": {"finalizers": ["example.com/keep"]}}
    await stage.cluster.api.patch(GANGS, "crew", finalizers, namespace=NAMESPACE)
    await stage.cluster.api.delete(GANGS, "crew", namespace=NAMESPACE)

    for _ in range(10):
        await stage.pilot.step()

    assert await stage.all(TAINT_RULES) == ()
    assert running(2)(await stage.view())
    assert len(await stage.cluster.holders()) == 2


async def test_release_gives_up_every_gate_and_every_rule_and_clears_nothing() -> None:
    stage = Stage()
    await stage.start(2)
    await stage.pilot_until(at(Step.VERIFY))
    await stage.cluster.create_pod(gang="crew")
    await stage.cluster.claim_controller()
    seen = await stage.pilot.see()
    pods = [member_of(pod, seen.claim) for pod in seen.items[PODS]]
    claims = {ref(raw)[:2]: claim_facts(raw) for raw in seen.items[CLAIMS]}

    gates, rules = release(pods, claims, seen.rules)

    assert all(isinstance(one, Ungate) for one in gates)
    assert sorted(one.node for one in gates if isinstance(one, Ungate)) == ["", "node-0", "node-0"]
    assert len(rules) == len(await stage.all(TAINT_RULES)) == 1


async def test_a_shared_claim_is_cleared_by_nobody_while_an_ungated_pod_names_it() -> None:
    stage = Stage()
    await _user_claim(stage)
    await stage.pilot_until(at(Step.VERIFY))
    (pod,) = await stage.cluster.crew()
    gone: Raw = {"spec": {"schedulingGates": []}}
    await stage.cluster.api.patch(PODS, pod["metadata"]["name"], gone, namespace=NAMESPACE)

    await stage.pilot_until(lambda view: view.plan is None)

    (claim,) = await stage.all(CLAIMS)
    assert devices_of(claim)


async def test_a_plan_of_a_version_that_is_not_known_is_never_touched() -> None:
    stage = Stage()
    await stage.start(1)
    view = await stage.pilot_until(at(Step.VERIFY))
    assert view.plan is not None
    plan = msgspec.structs.replace(view.plan, version=99)
    body = {"status": {"plan": msgspec.to_builtins(plan)}}
    await stage.cluster.api.patch(GANGS, "crew", body, namespace=NAMESPACE, subresource="status")

    (note,) = decide(await stage.view(), Settings())

    assert isinstance(note, Note)
    assert note.reason == "UnknownPlan"


async def test_the_same_view_gives_the_same_actions() -> None:
    stage = Stage()
    await stage.start(3)
    for _ in range(40):
        view = await stage.view()
        assert decide(view, Settings()) == decide(view, Settings())
        await stage.pilot.step()
        stage.pilot.tick = max(stage.pilot.tick, stage.pilot.wake or 0.0)


async def test_a_journal_is_never_written_beside_something_else() -> None:
    stage = Stage()
    await stage.start(3)
    for _ in range(60):
        actions = decide(await stage.view(), Settings())
        writes = [one for one in actions if not isinstance(one, StartWait)]
        assert len(writes) == 1 or not any(isinstance(one, Journal) for one in writes)
        await stage.pilot.step()
        stage.pilot.tick = max(stage.pilot.tick, stage.pilot.wake or 0.0)
    assert at(Step.HOLD)(await stage.view()) or stage.pilot.journaled


async def test_the_time_that_journaling_the_fence_takes_is_waited_already() -> None:
    stage = Stage()
    await stage.start(3)

    def stands(view: GangView) -> bool:
        return any(isinstance(one, StartWait) for one in decide(view, Settings()))

    await stage.pilot_until(stands)
    stage.pilot.tick = stood = 100.0
    await stage.pilot.step()
    while stage.pilot.pending:
        stage.pilot.tick += 0.4
        await stage.pilot.step()
    view = await stage.view()

    assert at(Step.WAIT)(view)
    assert decide(view, Settings()) == (WaitUntil(stood + Settings().least_wait),)


async def test_on_nodes_for_gangs_only_there_is_no_rule_and_no_wait() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.cluster.start()
    taint = {"key": "dragoon.dev/gang-only", "effect": "NoSchedule"}
    devices = [{"name": f"gpu-{index}", "taints": [taint]} for index in range(2)]
    await stage.cluster.api.patch(SLICES, "node-0-gpus", {"spec": {"devices": devices}})
    await stage.cluster.create_gang(2)
    await stage.parts()

    await stage.pilot_until(at(Step.HOLD))

    assert await stage.all(TAINT_RULES) == ()
    assert stage.pilot.tick == 0.0


async def test_a_member_for_which_there_is_no_room_elsewhere_is_not_evicted() -> None:
    stage = Stage(nodes=1, cpu=2)
    await stage.start(1)
    await stage.pilot_until(at(Step.UNGATE))
    await stage.take_cpu("node-0")
    await stage.pilot_until(at(Step.HOLD))
    await stage.schedule()

    await stage.pilot_until(lambda _view: bool(stage.pilot.notes))

    assert stage.evictions == []
    assert RequestPlan((stage.pilot.asked[-1].pods[0],), spare=True) in stage.pilot.asked


async def test_a_marked_member_that_is_bound_after_all_is_not_evicted() -> None:
    stage = Stage(nodes=2, cpu=2)
    await stage.start(1)
    await stage.until(lambda view: running(1)(view) and at(Step.HOLD)(view))
    view = await stage.view()
    assert view.plan is not None
    marked = msgspec.structs.replace(view.plan.held[0], vacated="2026-01-01T00:00:00Z")
    plan = msgspec.structs.replace(view.plan, held=(marked,))
    body = {"status": {"plan": msgspec.to_builtins(plan)}}
    await stage.cluster.api.patch(GANGS, "crew", body, namespace=NAMESPACE, subresource="status")

    (journal,) = decide(await stage.view(), Settings())

    assert isinstance(journal, Journal)
    assert journal.plan is not None
    assert journal.plan.held[0].vacated == ""


def _is_of(claim: Raw, pod: Raw) -> bool:
    uids = {owner["uid"] for owner in claim["metadata"].get("ownerReferences") or ()}
    return pod["metadata"]["uid"] in uids


async def test_a_plan_made_anew_in_the_same_pools_waits_no_second_time() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(1)
    await stage.cluster.create_pod()
    await stage.parts()
    await stage.cluster.scheduler.sync()
    await stage.cluster.scheduler.attempt()
    await stage.pilot_until(at(Step.WAIT))
    await stage.cluster.scheduler.land()
    await stage.pilot_until(lambda view: view.plan is not None and view.plan.serial == 2)
    over = stage.pilot.tick

    await stage.pilot_until(at(Step.HOLD))

    assert stage.pilot.tick == over


async def test_a_successor_in_a_pool_that_is_held_waits_for_nobody() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(2)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    await stage.cluster.delete((await stage.cluster.crew())[0])
    for _ in range(3):
        await stage.parts()
    over = stage.pilot.tick

    await stage.pilot_until(lambda view: all(not member.gated for member in view.members))

    assert stage.pilot.tick == over


async def test_a_successor_waits_where_the_rule_had_been_deleted_meanwhile() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(2)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    name = (await stage.all(TAINT_RULES))[0]["metadata"]["name"]
    await stage.cluster.api.delete(TAINT_RULES, name)
    await stage.pilot_until(lambda view: bool(view.rules))
    await stage.cluster.delete((await stage.cluster.crew())[0])
    for _ in range(3):
        await stage.parts()
    over = stage.pilot.tick

    await stage.pilot_until(lambda view: all(not member.gated for member in view.members))

    assert stage.pilot.tick >= over + 1.0
