"""deploy/ against a real API server: the CRD and the policies do what the fakes and docs say."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from dragoon.api import gang, gang_plan
from dragoon.api.gang import GangObject, GangSpec, GangStatus, gang_of, wire
from dragoon.api.gang_plan import Plan, PlannedClaim, Step, pack
from dragoon.errors import (
    ApiConflictError,
    ApiForbiddenError,
    ApiInvalidError,
    ApiNotFoundError,
    ApiUnavailableError,
)
from dragoon.gang.admission import Proof, demand_gate, prove
from dragoon.gang.admission_memory import POLICIES
from dragoon.kube.connecting import connect
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, GANGS, NAMESPACES, PODS, Api, Object, PatchKind, Resource
from tests.contract.kube.servers import REAL
from tests.contract.kube.waiting import becomes

DEPLOY = Path(__file__).parents[3] / "deploy"
PLURALS = {
    "CustomResourceDefinition": "customresourcedefinitions",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}


@dataclass
class Place:
    """A server with a namespace of the test's own."""

    api: Api
    namespace: str


def documents() -> list[Object]:
    files = sorted(DEPLOY.glob("*/*.yaml"))
    return [found for file in files for found in yaml.safe_load_all(file.read_text("utf-8"))]


async def deploy(api: Api) -> None:
    """Applies everything; two tests may do it at once."""
    for body in documents():
        if body["kind"] not in PLURALS:
            continue
        group, version = body["apiVersion"].split("/")
        resource = Resource(group, version, PLURALS[body["kind"]], body["kind"], namespaced=False)
        await api.patch(
            resource,
            body["metadata"]["name"],
            body,
            kind=PatchKind.APPLY,
            field_manager="dragoon-tests",
        )


KINDS = [
    "memory",
    *([pytest.param("real", marks=pytest.mark.e2e)] if REAL in os.environ else []),
]
NAMESPACE = f"dragoon-{uuid.uuid4().hex[:8]}"
_deployed: list[str] = []
"""The namespace of this run, once everything is in force: that takes a while on a busy machine."""


@pytest.fixture(params=KINDS)
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    if request.param == "memory":
        yield Place(MemoryApi(admission=POLICIES), NAMESPACE)
        return
    api = await connect(Path(os.environ[REAL]))
    try:
        if not _deployed:
            await deploy(api)
            await api.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
            await _until_in_force(api, NAMESPACE)
            _deployed.append(NAMESPACE)
        yield Place(api, NAMESPACE)
    finally:
        await api.close()


@pytest.fixture(scope="module", autouse=True)
def _tidy() -> Iterator[None]:
    yield
    if _deployed:
        asyncio.run(_remove_namespace())


async def _remove_namespace() -> None:
    api = await connect(Path(os.environ[REAL]))
    try:
        await api.delete(NAMESPACES, NAMESPACE)
    finally:
        await api.close()


async def _until_in_force(api: Api, namespace: str) -> None:
    """Returns when the CRD is served, and both policies have taken effect."""

    async def in_force() -> bool:
        try:
            await api.list(GANGS, namespace=namespace)
            found = await prove(api, namespace, "gpu.dragoon.dev")
        except (ApiNotFoundError, ApiUnavailableError, ApiConflictError, ApiInvalidError):
            return False
        except ApiForbiddenError as error:
            if "serviceaccount" not in str(error):
                raise
            return False
        return found == Proof(gate=True, finalizer=True)

    await becomes("the CRD is served and the policies are in force", in_force)


def gang_body(place: Place, name: str, spec: Any) -> Object:
    return {
        "apiVersion": GANGS.api_version,
        "kind": GANGS.kind,
        "metadata": {"name": name, "namespace": place.namespace},
        "spec": spec,
    }


SPEC = GangSpec(
    size=2,
    max_size=4,
    timeout_seconds=60,
    topology=gang.Topology(
        required=(gang.Level(node_label="topology.kubernetes.io/zone"),),
        preferred=(gang.Level(attribute="gpu.dragoon.dev/fabricClique"),),
    ),
    owner=gang.Owner(api_version="batch/v1", kind="Job", name="j", uid="u"),
)
OF_GROUP = GangSpec(size=2, source=gang.Source(name="JobSet", group="pretrain/default"))
"""A Gang is of an owner or of a group, never of both."""


def a_plan() -> Plan:
    now = "2026-11-29T19:00:00Z"
    allocation = {"devices": {"results": [{"request": "g", "driver": "d", "pool": "p"}]}}
    return Plan(
        version=1,
        serial=2,
        step=Step.WAIT,
        since=now,
        fenced="2026-11-29T19:00:00.123456Z",
        wait_until=now,
        pools=(gang_plan.PlannedPool(driver="gpu.dragoon.dev", pool="n0/gpu"),),
        members=(gang_plan.PlannedMember(pod="p", uid="u", node="n0", slot="0", claims=("c",)),),
        held=(
            gang_plan.HeldMember(
                pod="q",
                uid="v",
                node="n1",
                slot="1",
                pools=(0,),
                claims=(gang_plan.HeldClaim(name="c", uid="w", made_by_user=True),),
                vacated=now,
            ),
        ),
        packed=pack([PlannedClaim(name="c", uid="w", allocation=allocation)]),
        suspended="u",
        repaired=now,
        repairs=3,
        reason="because",
    )


