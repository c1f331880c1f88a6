"""Shares of the tier hami through the engine: what a container gets, and in which order (C23, C24)."""

import asyncio

import pytest

from dragoon.api.enforcement import Tier
from dragoon.errors import DeviceBusyError
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.hami_steps import region_file
from dragoon.prepare.enforcement.region import Slot
from dragoon.prepare.journal import Journal
from tests.unit.prepare.scene import Scene, gpu, result
from tests.unit.prepare.sharing import (
    CARD,
    GIB,
    LIBRARY,
    PATHS,
    asks,
    container,
    inside,
    limits_of,
    pod_with_claims,
    refused,
    share,
    sharing_scene,
    variables,
)


async def test_a_share_has_region_library_preload_hooks_and_environment(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi", cores="25")]})
    await engine.prepare(refs["a"])

    assert limits_of(scene, pod) == [(gpu(0).uuid, 4 * GIB, 25)]
    got = await inside(scene, engine, refs["a"])
    folder = PATHS.region(pod["metadata"]["uid"], "main")
    mounts = {mount.container_path: (mount.host_path, mount.options) for mount in got.mounts}
    assert mounts["/usr/local/vgpu/libvgpu.so"] == (
        str(LIBRARY),
        ("ro", "nosuid", "nodev", "bind"),
    ), "never noexec: the loader would ignore it"
    assert mounts["/etc/ld.so.preload"] == (
        f"{folder}.preload",
        ("ro", "nosuid", "nodev", "noexec", "bind"),
    )
    assert mounts["/usr/local/dragoon/region"] == (
        str(folder),
        ("rw", "nosuid", "nodev", "noexec", "bind"),
    )
    assert mounts["/tmp/cudevshr.cache"][0] == f"{folder}/usage", "where it looks without env"
    assert [hook.hook_name for hook in got.hooks] == ["createContainer", "startContainer"]
    assert all(hook.env for hook in got.hooks), "without its own it has the container's"
    assert variables(got)["CUDA_DEVICE_MEMORY_SHARED_CACHE"] == "/usr/local/dragoon/region/usage"
    files = scene.disk.files()
    assert files[folder.with_name(folder.name + ".preload")] == b"/usr/local/vgpu/libvgpu.so\n"
    assert scene.disk.mode(folder) == 0o1777
    assert scene.disk.mode(folder / "usage") == 0o666
    assert scene.disk.mode(PATHS.region_folder) == 0o711


async def test_c23_four_gibibytes_are_4096m_and_what_is_not_throttled_is_100(scene: Scene) -> None:
    engine = await scene.started()
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    await engine.prepare(refs["a"])
    found = variables(await inside(scene, engine, refs["a"]))
    assert found["CUDA_DEVICE_MEMORY_LIMIT_0"] == "4096m"
    assert found["CUDA_DEVICE_SM_LIMIT_0"] == "100"
    assert found["GPU_CORE_UTILIZATION_POLICY"] == "DISABLE"
    assert "CUDA_VISIBLE_DEVICES" not in found


async def test_c23_limits_are_whole_mebibytes_rounded_down(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "1000M", cores="1")]})
    await engine.prepare(refs["a"])
    found = variables(await inside(scene, engine, refs["a"]))
    assert found["CUDA_DEVICE_MEMORY_LIMIT_0"] == "953m"
    assert found["GPU_CORE_UTILIZATION_POLICY"] == "FORCE"
    assert limits_of(scene, pod) == [(gpu(0).uuid, 953 << 20, 1)]


@pytest.mark.parametrize(
    "amounts",
    [{"memory": "0"}, {"memory": "-1Gi"}, {"memory": "1023Ki"}, {"memory": "25Gi"}, {}],
)
async def test_c23_a_share_that_cannot_be_leaves_no_trace(
    scene: Scene, amounts: dict[str, str]
) -> None:
    engine = await scene.started()
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0, consumedCapacity=amounts)]})
    assert "consumedCapacity.memory: found" in str(await refused(engine, refs["a"]))
    assert scene.files == {}


async def test_c23_more_gpus_in_a_container_than_the_library_limits_are_refused(
    scene: Scene,
) -> None:
    many = [
        gpu(n, address=PciAddress(0, n, 0), memory_bytes=CARD, uuid=f"GPU-{n}") for n in range(17)
    ]
    scene.gpus.found = Inventory(gpus=tuple(many), simulated=True)
    shares = [
        share(device=f"gpu-{one.address.slug}-shared", request=f"r{n}", share_id=f"s{n}")
        for n, one in enumerate(many)
    ]
    engine = await scene.started()
    _, refs = await pod_with_claims(scene, "p", {"a": shares})
    assert "sees 17 GPUs, the tier hami limits at most 16" in str(await refused(engine, refs["a"]))
    assert scene.files == {}


