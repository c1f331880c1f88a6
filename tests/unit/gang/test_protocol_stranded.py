"""Members that somebody else has bound: planned where they are, all or nothing as ever (case C48)."""

from dragoon.api.gang_plan import Step
from dragoon.gang.protocol.model import GangView
from dragoon.kube.port import CLAIMS, PODS, TAINT_RULES
from tests.property.gang_scheduler import devices_of, node_of
from tests.property.gang_stage import Stage, at, running


async def _with_a_bound_member(*, gpus: int = 1, node: str = "node-1") -> Stage:
    """A gang of two bare pods, of which one names its node."""
    stage = Stage(nodes=2, gpus=2)
    await stage.cluster.start()
    await stage.cluster.create_gang(2, job=False, gpus=gpus)
    (first, _) = await stage.cluster.crew()
    await stage.cluster.delete(first)
    await stage.cluster.create_pod(gang="crew", gpus=gpus, node=node)
    await stage.parts()
    return stage


def _bound(view: GangView) -> str:
    (name,) = (one.ref.name for one in view.members if not one.gated and one.node)
    return name


async def test_c48_a_member_that_names_its_node_is_allocated_there_with_the_others() -> None:
    stage = await _with_a_bound_member(gpus=2)
    name = _bound(await stage.view())

    view = await stage.until(running(2))

    claims = {claim["metadata"]["name"]: claim for claim in await stage.all(CLAIMS)}
    (member,) = (one for one in view.members if one.ref.name == name)
    assert member.node == "node-1"
    assert node_of(claims[member.claims[0]]["status"]["allocation"]) == "node-1"
    holders = await stage.cluster.holders()
    assert len(holders) == 4
    assert all(len(claims) == 1 for claims in holders.values())


async def test_it_is_never_nominated_and_has_its_rule_like_every_member() -> None:
    stage = await _with_a_bound_member()
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))

    pods = {pod["metadata"]["name"]: pod for pod in await stage.all(PODS)}
    (bound,) = (pod for pod in pods.values() if pod["spec"].get("nodeName") == "node-1")
    assert "nominatedNodeName" not in bound["status"]
    view = await stage.view()
    assert view.plan is not None
    assert len(view.plan.held) == 2
    assert await stage.all(TAINT_RULES)


async def test_c48_nothing_is_given_where_its_node_has_no_room() -> None:
    stage = await _with_a_bound_member(gpus=2)
    stranger = await stage.cluster.create_pod(gpus=1, node="node-1")
    await stage.parts()
    claim = next(
        one
        for one in await stage.all(CLAIMS)
        if one["metadata"]["ownerReferences"][0]["uid"] == stranger["metadata"]["uid"]
    )
    allocated = {
        "devices": {
            "results": [
                {
                    "request": "gpu",
                    "driver": "gpu.dragoon.dev",
                    "pool": "node-1/gpu",
                    "device": "gpu-0",
                }
            ]
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
            ]
        },
    }
    await stage.cluster.api.patch(
        CLAIMS,
        claim["metadata"]["name"],
        {"status": {"allocation": allocated}},
        namespace="team",
        subresource="status",
    )
    for _ in range(20):
        await stage.pilot.step()
        await stage.parts()

    assert (await stage.view()).plan is None
    held = [one for one in await stage.all(CLAIMS) if devices_of(one)]
    assert [one["metadata"]["name"] for one in held] == [claim["metadata"]["name"]]


async def test_what_it_has_got_it_keeps_when_the_round_is_undone() -> None:
    """It may have started: nobody takes a device from under a container."""
    stage = await _with_a_bound_member()
    name = _bound(await stage.view())
    await stage.pilot_until(lambda view: view.claims[_claim_of(view, name)].allocation is not None)
    (gated,) = (pod for pod in await stage.cluster.crew() if pod["spec"]["schedulingGates"])
    await stage.cluster.delete(gated)
    await stage.cluster.claim_controller()

    await stage.pilot_until(lambda view: view.plan is None)

    (kept,) = (one for one in await stage.all(CLAIMS) if devices_of(one))
    assert kept["metadata"]["ownerReferences"][0]["name"] == name
    assert await stage.all(TAINT_RULES) == ()

    await stage.cluster.create_pod(gang="crew")
    await stage.until(running(2))
    (still,) = (
        one
        for one in await stage.all(CLAIMS)
        if one["metadata"]["name"] == kept["metadata"]["name"]
    )
    assert devices_of(still) == devices_of(kept)


def _claim_of(view: GangView, pod: str) -> tuple[str, str]:
    (name,) = next(one.claims for one in view.members if one.ref.name == pod)
    return view.gang.namespace, name
