"""Shares of the tier hami: what is refused, repaired or waited for."""

import asyncio

import pytest

from dragoon.errors import ClaimGoneError, DragoonError
from dragoon.kube.port import CLAIMS, PODS
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.hami_steps import region_file
from dragoon.prepare.enforcement.region import Slot
from dragoon.prepare.observing import Repaired, Reported
from dragoon.prepare.paths import temporary
from tests.unit.prepare.scene import Scene, device, gpu, result, running
from tests.unit.prepare.sharing import (
    GIB,
    PATHS,
    container,
    install_library,
    limits_of,
    pod_with_claims,
    refused,
    share,
)


async def test_a_region_folder_that_is_there_with_other_limits_gets_the_right_ones(
    scene: Scene,
) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    file = region_file(PATHS, pod["metadata"]["uid"], "main")
    outside = MemoryEffects(scene.disk)
    outside.make_folder(file.parent, 0o755)
    outside.write(file, region.build([Slot("GPU-x", 77 * GIB)] * 3, priority=0), 0o600)
    await engine.prepare(refs["a"])
    assert limits_of(scene, pod)[0][1] == 4 * GIB
    assert scene.disk.mode(file.parent) == 0o1777


async def test_limits_that_a_container_changed_are_put_back_where_they_stand(
    scene: Scene,
) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    await engine.prepare(refs["a"])
    file = region_file(PATHS, pod["metadata"]["uid"], "main")
    data = bytearray(scene.disk.files()[file])
    outside = MemoryEffects(scene.disk)
    outside.patch(file, 1600, b"\xff" * 7)
    outside.patch(file, 2008912, b"\x07")
    effects = MemoryEffects(scene.disk)
    await scene.engine(effects).prepare(refs["a"])
    data[2008912] = 7
    assert scene.disk.files()[file] == bytes(data), "what processes wrote beside them stays"
    assert str(file) in scene.told(Repaired)[0].what
    assert not any(f"rename {file}" in done for done in effects.performed)


async def test_a_lost_region_is_back_with_the_next_look(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    await engine.prepare(refs["a"])
    MemoryEffects(scene.disk).remove_tree(PATHS.region(pod["metadata"]["uid"], "main"))
    await scene.started()
    assert limits_of(scene, pod)[0][1] == 4 * GIB


async def test_a_library_that_was_replaced_refuses_new_shares_and_is_reported_for_old_ones(
    scene: Scene,
) -> None:
    engine = await scene.started()
    _, old = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    _, new = await pod_with_claims(scene, "q", {"a": [share(1, "4Gi")]})
    await engine.prepare(old["a"])
    install_library(scene, b"another one")
    before = scene.files

    assert "was replaced while claims use it" in str(await refused(engine, new["a"]))
    assert scene.files == before
    assert "put the library back" in str(await refused(engine, old["a"])), "no restart with it"
    await scene.started()
    assert any("was replaced" in event.problem for event in scene.told(Reported))
    await engine.unprepare(old["a"])
    assert scene.files == {}


async def test_one_container_with_a_share_and_a_mig_instance_is_refused(scene: Scene) -> None:
    engine = await scene.started()
    _, refs = await pod_with_claims(
        scene,
        "p",
        {"a": [share(0)], "m": [result(1, device=f"{device(1)}-mig-1g10gb-0")]},
    )
    error = await refused(engine, refs["a"])
    assert "a share and a MIG instance" in str(error)
    assert error.hint == "put them into two containers"


async def test_a_container_that_chooses_its_own_cuda_devices_is_refused(scene: Scene) -> None:
    engine = await scene.started()
    chooses = container("main", "a", env=[{"name": "CUDA_VISIBLE_DEVICES", "value": "1"}])
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0)]}, chooses)
    assert "sets CUDA_VISIBLE_DEVICES" in str(await refused(engine, refs["a"]))


async def test_a_pod_that_is_gone_or_another_one_by_now_is_told(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0)]})
    await scene.api.delete(PODS, "p", namespace="team-a")
    with pytest.raises(ClaimGoneError, match="pod p"):
        await engine.prepare(refs["a"])
    del pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]
    await scene.api.create(PODS, {**pod, "metadata": {"name": "p", "namespace": "team-a"}})
    with pytest.raises(ClaimGoneError):
        await engine.prepare(refs["a"])