def a_status() -> GangStatus:
    now = "2026-11-29T19:00:00Z"
    return GangStatus(
        observed_generation=1,
        phase=gang.Phase.WAITING,
        members=gang.Members(minimum=2, present=1, ready=1, finished=1, summary="1/2"),
        waiting_for="room",
        explanation=("line",),
        conditions=(
            gang.ConditionStatus(
                type="Placed",
                status="False",
                reason="NoRoom",
                message="none",
                last_transition_time=now,
                observed_generation=1,
            ),
        ),
        missing_since=now,
        complete_since=now,
        avoided=(gang.Avoided(node="n0", until=now, reason="cpu"),),
        notes=("note",),
        reservation=gang.Reservation(
            since=now,
            pools=(gang_plan.PlannedPool(driver="gpu.dragoon.dev", pool="n0/gpu"),),
            nodes=("n0",),
            packed=a_plan().packed,
        ),
        plan=a_plan(),
    )


def test_the_examples_here_set_every_field_of_the_layout() -> None:
    plan, status = a_plan(), a_status()
    assert status.reservation is not None
    said = {*wire(SPEC), *wire(OF_GROUP)}
    assert said == set(GangSpec.__struct_encode_fields__)
    for part in (status, status.reservation, plan, plan.members[0], plan.held[0]):
        assert set(wire(part)) == set(type(part).__struct_encode_fields__)


async def test_no_field_of_a_gang_is_dropped(place: Place) -> None:
    status = a_status()
    for name, spec in (("every", SPEC), ("group", OF_GROUP)):
        stored = await place.api.create(GANGS, gang_body(place, name, wire(spec)))
        assert gang_of(stored).spec == spec
    found = await place.api.patch(
        GANGS, "every", {"status": wire(status)}, namespace=place.namespace, subresource="status"
    )
    assert gang_of(found).status == status


async def test_the_members_of_a_large_plan_are_not_dropped(place: Place) -> None:
    members = tuple(
        gang_plan.PlannedMember(pod=f"p{index}", uid=f"u{index}", node=f"n{index}")
        for index in range(512)
    )
    plan = msgspec.structs.replace(a_plan(), members=members)
    await place.api.create(GANGS, gang_body(place, "large", {"size": 1}))
    found = await _patch_status(place, "large", {"plan": wire(gang_plan.folded(plan))})
    assert found.status.plan == plan


async def test_every_phase_and_step_is_allowed(place: Place) -> None:
    await place.api.create(GANGS, gang_body(place, "phases", {"size": 1}))
    for phase in gang.Phase:
        await _patch_status(place, "phases", {"phase": str(phase)})
    for step in Step:
        found = await _patch_status(
            place, "phases", {"plan": {**wire(a_plan()), "step": str(step)}}
        )
        assert found.status.plan is not None
        assert found.status.plan.step is step
    found = await _patch_status(place, "phases", {"plan": None})
    assert found.status.plan is None


async def _patch_status(place: Place, name: str, status: Object) -> GangObject:
    return gang_of(
        await place.api.patch(
            GANGS, name, {"status": status}, namespace=place.namespace, subresource="status"
        )
    )


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"size": 0}, "spec.size"),
        ({"size": -1}, "spec.size"),
        ({"size": 5000}, "spec.size"),
        ({"size": "two"}, "spec.size"),
        ({}, "spec.size"),
        ({"size": 3, "maxSize": 2}, "maxSize"),
        ({"size": 1, "timeoutSeconds": 0}, "timeoutSeconds"),
        ({"size": 1, "topology": {"required": [{}]}}, "nodeLabel and attribute"),
        (
            {"size": 1, "topology": {"preferred": [{"nodeLabel": "a", "attribute": "d/b"}]}},
            "nodeLabel and attribute",
        ),
        ({"size": 1, "topology": {"required": [{"attribute": "no-domain"}]}}, "attribute"),
    ],
)
@pytest.mark.skipif(REAL not in os.environ, reason="the fake has no CRD to check by")
@pytest.mark.parametrize("place", [pytest.param("real", marks=pytest.mark.e2e)], indirect=True)
async def test_a_wrong_gang_is_refused_by_its_field(place: Place, spec: Any, field: str) -> None:
    with pytest.raises(ApiInvalidError) as caught:
        await place.api.create(GANGS, gang_body(place, "wrong", spec))
    assert field in caught.value.message


