"""What shares use, as commands and metrics read it."""

from pathlib import Path

from dragoon.api.enforcement import Tier
from dragoon.gpu.limits_memory import MemoryCaps
from dragoon.gpu.model import PciAddress
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.enforcement.hami_steps import region_file
from dragoon.prepare.enforcement.usage import CardUsage, usage
from dragoon.prepare.journal import Entry, Journal
from dragoon.prepare.paths import Paths
from tests.unit.prepare.enforcement.regions import running
from tests.unit.prepare.scene import Scene, gpu
from tests.unit.prepare.sharing import GIB, PATHS, container, pod_with_claims, share, sharing_scene

CARD_0 = PciAddress(0, 0x10, 0)


def entries(scene: Scene) -> tuple[Entry, ...]:
    return Journal(MemoryEffects(scene.disk), PATHS).contents().entries


async def test_each_container_is_told_once_with_its_claims_and_what_it_uses() -> None:
    scene = sharing_scene()
    engine = await scene.started()
    pod, refs = await pod_with_claims(
        scene,
        "p",
        {"a": [share(0, "4Gi", request="x")], "b": [share(1, "2Gi", cores="30", request="y")]},
        container("one", "a", "b"),
    )
    for ref in refs.values():
        await engine.prepare(ref)
    uid = pod["metadata"]["uid"]
    file = region_file(PATHS, uid, "one")
    data = running(scene.disk.files()[file], 0, {0: 3 * GIB, 1: 5})
    effects = MemoryEffects(scene.disk)
    effects.patch(file, 0, data)

    (found,) = usage(entries(scene), effects, PATHS)

    assert (set(found.claims), found.pod_uid, found.container, found.problem) == (
        set(refs.values()),
        uid,
        "one",
        "",
    )
    assert found.cards == (
        CardUsage(gpu(0).uuid, 4 * GIB, 3 * GIB, 100, frozenset({1})),
        CardUsage(gpu(1).uuid, 2 * GIB, 5, 30, frozenset({1})),
    )


async def test_a_region_that_a_container_broke_is_a_problem_of_that_container_alone() -> None:
    scene = sharing_scene()
    engine = await scene.started()
    pods = []
    for name in ("p", "q"):
        pod, refs = await pod_with_claims(scene, name, {"a": [share(0, "1Gi", share_id=name)]})
        await engine.prepare(refs["a"])
        pods.append(pod["metadata"]["uid"])
    effects = MemoryEffects(scene.disk)
    effects.patch(region_file(PATHS, pods[0], "main"), 0, b"garbage")
    found = {one.pod_uid: one for one in usage(entries(scene), effects, PATHS)}
    assert "another layout" in found[pods[0]].problem
    assert found[pods[1]].cards
    effects.remove_tree(PATHS.region(pods[1], "main"))
    found = {one.pod_uid: one for one in usage(entries(scene), effects, PATHS)}
    assert found[pods[1]].problem.endswith("is not there")


async def test_a_capped_pod_is_told_by_the_driver(tmp_path: Path) -> None:
    scene = sharing_scene(Tier.CGROUP)
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    uid = pod["metadata"]["uid"]
    scene.disk.cards.cgroups.add(PATHS.pod_cgroups(uid)[0])
    await engine.prepare(refs["a"])
    real = Paths(PATHS.driver, PATHS.state_folder, PATHS.cdi_folder, tmp_path)
    cgroup = real.pod_cgroups(uid)[0]
    limits = MemoryCaps(frozenset({CARD_0}), used={(CARD_0, cgroup): GIB})

    def ask(known: MemoryCaps | None) -> tuple[tuple[CardUsage, ...], str]:
        (found,) = usage(entries(scene), HostEffects(), real, known)
        assert (found.pod_uid, found.container) == (uid, "")
        return found.cards, found.problem

    assert ask(limits) == ((), "the pod has no cgroup any more")
    cgroup.mkdir(parents=True)
    assert ask(limits) == ((CardUsage(str(CARD_0), 0, GIB),), "")
    assert "does not tell" in ask(None)[1]
    assert "does not list it" in ask(MemoryCaps(frozenset()))[1]


def test_nothing_is_told_where_nothing_is_shared() -> None:
    scene = sharing_scene()
    assert usage(entries(scene), MemoryEffects(scene.disk), PATHS) == ()
