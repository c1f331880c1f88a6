"""What people write wrong: told with the field, what was found and what is allowed; nothing done."""

import pytest

from dragoon.api.gang import LABEL
from dragoon.kube.port import GANGS, PODS
from tests.scenario.gang.bed import SPACE, Bed, condition, says
from tests.scenario.pluginbed import until


@pytest.mark.parametrize("size", ["0", "-1", "four", "4097", "1.5"])
async def test_a_size_that_is_none_is_told_and_nothing_is_placed(size: str) -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.job("j", 2, size=size)
        gang = await bed.phase("j", "Invalid")
        status, reason, message = condition(gang, "Valid")
        assert (status, reason) == ("False", "BadSize")
        assert f"annotation dragoon.dev/gang-size: found '{size}'" in message
        assert "allowed is a whole number from 1 to 4096" in message
        assert not await bed.allocated()
        assert not await bed.rules()
        await until("events say so", lambda: bed.events("BadSize"))


async def test_a_bare_pod_without_a_size_is_told() -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.pod("p", gang="g")
        gang = await bed.phase("g", "Invalid")
        assert condition(gang, "Valid")[1] == "SizeMissing"


async def test_two_sizes_in_one_gang_are_told_with_the_pods_that_say_them() -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.pod("p0", gang="g", size="2")
        await bed.pod("p1", gang="g", size="3")
        gang = await bed.phase("g", "Invalid")
        status, reason, message = condition(gang, "Valid")
        assert (status, reason) == ("False", "TwoSizes")
        assert "pod team/p0 says 2" in message
        assert "pod team/p1 says 3" in message
        assert not await bed.allocated()


async def test_a_size_that_is_put_right_is_taken() -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.pod("p0", gang="g", size="2")
        await bed.pod("wrong", gang="g", size="3")
        await bed.phase("g", "Invalid")
        await bed.api.delete(PODS, "wrong", namespace=SPACE)
        await bed.pod("p1", gang="g", size="2")
        gang = await bed.phase("g", "Running")
        assert gang.spec.size == 2


async def test_a_gang_is_placed_once_the_pod_that_was_wrong_is_gone() -> None:
    async with Bed().up() as bed, bed.controller():
        for name, size in (("p0", "2"), ("p1", "2"), ("wrong", "3")):
            await bed.pod(name, gang="g", size=size)
        await bed.phase("g", "Invalid")
        await bed.api.delete(PODS, "wrong", namespace=SPACE)
        await bed.phase("g", "Running")
        assert set(await bed.bound("g")) == {"p0", "p1"}


async def test_members_with_different_schedulers_are_told() -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.pod("p0", gang="g", size="2")
        await bed.pod("p1", gang="g", size="2", scheduler="volcano")
        gang = await bed.phase("g", "Invalid")
        _, reason, message = condition(gang, "Valid")
        assert reason == "TwoSchedulers"
        assert "'default-scheduler' (team/p0), 'volcano' (team/p1)" in message


async def test_a_label_that_cannot_name_a_gang_is_told_on_the_pod() -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.pod("p0", gang="Under_Score", size="1")
        await until("an event says so", lambda: bed.events("BadName"))
        assert not (await bed.api.list(GANGS)).items
        assert not await bed.bound("Under_Score")


async def test_more_members_than_ever_come_are_missed_by_number_when_the_time_is_over() -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.gang("g", size=3, timeoutSeconds=1)
        await bed.pod("p0", gang="g")
        gang = await bed.phase("g", "Gathering")
        assert gang.status.waiting_for == "2 of 3 pods"

        async def late() -> bool:
            found = await bed.see("g")
            return says(found, "Complete", "TimedOut")

        await until("it is overdue", late)
        found = await bed.see("g")
        assert found is not None
        assert found.status.waiting_for == "2 of 3 pods, overdue"
        assert "timeoutSeconds: 1" in condition(found, "Complete")[2]
        # They may still come.
        await bed.pod("p1", gang="g")
        await bed.pod("p2", gang="g")
        await bed.phase("g", "Running")


async def test_members_in_another_namespace_are_hinted_at() -> None:
    async with Bed().up() as bed, bed.controller():
        bed.plane.makes_claims = False
        await bed.pod("p0", gang="g", size="2")
        await bed.pod("p1", gang="g", size="2", namespace="other")

        async def hinted() -> bool:
            found = await bed.see("g")
            return found is not None and "1 in other" in found.status.waiting_for

        await until("the hint is there", hinted)


async def test_claims_that_are_missing_are_named() -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.pod("p0", gang="g", size="1", claim="nowhere")
        gang = await bed.phase("g", "Gathering")
        assert gang.status.waiting_for == "claims of pod p0; claim nowhere of pod p0 is not there"
        assert condition(gang, "Complete")[:2] == ("False", "ClaimsMissing")
        await bed.claim("nowhere", 1)
        await bed.phase("g", "Running")


async def test_a_label_changed_on_a_placed_pod_is_told() -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.job("j", 2)
        await bed.phase("j", "Running")
        await bed.api.patch(PODS, "j-0", {"metadata": {"labels": {LABEL: "k"}}}, namespace=SPACE)

        async def told() -> bool:
            found = await bed.see("j")
            return says(found, "Valid", "LabelChanged")

        await until("it is told", told)
        # It holds devices of the first gang, and is placed for no other.
        assert await bed.see("k") is None
        assert len({**await bed.bound("j"), **await bed.bound("k")}) == 2


async def test_pods_without_the_gate_are_told_and_never_placed() -> None:
    async with Bed(gated=False).up() as bed, bed.controller() as controller:
        bed.plane.binds = False
        await bed.job("j", 2)

        async def told() -> bool:
            found = await bed.see("j")
            return says(found, "Ungated", "PodsWithoutGate")

        await until("it is told", told)
        await until("events say so", lambda: bed.events("Ungated"))
        assert not await bed.allocated()
        assert any("gate" in missing for missing in controller.not_ready())


async def test_one_fault_is_one_event_however_often_it_is_seen() -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.pod("p0", gang="g", size="0")
        await bed.phase("g", "Invalid")
        for index in range(3):
            await bed.api.patch(
                PODS, "p0", {"metadata": {"annotations": {"x": str(index)}}}, namespace=SPACE
            )
        await bed.pod("p1", gang="other", size="0")
        await bed.phase("other", "Invalid")
        await until("both are told", lambda: _count(bed, 2))


async def _count(bed: Bed, wanted: int) -> bool:
    return len(await bed.events("BadSize")) == wanted
