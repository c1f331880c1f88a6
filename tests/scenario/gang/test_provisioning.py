"""Nodes that an autoscaler is asked for, and what it says."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from dragoon.app.permissions import CONTROLLER_RULES
from dragoon.errors import ApiForbiddenError, ApiUnavailableError
from dragoon.gang.provisioning.deciding import ANNOTATION_CLASS
from dragoon.kube.port import GANGS, POD_TEMPLATES, PROVISIONING_REQUESTS, Object
from tests.scenario.gang.bed import SPACE, Bed, condition
from tests.scenario.gang.others import serve
from tests.scenario.pluginbed import until
from tests.scenario.recording import Recording, rights

ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
ASKS: Mapping[str, str] = {ANNOTATION_CLASS: ATOMIC}


@contextlib.asynccontextmanager
async def cluster(*, served: bool = True, **more: Any) -> AsyncIterator[Bed]:
    """A cluster of one node with four GPUs. served: the API of ProvisioningRequests is there."""
    bed = Bed(nodes=1)
    if served:
        serve(bed.api, PROVISIONING_REQUESTS)
    async with bed.up(), bed.controller(**more):
        yield bed


async def requests(bed: Bed) -> list[Object]:
    return list((await bed.api.list(PROVISIONING_REQUESTS, namespace=SPACE)).items)


async def asked(bed: Bed) -> Object:
    """Waits for the one request."""

    async def is_there() -> bool:
        return bool(await requests(bed))

    await until("nodes are asked for", is_there)
    (found,) = await requests(bed)
    return found


async def says(bed: Bed, request: Object, *types: str) -> None:
    """The autoscaler sets conditions."""
    found = [
        {
            "type": type_,
            "status": "True",
            "reason": f"{type_}Now",
            "message": f"it is {type_}",
            "lastTransitionTime": "2026-11-29T19:00:00Z",
        }
        for type_ in types
    ]
    await bed.api.patch(
        PROVISIONING_REQUESTS,
        request["metadata"]["name"],
        {"status": {"conditions": found}},
        namespace=SPACE,
        subresource="status",
    )


async def told(bed: Bed, name: str, status: str, reason: str) -> str:
    """Waits for the condition Provisioned; its message."""
    seen: list[str] = []

    async def is_told() -> bool:
        found = await bed.see(name)
        one = None if found is None else found.status.condition("Provisioned")
        seen[:] = [] if one is None else [one.message]
        return one is not None and (one.status, one.reason) == (status, reason)

    await until(f"gang {name} is told {status} {reason}", is_told)
    return seen[0]


async def test_a_gang_that_more_nodes_would_help_asks_for_them_and_is_placed_when_they_come() -> (
    None
):
    async with cluster() as bed:
        await bed.job("big", 4, template="pair", annotations=ASKS)
        gang = await bed.waits("big")
        assert condition(gang, "Placed")[:2] == ("False", "NoRoom")
        request = await asked(bed)
        assert request["spec"]["provisioningClassName"] == ATOMIC
        (pods,) = request["spec"]["podSets"]
        assert pods["count"] == 4
        template = await bed.api.get(POD_TEMPLATES, pods["podTemplateRef"]["name"], namespace=SPACE)
        spec = template["template"]["spec"]
        assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "pair"}]
        assert "schedulingGates" not in spec
        for one in (request, template):
            (owner,) = one["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"]) == (GANGS.kind, gang.uid)
        await told(bed, "big", "Unknown", "Asked")
        await says(bed, request, "Accepted")
        await told(bed, "big", "Unknown", "Accepted")
        await says(bed, request, "Accepted", "Provisioned")
        message = await told(bed, "big", "True", "Provisioned")
        assert message.endswith("ProvisionedNow: it is Provisioned")
        await bed.add_node("new", 4)
        await bed.phase("big", "Running")
        assert len(await requests(bed)) == 1


@pytest.mark.parametrize("type_", ["Failed", "BookingExpired", "CapacityRevoked"])
async def test_what_the_autoscaler_could_not_do_stands_in_the_gangs_status(type_: str) -> None:
    async with cluster() as bed:
        await bed.job("big", 4, template="pair", annotations=ASKS)
        request = await asked(bed)
        await says(bed, request, "Provisioned", type_)
        assert f"it is {type_}" in await told(bed, "big", "False", type_)
        # A person deletes it, and it is asked for again.
        name = request["metadata"]["name"]
        await bed.api.delete(PROVISIONING_REQUESTS, name, namespace=SPACE)
        again = await asked(bed)
        assert again["metadata"]["uid"] != request["metadata"]["uid"]


async def test_all_that_is_done_for_it_is_granted() -> None:
    bed = Bed(nodes=1)
    serve(bed.api, PROVISIONING_REQUESTS)
    recording = Recording(bed.api)
    async with bed.up(), bed.controller(recording):
        await bed.gang("big", size=4)
        for index in range(4):
            await bed.pod(f"big-{index}", gang="big", template="pair", annotations=ASKS)
        await asked(bed)
        await told(bed, "big", "Unknown", "Asked")
        # With other members it is another need; what was asked for them is withdrawn.
        await bed.api.patch(GANGS, "big", {"spec": {"size": 3}}, namespace=SPACE)
        await until("it is", lambda: ("delete", "provisioningrequests") in recording.made)
    for_nodes = {
        one for one in recording.made if one[1] in {"provisioningrequests", "podtemplates"}
    }
    granted = rights(*CONTROLLER_RULES)
    assert {
        one for one in granted if one[1] in {"provisioningrequests", "podtemplates"}
    } == for_nodes


async def test_the_setting_names_the_class_where_pods_do_not() -> None:
    async with cluster(provisioning_class="queued.example.com") as bed:
        await bed.job("big", 4, template="pair")
        assert (await asked(bed))["spec"]["provisioningClassName"] == "queued.example.com"


async def test_nothing_is_asked_for_without_a_class_or_with_room() -> None:
    async with cluster() as bed:
        await bed.job("big", 4, template="pair")
        await bed.job("fits", 2, annotations=ASKS)
        await bed.phase("fits", "Running")
        gang = await bed.waits("big")
        assert gang.status.condition("Provisioned") is None
        assert not await requests(bed)


async def test_an_api_that_is_not_there_is_told_and_nothing_else_happens() -> None:
    async with cluster(served=False) as bed:
        await bed.job("big", 4, template="pair", annotations=ASKS)
        message = await told(bed, "big", "False", "NotServed")
        assert PROVISIONING_REQUESTS.api_version in message
        writes = [call for call in bed.api.faults.calls if call.resource is POD_TEMPLATES]
        assert not writes


async def test_members_of_different_shapes_are_counted_by_shape() -> None:
    async with cluster() as bed:
        for index in range(5):
            template = "pair" if index else "one"
            await bed.pod(f"p-{index}", gang="p", size="5", template=template, annotations=ASKS)
        request = await asked(bed)
        assert [one["count"] for one in request["spec"]["podSets"]] == [4, 1]


async def test_another_need_is_another_request_in_place_of_the_first() -> None:
    async with cluster() as bed:
        for index in range(3):
            await bed.pod(f"p-{index}", gang="p", size="3", template="pair", annotations=ASKS)
        first = await asked(bed)
        await bed.api.delete(GANGS, "p", namespace=SPACE)  # It is made anew, with another UID.
        second: list[Object] = []

        async def is_another() -> bool:
            uid = first["metadata"]["ownerReferences"][0]["uid"]
            second[:] = [
                one
                for one in await requests(bed)
                if one["metadata"]["ownerReferences"][0]["uid"] != uid
            ]
            return bool(second)

        await until("the new gang asks for itself", is_another)
        assert second[0]["metadata"]["name"] != first["metadata"]["name"]


@pytest.mark.parametrize("lost", [POD_TEMPLATES, PROVISIONING_REQUESTS])
@pytest.mark.parametrize("how", ["fails", "answer lost"])
async def test_a_write_that_fails_or_whose_answer_is_lost_is_tried_again_and_asks_once(
    lost: Any, how: str
) -> None:
    async with cluster() as bed:
        fault = bed.api.faults.fail if how == "fails" else bed.api.faults.lose_answer
        fault(times=1, verb="create", resource=lost, error=lambda: ApiUnavailableError("away"))
        await bed.job("big", 4, template="pair", annotations=ASKS)
        await asked(bed)
        await told(bed, "big", "Unknown", "Asked")
        assert len(await requests(bed)) == 1


async def test_a_request_that_is_refused_is_told_and_asked_for_again() -> None:
    async with cluster() as bed:
        refusing = bed.api.faults.fail(
            times=None,
            verb="create",
            resource=PROVISIONING_REQUESTS,
            error=lambda: ApiForbiddenError("not allowed here", status=403),
        )
        await bed.job("big", 4, template="pair", annotations=ASKS)
        assert "not allowed here" in await told(bed, "big", "False", "NotCreated")
        refusing.lift()
        await asked(bed)
        await told(bed, "big", "Unknown", "Asked")


async def test_a_class_that_is_no_name_is_told_and_reaches_nobody() -> None:
    async with cluster() as bed:
        wrong = {ANNOTATION_CLASS: "../../x"}
        await bed.job("big", 4, template="pair", annotations=wrong)
        assert "found '../../x'" in await told(bed, "big", "False", "BadClass")
        assert not await requests(bed)


async def test_a_request_of_another_namespace_that_names_the_gang_is_not_its_own() -> None:
    async with cluster() as bed:
        asking = bed.api.faults.hang(
            verb="create",
            resource=PROVISIONING_REQUESTS,
            when=lambda call: call.namespace == SPACE,
        )
        await bed.job("big", 4, template="pair", annotations=ASKS)
        await asking.reached.wait()
        gang = await bed.see("big")
        assert gang is not None
        owner = {"apiVersion": GANGS.api_version, "kind": GANGS.kind, "name": "big"}
        foreign = {
            "apiVersion": PROVISIONING_REQUESTS.api_version,
            "kind": PROVISIONING_REQUESTS.kind,
            "metadata": {
                "name": "foreign",
                "namespace": "other",
                "ownerReferences": [owner | {"uid": gang.uid}],
            },
            "spec": {"provisioningClassName": ATOMIC, "podSets": []},
        }
        await bed.api.create(PROVISIONING_REQUESTS, foreign)
        asking.lift()
        await says(bed, await asked(bed), "Accepted")
        await told(bed, "big", "Unknown", "Accepted")