@pytest.mark.skipif(REAL not in os.environ, reason="the fake has no CRD to check by")
@pytest.mark.parametrize("place", [pytest.param("real", marks=pytest.mark.e2e)], indirect=True)
async def test_the_owner_of_a_gang_cannot_be_changed(place: Place) -> None:
    await place.api.create(GANGS, gang_body(place, "owned", wire(SPEC)))
    for owner in ({"uid": "other"}, None):
        with pytest.raises(ApiInvalidError, match="owner cannot be changed"):
            await place.api.patch(
                GANGS, "owned", {"spec": {"owner": owner}}, namespace=place.namespace
            )


@pytest.mark.skipif(REAL not in os.environ, reason="the fake has no CRD to check by")
@pytest.mark.parametrize("place", [pytest.param("real", marks=pytest.mark.e2e)], indirect=True)
async def test_the_group_of_a_gang_cannot_be_changed_and_it_has_no_owner_then(place: Place) -> None:
    await place.api.create(GANGS, gang_body(place, "grouped", wire(OF_GROUP)))
    for source in ({"group": "other"}, None):
        with pytest.raises(ApiInvalidError, match="source cannot be changed"):
            await place.api.patch(
                GANGS, "grouped", {"spec": {"source": source}}, namespace=place.namespace
            )
    both = {**wire(OF_GROUP), "owner": wire(SPEC)["owner"]}
    with pytest.raises(ApiInvalidError, match="of one owner or of one group"):
        await place.api.create(GANGS, gang_body(place, "both", both))


def pod_body(place: Place, name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": place.namespace,
            "labels": {gang.LABEL: "g"},
        },
        "spec": {"containers": [{"name": "c", "image": "none"}], **spec},
    }


def gates(pod: Object) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]


async def test_a_labelled_pod_is_held_once_beside_other_gates(place: Place) -> None:
    plain = await place.api.create(PODS, pod_body(place, "plain"), dry_run=True)
    assert gates(plain) == [gang.GATE]
    other = [{"name": "kueue.x-k8s.io/admission"}, {"name": gang.GATE}]
    beside = await place.api.create(
        PODS, pod_body(place, "beside", schedulingGates=other), dry_run=True
    )
    assert sorted(gates(beside)) == sorted([gang.GATE, "kueue.x-k8s.io/admission"])


async def test_a_pod_without_the_label_or_with_a_node_is_left_alone(place: Place) -> None:
    bound = await place.api.create(PODS, pod_body(place, "bound", nodeName="n0"), dry_run=True)
    assert gates(bound) == []
    body = pod_body(place, "stranger")
    body["metadata"]["labels"] = {"app": "x"}
    assert gates(await place.api.create(PODS, body, dry_run=True)) == []


async def test_a_placeholder_of_yunikorn_is_left_alone(place: Place) -> None:
    for said, wanted in (("true", []), ("false", [gang.GATE])):
        body = pod_body(place, "placeholder")
        body["metadata"]["annotations"] = {"yunikorn.apache.org/placeholder": said}
        assert gates(await place.api.create(PODS, body, dry_run=True)) == wanted


def claim_body(place: Place, name: str, request: Object) -> Object:
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {"name": name, "namespace": place.namespace},
        "spec": {"devices": {"requests": [{"name": "g", **request}]}},
    }


async def test_claims_for_our_classes_get_the_finalizer_and_others_do_not(place: Place) -> None:
    ours = {"exactly": {"deviceClassName": "gpu.dragoon.dev"}}
    either = {
        "firstAvailable": [
            {"name": "a", "deviceClassName": "other"},
            {"name": "b", "deviceClassName": "mig.dragoon.dev"},
        ]
    }
    theirs = {"exactly": {"deviceClassName": "other"}}
    for name, request, wanted in (("a", ours, 1), ("b", either, 1), ("c", theirs, 0)):
        claim = await place.api.create(CLAIMS, claim_body(place, name, request), dry_run=True)
        assert len(claim["metadata"].get("finalizers") or ()) == wanted


@pytest.mark.parametrize("spec", [{}, {"devices": {}}, {"devices": {"requests": None}}])
async def test_a_claim_that_asks_for_nothing_is_nobodys_business(
    place: Place, spec: Object
) -> None:
    body = {**claim_body(place, "nothing", {}), "spec": spec}
    claim = await place.api.create(CLAIMS, body, dry_run=True)
    assert not claim["metadata"].get("finalizers")


async def test_the_gate_is_proved_without_storing_anything(place: Place) -> None:
    assert await demand_gate(place.api, place.namespace, "gpu.dragoon.dev") == Proof(
        gate=True, finalizer=True
    )
    assert not (await place.api.list(PODS, namespace=place.namespace)).items
    assert not (await place.api.list(CLAIMS, namespace=place.namespace)).items
