"""Shares of the tier cgroup: the driver caps the pod's cgroup, and is asked again what it has."""

import asyncio

import pytest

from dragoon.api.enforcement import Tier
from dragoon.errors import StateError
from dragoon.gpu.model import PciAddress
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.observing import Repaired
from tests.unit.prepare.scene import Scene, until
from tests.unit.prepare.sharing import (
    GIB,
    PATHS,
    asks,
    container,
    pod_with_claims,
    refused,
    share,
    sharing_scene,
)

CARD_0, CARD_1 = PciAddress(0, 0x10, 0), PciAddress(0, 0x11, 0)
UID = "6f1d3a52-6d0e-4d43-9f6c-52a1c6a0d5b7"


@pytest.fixture
def scene() -> Scene:
    return sharing_scene(Tier.CGROUP)


def test_the_kubelets_cgroups_are_looked_for_under_all_their_names() -> None:
    escaped = UID.replace("-", "_")
    assert {str(path.relative_to("/sys/fs/cgroup")) for path in PATHS.pod_cgroups(UID)} == {
        f"kubepods.slice/kubepods-pod{escaped}.slice",
        f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{escaped}.slice",
        f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{escaped}.slice",
        f"kubepods/pod{UID}",
        f"kubepods/burstable/pod{UID}",
        f"kubepods/besteffort/pod{UID}",
    }


@pytest.mark.parametrize("which", range(6))
async def test_a_pod_is_capped_at_its_share_and_the_cap_goes_with_the_claim(
    scene: Scene, which: int
) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    cgroup = PATHS.pod_cgroups(pod["metadata"]["uid"])[which]
    cards = scene.disk.cards
    cards.cgroups.add(cgroup)
    await engine.prepare(refs["a"])
    assert cards.caps == {(CARD_0, cgroup): 4 * GIB}
    await engine.unprepare(refs["a"])
    assert cards.caps == {}
    assert scene.files == {}


async def test_a_pods_shares_of_one_card_are_one_cap_until_the_last_claim_goes(
    scene: Scene,
) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(
        scene,
        "p",
        {
            "a": [share(0, "4Gi"), share(1, "3Gi", share_id="s-2", request="x")],
            "b": [share(0, "1Gi")],
        },
        container("one", "a"),
        container("two", "b"),
    )
    cgroup = PATHS.pod_cgroups(pod["metadata"]["uid"])[0]
    scene.disk.cards.cgroups.add(cgroup)
    for ref in refs.values():
        await engine.prepare(ref)
    assert scene.disk.cards.caps == {(CARD_0, cgroup): 5 * GIB, (CARD_1, cgroup): 3 * GIB}
    await engine.unprepare(refs["a"])
    assert scene.disk.cards.caps == {(CARD_0, cgroup): 5 * GIB}
    await engine.unprepare(refs["b"])
    assert scene.disk.cards.caps == {}


async def test_containers_of_capped_pods_need_nothing_else(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    scene.disk.cards.cgroups.add(PATHS.pod_cgroups(pod["metadata"]["uid"])[0])
    await engine.prepare(refs["a"])
    spec = scene.disk.files()[PATHS.spec(refs["a"].uid)].decode()
    assert "hooks" not in spec
    assert "ld.so.preload" not in spec


async def test_a_pod_without_a_cgroup_is_waited_for_and_refused_with_where_it_was_looked_for(
    scene: Scene,
) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    call = asyncio.create_task(engine.prepare(refs["a"]))
    while not call.done():
        await until(lambda: call.done() or scene.clock.sleeping > 0)
        scene.clock.advance(0.5)
    with pytest.raises(StateError, match=pod["metadata"]["uid"]) as caught:
        call.result()
    assert "cgroupRoot" in caught.value.hint
    assert scene.files == {}, "nothing was begun"


async def test_a_cap_that_was_lost_is_set_again_within_a_minute(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    cgroup = PATHS.pod_cgroups(pod["metadata"]["uid"])[0]
    scene.disk.cards.cgroups.add(cgroup)
    await engine.prepare(refs["a"])
    loops = asyncio.create_task(engine.run())
    await until(lambda: scene.clock.sleeping == 2)
    scene.clock.advance(1)  # what changed by the prepare is looked at now, not later
    await until(lambda: scene.clock.sleeping == 2)
    MemoryEffects(scene.disk).set_memory_cap(CARD_0, cgroup, None)
    for _ in range(2):
        scene.clock.advance(60)
        await until(lambda: scene.clock.sleeping == 2)
    assert scene.disk.cards.caps == {(CARD_0, cgroup): 4 * GIB}
    assert "the memory cap of pod" in scene.told(Repaired)[0].what
    loops.cancel()


async def test_a_cgroup_that_is_gone_took_its_cap_along(scene: Scene) -> None:
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    cgroup = PATHS.pod_cgroups(pod["metadata"]["uid"])[0]
    scene.disk.cards.cgroups.add(cgroup)
    await engine.prepare(refs["a"])
    scene.disk.cards.end_of(cgroup)
    await engine.unprepare(refs["a"])
    assert scene.files == {}


async def test_a_ceiling_of_compute_that_cannot_be_kept_is_refused(scene: Scene) -> None:
    engine = await scene.started()
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0, cores="25")]})
    error = await refused(engine, refs["a"])
    assert "found cores 25" in str(error)
    assert "hami" in error.hint


async def test_a_priority_is_refused(scene: Scene) -> None:
    engine = await scene.started()
    config = {"a": [asks(None, priority="High")]}
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0)]}, config=config)
    assert "priority: found High" in str(await refused(engine, refs["a"]))


@pytest.mark.parametrize("how", ["by hand", "two containers"])
async def test_the_cap_too_needs_one_pod_and_one_container(scene: Scene, how: str) -> None:
    engine = await scene.started()
    if how == "by hand":
        claim = await scene.claim("common", share(0))
    else:
        two = (container("one", "a"), container("two", "a"))
        _, refs = await pod_with_claims(scene, "p", {"a": [share(0)]}, *two)
        claim = refs["a"]
    assert (await refused(engine, claim)).code == "Unenforceable"
    assert scene.files == {}
