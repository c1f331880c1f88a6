"""Native PodGroups (KEP-4671): those that carry our label are ours, the others are not touched."""

from typing import Any

import pytest

from dragoon.api.gang import LABEL
from dragoon.kube.port import GANGS, POD_GROUPS, PODS
from tests.scenario.gang.bed import SPACE, Bed, condition
from tests.scenario.gang.others import member, serve, store
from tests.scenario.pluginbed import until

GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}


async def native(bed: Bed, name: str, *, label: str = "", group: str = "pg") -> None:
    await member(
        bed, name, labels={LABEL: label} if label else {}, schedulingGroup={"podGroupName": group}
    )


async def test_a_group_with_the_label_is_placed_with_its_own_minimum() -> None:
    async with Bed().up() as bed, bed.controller():
        serve(bed.api, POD_GROUPS)
        await store(bed, POD_GROUPS, "pg", GANG)
        for name in ("p0", "p1"):
            await native(bed, name, label="train")
        gang = await bed.phase("train", "Running")
        assert gang.spec.size == 2
        assert gang.spec.source is not None
        assert (gang.spec.source.name, gang.spec.source.group) == ("PodGroup", "pg")
        assert set(await bed.bound("train")) == {"p0", "p1"}


async def test_a_group_without_the_label_is_left_alone() -> None:
    async with Bed().up() as bed, bed.controller():
        serve(bed.api, POD_GROUPS)
        await store(bed, POD_GROUPS, "pg", GANG)
        for name in ("p0", "p1"):
            await native(bed, name)
        await bed.job("after", 1)
        await bed.phase("after", "Running")
        (gang,) = (await bed.api.list(GANGS)).items
        assert gang["metadata"]["name"] == "after"
        pod = await bed.api.get(PODS, "p0", namespace=SPACE)
        assert not pod["spec"].get("schedulingGates")


async def test_two_groups_under_one_label_are_two_gangs() -> None:
    async with Bed().up() as bed, bed.controller():
        serve(bed.api, POD_GROUPS)
        for group in ("a", "b"):
            await store(bed, POD_GROUPS, group, GANG)
            for name in (f"{group}0", f"{group}1"):
                await native(bed, name, label="train", group=group)
        await until("four are bound", lambda: _bound(bed, "train", 4))
        gangs = (await bed.api.list(GANGS, namespace=SPACE)).items
        assert {gang["spec"]["source"]["group"] for gang in gangs} == {"a", "b"}


async def _bound(bed: Bed, label: str, count: int) -> bool:
    return len(await bed.bound(label)) == count


async def test_a_group_whose_object_comes_later_waits_for_it() -> None:
    async with Bed().up() as bed, bed.controller():
        for name in ("p0", "p1"):
            await native(bed, name, label="train")
        gang = await bed.phase("train", "Gathering")
        assert condition(gang, "Complete")[:2] == ("False", "GroupMissing")
        assert gang.status.waiting_for == (
            "PodGroup pg (scheduling.k8s.io/v1beta1): the API server does not have "
            "scheduling.k8s.io/v1beta1"
        )
        serve(bed.api, POD_GROUPS)
        await store(bed, POD_GROUPS, "pg", GANG)
        await bed.phase("train", "Running")
        assert not await bed.events("GroupMissing")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({}, "spec.schedulingPolicy: found none, allowed is an object"),
        (
            {"schedulingPolicy": {"gang": {}}},
            "spec.schedulingPolicy.gang.minCount: found none, allowed is a whole number",
        ),
        (
            {"schedulingPolicy": {"gang": {"minCount": "many"}}},
            "spec.schedulingPolicy.gang.minCount: found 'many', allowed is a whole number",
        ),
    ],
)
async def test_a_group_with_fields_missing_is_refused_by_name_and_others_go_on(
    spec: dict[str, Any], told: str
) -> None:
    async with Bed().up() as bed, bed.controller():
        serve(bed.api, POD_GROUPS)
        await store(bed, POD_GROUPS, "pg", spec)
        for name in ("p0", "p1"):
            await native(bed, name, label="train")
        gang = await bed.phase("train", "Invalid")
        assert told in condition(gang, "Valid")[2]
        assert not await bed.allocated()
        await bed.job("other", 2)
        await bed.phase("other", "Running")


async def test_a_version_that_is_not_known_is_refused_with_what_is_served() -> None:
    async with Bed().up() as bed, bed.controller():
        serve(bed.api, POD_GROUPS, version="v2")
        await native(bed, "p0", label="train")
        gang = await bed.phase("train", "Invalid")
        assert "apiVersion: found v2, allowed is v1beta1" in condition(gang, "Valid")[2]


async def test_a_minimum_that_is_changed_before_the_plan_counts() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        serve(bed.api, POD_GROUPS)
        await store(bed, POD_GROUPS, "pg", {"schedulingPolicy": {"gang": {"minCount": 3}}})
        for name in ("p0", "p1"):
            await native(bed, name, label="train")
        gang = await bed.phase("train", "Gathering")
        assert gang.status.waiting_for == "1 of 3 pods"
        await bed.api.patch(POD_GROUPS, "pg", {"spec": GANG}, namespace=SPACE)
        await bed.phase("train", "Running")


async def test_a_group_whose_object_goes_while_it_runs_still_gets_successors() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        serve(bed.api, POD_GROUPS)
        await store(bed, POD_GROUPS, "pg", GANG)
        for name in ("p0", "p1"):
            await native(bed, name, label="train")
        await bed.phase("train", "Running")
        await bed.api.delete(POD_GROUPS, "pg", namespace=SPACE)
        await bed.api.delete(PODS, "p0", namespace=SPACE)
        await native(bed, "p2", label="train")
        await until("the successor is bound", lambda: _bound(bed, "train", 2))
        assert set(await bed.bound("train")) == {"p1", "p2"}