async def test_a_second_claim_of_the_pod_that_is_gone_is_told(scene: Scene) -> None:
    engine = await scene.started()
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0)], "b": [share(1)]})
    await scene.api.delete(CLAIMS, refs["b"].name, namespace="team-a")
    with pytest.raises(ClaimGoneError, match="another claim of that pod"):
        await engine.prepare(refs["a"])


async def test_c50_a_pod_that_cannot_be_read_is_waited_for(scene: Scene) -> None:
    engine = await scene.started()
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0)]})
    scene.api.faults.fail(verb="get", resource=PODS, times=2)
    call = asyncio.create_task(engine.prepare(refs["a"]))
    while not call.done():
        await asyncio.sleep(0)
        scene.clock.advance(0.1)
    assert call.result()


async def test_shares_made_for_extended_resources_are_limited_like_others(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]}, container("main"))
    pod["spec"]["resourceClaims"] = []
    pod = await scene.api.replace(PODS, pod)
    pod["status"] = {
        "extendedResourceClaimStatus": {
            "resourceClaimName": refs["a"].name,
            "requestMappings": [
                {"containerName": "main", "resourceName": "x", "requestName": "slice"}
            ],
        }
    }
    await scene.api.replace(PODS, pod, subresource="status")
    await engine.prepare(refs["a"])
    assert limits_of(scene, pod) == [(gpu(0).uuid, 4 * GIB, 100)]


async def test_running_containers_keep_a_share_from_being_taken_back(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0)]})
    await engine.prepare(refs["a"])
    pod["status"] |= {"phase": "Running", "containerStatuses": [running()]}
    await scene.api.replace(PODS, pod, subresource="status")
    call = asyncio.create_task(engine.unprepare(refs["a"]))
    while not call.done():
        await asyncio.sleep(0)
        scene.clock.advance(0.5)
    with pytest.raises(DragoonError, match="still in use"):
        call.result()


async def test_a_region_that_no_claim_is_for_is_removed_at_start(scene: Scene) -> None:
    engine = await scene.started()
    kept, refs = await pod_with_claims(scene, "p", {"a": [share(0)]})
    await engine.prepare(refs["a"])
    outside = MemoryEffects(scene.disk)
    for path in (PATHS.region("0a", "gone"), PATHS.region("0b", "half")):
        outside.make_folder(path, 0o755)
    outside.write(PATHS.preload("0a", "gone"), b"", 0o644)
    outside.write(temporary(PATHS.region("0c", "draft")), b"", 0o644)
    await scene.started()
    mine = PATHS.region(kept["metadata"]["uid"], "main").name
    assert outside.names(PATHS.region_folder) == (mine, f"{mine}.preload")


async def test_c32_no_region_is_removed_while_an_entry_cannot_be_read(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0)]})
    await engine.prepare(refs["a"])
    outside = MemoryEffects(scene.disk)
    outside.write(PATHS.journal(refs["a"].uid), b"torn", 0o600)
    survivor = await scene.started()
    assert limits_of(scene, pod), "its container may run"
    await survivor.unprepare(refs["a"])
    await scene.started()
    assert scene.files == {}
    assert outside.names(PATHS.region_folder) == ()


async def test_c20_usage_of_an_earlier_boot_is_not_counted_even_before_anything_is_tidied(
    scene: Scene,
) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0)]})
    await engine.prepare(refs["a"])
    file = region_file(PATHS, pod["metadata"]["uid"], "main")
    fresh = scene.disk.files()[file]
    MemoryEffects(scene.disk).patch(file, 2008912, b"\x07")
    scene.disk.reboot("boot-2")
    await scene.engine().prepare(refs["a"])
    assert scene.disk.files()[file] == fresh


async def test_claims_that_mean_different_limits_for_one_container_do_not_undo_each_other(
    scene: Scene,
) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0)], "b": [share(1)]})
    await engine.prepare(refs["a"])
    before = scene.files
    pod["spec"]["containers"] = [container("main", "b")]
    await scene.api.replace(PODS, pod)
    assert f"was made otherwise for claim {refs['a']}" in str(await refused(engine, refs["b"]))
    assert scene.files == before