async def test_c24_number_n_is_the_nth_card_that_the_container_sees(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(
        scene,
        "p",
        {
            "a": [
                share(1, "10Gi", request="big", share_id="s-2"),
                share(0, "4Gi", request="small", cores="30"),
            ]
        },
        container("both", "a"),
    )
    await engine.prepare(refs["a"])
    assert limits_of(scene, pod, "both") == [
        (gpu(0).uuid, 4 * GIB, 30),
        (gpu(1).uuid, 10 * GIB, 100),
    ], "by PCI address, whatever the order of the results"
    found = variables(await inside(scene, engine, refs["a"]))
    assert found["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert found["CUDA_DEVICE_MEMORY_LIMIT_0"] == "4096m"
    assert found["CUDA_DEVICE_MEMORY_LIMIT_1"] == "10240m"
    assert found["CUDA_DEVICE_SM_LIMIT_0"] == "30"


async def test_c24_a_container_with_only_the_second_request_has_it_as_number_0(
    scene: Scene,
) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(
        scene,
        "p",
        {"a": [share(0, "4Gi", request="one"), share(1, "10Gi", request="two", share_id="s-2")]},
        container("first", "a/one"),
        container("second", "a/two"),
    )
    await engine.prepare(refs["a"])
    assert limits_of(scene, pod, "first") == [(gpu(0).uuid, 4 * GIB, 100)]
    assert limits_of(scene, pod, "second") == [(gpu(1).uuid, 10 * GIB, 100)]
    found = variables(await inside(scene, engine, refs["a"], request="two"))
    assert found["CUDA_DEVICE_MEMORY_LIMIT_0"] == "10240m"
    assert "CUDA_DEVICE_MEMORY_LIMIT_1" not in found


async def test_c24_two_runs_write_the_same_spec(scene: Scene) -> None:
    engine = await scene.started()
    _, refs = await pod_with_claims(
        scene, "p", {"a": [share(1, "10Gi", share_id="s-2", request="b"), share(0, "4Gi")]}
    )
    await engine.prepare(refs["a"])
    spec = scene.disk.files()[PATHS.spec(refs["a"].uid)]
    await engine.unprepare(refs["a"])
    await engine.prepare(refs["a"])
    assert scene.disk.files()[PATHS.spec(refs["a"].uid)] == spec


async def test_shares_of_one_card_in_one_container_add_up(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(
        scene,
        "p",
        {
            "a": [
                share(0, "4Gi", cores="20", request="x"),
                share(0, "2Gi", cores="30", request="y", share_id="s-2"),
            ],
            "b": [share(0, "1Gi", cores="10", share_id="s-3")],
        },
    )
    await asyncio.gather(*(engine.prepare(ref) for ref in refs.values()))
    assert limits_of(scene, pod) == [(gpu(0).uuid, 7 * GIB, 60)]
    found = variables(await inside(scene, engine, *refs.values()))
    assert found["CUDA_DEVICE_MEMORY_LIMIT_0"] == "7168m"


async def test_a_share_without_a_ceiling_frees_the_container_of_the_others_ceilings(
    scene: Scene,
) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(
        scene,
        "p",
        {"a": [share(0, cores="20", request="x"), share(0, request="y", share_id="s-2")]},
    )
    await engine.prepare(refs["a"])
    assert limits_of(scene, pod)[0][2] == 100


async def test_a_whole_gpu_beside_a_share_has_an_ordinal_and_all_of_its_memory(
    scene: Scene,
) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"w": [result(0)], "s": [share(1, "4Gi")]})
    for ref in refs.values():
        await engine.prepare(ref)
    assert limits_of(scene, pod) == [(gpu(0).uuid, CARD, 100), (gpu(1).uuid, 4 * GIB, 100)]


async def test_a_priority_is_of_the_container_and_the_highest_that_is_asked_for(
    scene: Scene,
) -> None:
    engine = await scene.started()
    config = {"a": [asks("hami", ["high"], priority="High")]}
    pod, refs = await pod_with_claims(
        scene,
        "p",
        {"a": [share(0, request="high"), share(1, request="low", share_id="s-2")]},
        config=config,
    )
    await engine.prepare(refs["a"])
    assert variables(await inside(scene, engine, refs["a"]))["CUDA_TASK_PRIORITY"] == "0"
    data = scene.disk.files()[region_file(PATHS, pod["metadata"]["uid"], "main")]
    assert data == region.build(
        [Slot(gpu(0).uuid, 4 * GIB), Slot(gpu(1).uuid, 4 * GIB)], priority=0
    )


async def test_a_request_that_no_container_names_is_prepared_and_limits_nobody(
    scene: Scene,
) -> None:
    engine = await scene.started()
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0)]}, container("idle"))
    assert await engine.prepare(refs["a"])
    got = await inside(scene, engine, refs["a"])
    assert got.hooks == ()
    await engine.unprepare(refs["a"])
    assert scene.files == {}


async def test_c26_a_share_without_a_wish_is_the_whole_card_and_has_it_alone(
    scene: Scene,
) -> None:
    engine = await scene.started(wait_s=0.0)
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "24Gi")]})
    _, others = await pod_with_claims(scene, "q", {"a": [share(0, "512Mi", share_id="s-2")]})
    await engine.prepare(refs["a"])
    assert limits_of(scene, pod) == [(gpu(0).uuid, CARD, 100)]
    with pytest.raises(DeviceBusyError):
        await engine.prepare(others["a"])


async def test_c42_a_claims_config_wins_over_its_class_and_a_scope_reaches_subrequests() -> None:
    scene = sharing_scene(Tier.HAMI, Tier.NONE)
    engine = await scene.started()
    of_class = asks("hami") | {"source": "FromClass"}
    config = {"a": [asks("none", ["gpu/small"]), of_class, asks("none", ["other"])]}
    _, refs = await pod_with_claims(
        scene,
        "p",
        {
            "a": [
                share(0, request="gpu/small"),
                share(1, request="gpu/large", share_id="s-2"),
                share(2, request="plain", share_id="s-3"),
            ]
        },
        config=config,
    )
    await engine.prepare(refs["a"])
    (entry,) = Journal(MemoryEffects(scene.disk), PATHS).contents().entries
    assert [one.share and one.share.tier for one in entry.devices] == ["none", "hami", "hami"]
