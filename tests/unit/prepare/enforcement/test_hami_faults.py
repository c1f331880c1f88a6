"""The seven faults of enforcement.md section 2.2, one by one: each is a demand on our shares."""

import errno
from typing import Any

import pytest

from dragoon.errors import DeviceBusyError, StateError
from dragoon.prepare.effects_memory import Faults, MemoryEffects
from dragoon.prepare.enforcement.errors import UnenforceableError
from dragoon.prepare.enforcement.hami_steps import region_file
from tests.unit.prepare.scene import Scene, gpu, result
from tests.unit.prepare.sharing import (
    GIB,
    PATHS,
    container,
    inside,
    limits_of,
    pod_with_claims,
    refused,
    share,
    shared,
    variables,
)


async def test_fault_1_preparing_again_after_restart_and_reboot_is_no_error(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0)]})
    answer = await engine.prepare(refs["a"])
    assert await (await scene.started()).prepare(refs["a"]) == answer
    scene.disk.reboot("boot-2", wiped=[PATHS.cdi_folder])
    again = await scene.started()
    assert region_file(PATHS, pod["metadata"]["uid"], "main") not in scene.disk.files(), (
        "what processes of the last boot used is not counted in this one"
    )
    assert await again.prepare(refs["a"]) == answer
    assert limits_of(scene, pod)


async def test_fault_2_shares_beyond_the_card_are_never_prepared(scene: Scene) -> None:
    engine = await scene.started(wait_s=0.0)
    _, first = await pod_with_claims(scene, "p", {"a": [share(0, "12Gi")]})
    _, second = await pod_with_claims(scene, "q", {"a": [share(0, "12Gi")]})
    _, third = await pod_with_claims(scene, "r", {"a": [share(0, "1Gi")]})
    await engine.prepare(first["a"])
    await engine.prepare(second["a"])
    with pytest.raises(DeviceBusyError, match=f"{first['a'].uid}|{second['a'].uid}"):
        await engine.prepare(third["a"])
    await engine.unprepare(second["a"])
    assert await engine.prepare(third["a"])


async def test_fault_2_and_c35_a_half_prepared_share_counts_too(scene: Scene) -> None:
    _, first = await pod_with_claims(scene, "p", {"a": [share(0, "20Gi")]})
    _, second = await pod_with_claims(scene, "q", {"a": [share(0, "5Gi")]})
    await scene.half_prepared(first["a"], done=6)
    survivor = await scene.started(wait_s=0.0)
    with pytest.raises(DeviceBusyError):
        await survivor.prepare(second["a"])
    await survivor.unprepare(first["a"])
    assert await survivor.prepare(second["a"])


async def test_fault_2_and_c35_a_share_and_the_whole_card_wait_for_each_other(
    scene: Scene,
) -> None:
    engine = await scene.started(wait_s=0.0)
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0, "1Gi")]})
    whole = await scene.claim("whole", result(0))
    await engine.prepare(refs["a"])
    with pytest.raises(DeviceBusyError):
        await engine.prepare(whole)
    assert await engine.prepare(await scene.claim("admin", result(0, adminAccess=True)))
    await engine.unprepare(refs["a"])
    await engine.prepare(whole)
    with pytest.raises(DeviceBusyError):
        await engine.prepare(refs["a"])


async def test_fault_2_a_claim_made_by_hand_is_refused_with_the_way_out(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("common", share(0))
    error = await refused(engine, claim)
    assert isinstance(error, UnenforceableError)
    assert "made by hand" in str(error)
    assert "ResourceClaimTemplate" in error.hint
    assert scene.files == {}


async def test_fault_2_a_claim_that_another_pod_uses_too_is_refused(scene: Scene) -> None:
    engine = await scene.started()
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0)]})
    await scene.pod("intruder", refs["a"])
    assert "pods intruder use it too" in str(await refused(engine, refs["a"]))


