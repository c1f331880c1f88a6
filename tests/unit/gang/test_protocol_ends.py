"""Courses of the gang protocol: gangs that are deleted or given up, and claims that outlive them."""

import msgspec

from dragoon.api.gang_plan import Step
from dragoon.gang.protocol.actions import Note, Ungate
from dragoon.gang.protocol.deciding import decide
from dragoon.gang.protocol.model import Settings
from dragoon.gang.protocol.sweeping import release
from dragoon.gang.protocol.viewing import claim_facts, member_of, ref
from dragoon.kube.port import CLAIMS, GANGS, PODS, TAINT_RULES
from tests.property.gang_cluster import NAMESPACE, claim_body
from tests.property.gang_scheduler import Raw, devices_of
from tests.property.gang_stage import Stage, at, running


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

    await stage.undone()


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
