"""Claims that several containers or pods use: cases C24 and C28, manifests m02 and m03."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from dragoon.api.enforcement import Tier
from dragoon.errors import ClaimInUseError, DeviceBusyError
from dragoon.kube.port import PODS
from tests.unit.prepare.scene import Scene, device, ended, result
from tests.unit.prepare.sharing import GIB, container, inside, pod_with_claims, share, sharing_scene


async def test_c24_c28_m02_containers_of_a_pod_on_one_claim_get_the_same_from_one_prepare() -> None:
    scene = Scene()
    engine = await scene.started()
    _, refs = await pod_with_claims(
        scene,
        "pair",
        {"g": [result(0), result(1)]},
        container("serve", "g"),
        container("embed", "g"),
        initContainers=[container("warm", "g")],
    )
    (first, second) = await engine.prepare(refs["g"])
    assert [first.device, second.device] == [device(0), device(1)]
    assert len(scene.files) == 1 + 1 + 2, "one entry, one spec, a marker for each GPU"
    got = [await inside(scene, engine, refs["g"]) for _ in ("serve", "embed", "warm")]
    assert got[0] == got[1] == got[2]


async def test_c28_m03_a_second_pod_on_a_claim_gets_the_same_and_disturbs_nothing() -> None:
    scene = Scene()
    engine = await scene.started()
    claim = await scene.claim("common")
    await scene.pod("server", claim)
    answer = await engine.prepare(claim)
    before = scene.files
    short = await scene.pod("one-shot", claim)

    assert await engine.prepare(claim) == answer
    assert scene.files == before

    short["status"] |= {"phase": "Succeeded", "containerStatuses": [ended()]}
    await scene.api.replace(PODS, short, subresource="status")
    with pytest.raises(ClaimInUseError, match="team-a/server"):
        await unprepared(scene, engine.unprepare(claim))
    assert scene.files == before


async def test_c28_what_two_pods_share_is_counted_once() -> None:
    scene = sharing_scene(Tier.NONE)
    engine = await scene.started(wait_s=0.0)
    common = await scene.claim("common", share(0, "16Gi", share_id="s-1"))
    await asyncio.gather(engine.prepare(common), engine.prepare(common))
    await engine.prepare(common)
    fits = await scene.claim("fits", share(0, "8Gi", share_id="s-2"))
    await engine.prepare(fits)
    more = await scene.claim("more", share(0, "512Mi", share_id="s-3"))
    with pytest.raises(DeviceBusyError):
        await engine.prepare(more)
    await engine.unprepare(common)
    assert await engine.prepare(more)


@pytest.mark.parametrize("first", ["a", "b"])
async def test_c28_the_order_of_two_prepares_at_once_makes_no_difference(first: str) -> None:
    scene = sharing_scene()
    old, new = await scene.started(), await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"g": [share(0, "4Gi")]})
    engines = (old, new) if first == "a" else (new, old)
    answers = await asyncio.gather(*(engine.prepare(refs["g"]) for engine in engines))
    assert answers[0] == answers[1]
    got = await inside(scene, old, refs["g"])
    assert f"CUDA_DEVICE_MEMORY_LIMIT_0={4 * GIB >> 20}m" in got.env
    assert pod["metadata"]["uid"] in " ".join(mount.host_path for mount in got.mounts)


async def unprepared(scene: Scene, call: Coroutine[Any, Any, None]) -> None:
    """Lets the time pass in which an unprepare looks whether containers have ended."""
    task = asyncio.create_task(call)
    while not task.done():
        await asyncio.sleep(0)
        scene.clock.advance(0.5)
    await task