async def test_fault_3_shares_of_one_device_are_kept_apart_by_share_id(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(
        scene,
        "p",
        {"a": [share(0, "4Gi", request="x"), share(0, "6Gi", request="y", share_id="s-2")]},
        container("one", "a/x"),
        container("two", "a/y"),
    )
    answer = await engine.prepare(refs["a"])
    assert [(one.device, one.share_id) for one in answer] == [
        (shared(0), "s-1"),
        (shared(0), "s-2"),
    ]
    assert len({cdi_id for one in answer for cdi_id in one.cdi_ids}) == 2
    assert limits_of(scene, pod, "one") == [(gpu(0).uuid, 4 * GIB, 100)]
    assert limits_of(scene, pod, "two") == [(gpu(0).uuid, 6 * GIB, 100)]


@pytest.mark.parametrize("turned", [False, True])
async def test_fault_4_the_order_of_results_and_claims_moves_no_limit(
    scene: Scene, turned: bool
) -> None:
    results = [share(2, "3Gi", request="c"), share(0, "1Gi", request="a"), share(1, "2Gi")]
    claims = {"x": results[::-1] if turned else results}
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", claims)
    await engine.prepare(refs["x"])
    assert [limit for _, limit, _ in limits_of(scene, pod)] == [GIB, 2 * GIB, 3 * GIB]


async def test_fault_5_each_claim_of_a_container_continues_the_count(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(
        scene, "p", {"a": [share(0, "1Gi")], "b": [share(1, "2Gi")], "c": [share(2, "3Gi")]}
    )
    folder = PATHS.region(pod["metadata"]["uid"], "main")
    await engine.prepare(refs["a"])
    outside = MemoryEffects(scene.disk)
    outside.patch(folder / "usage", 2008912, b"\x07")  # a process wrote into it
    written = scene.disk.files()[folder / "usage"]
    for name in ("b", "c"):
        await engine.prepare(refs[name])
        assert scene.disk.files()[folder / "usage"] == written, "and nobody begins it anew"
    assert [limit for _, limit, _ in limits_of(scene, pod)] == [GIB, 2 * GIB, 3 * GIB]
    found = variables(await inside(scene, engine, *refs.values()))
    assert [found[f"CUDA_DEVICE_MEMORY_LIMIT_{n}"] for n in range(3)] == ["1024m", "2048m", "3072m"]


async def test_fault_5_a_region_goes_with_the_last_claim_of_its_container(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0)], "b": [share(1)]})
    for ref in refs.values():
        await engine.prepare(ref)
    await engine.unprepare(refs["a"])
    assert limits_of(scene, pod)
    await engine.unprepare(refs["b"])
    assert scene.files == {}
    assert PATHS.region(pod["metadata"]["uid"], "main").name not in MemoryEffects(scene.disk).names(
        PATHS.region_folder
    )


async def test_fault_6_every_container_has_a_region_of_its_own(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(
        scene,
        "p",
        {"a": [share(0, request="x"), share(0, request="y", share_id="s-2")]},
        container("one", "a/x"),
        initContainers=[container("before", "a/y")],
    )
    await engine.prepare(refs["a"])
    uid = pod["metadata"]["uid"]
    assert region_file(PATHS, uid, "one") != region_file(PATHS, uid, "before")
    assert {region_file(PATHS, uid, name) for name in ("one", "before")} <= set(scene.disk.files())


@pytest.mark.parametrize("where", ["containers", "initContainers"])
async def test_fault_6_a_share_in_two_containers_is_refused_with_the_way_out(
    scene: Scene, where: str
) -> None:
    engine = await scene.started()
    second = container("two", "a")
    more: dict[str, Any] = {"initContainers": [second]} if where == "initContainers" else {}
    regular = [container("one", "a/slice")] + ([] if more else [second])
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0)]}, *regular, **more)
    error = await refused(engine, refs["a"])
    assert "one" in str(error)
    assert "two" in str(error)
    assert error.hint == "give each container a request of its own"
    assert scene.files == {}


async def test_fault_7_a_share_without_cores_has_no_ceiling(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0)]})
    await engine.prepare(refs["a"])
    assert limits_of(scene, pod)[0][2] == 100


async def test_fault_7_and_c28_preparing_again_never_touches_the_region_of_a_container(
    scene: Scene,
) -> None:
    engine = await scene.started()
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0)]})
    await engine.prepare(refs["a"])
    effects = MemoryEffects(scene.disk)
    assert await scene.engine(effects).prepare(refs["a"])
    assert effects.performed == []


async def test_fault_7_a_failure_fails_the_prepare(scene: Scene) -> None:
    effects = MemoryEffects(scene.disk)
    engine = await scene.started(effects, wait_s=0.0)
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0)]})
    begun = len(effects.performed)
    for number in range(6, 12):
        effects.faults = Faults(failures={begun + number: errno.EROFS})
        with pytest.raises(StateError):
            await engine.prepare(refs["a"])
        effects.faults = Faults()
        await engine.unprepare(refs["a"])
        assert scene.files == {}
        begun = len(effects.performed)
