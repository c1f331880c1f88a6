"""What the audit reports of the processes on a node's cards."""

import asyncio
from pathlib import Path

from dragoon.api.enforcement import Tier
from dragoon.gpu.limits import MemoryLimit
from dragoon.gpu.limits_memory import MemoryCaps
from dragoon.kube.port import PODS, Object
from dragoon.prepare.audit.auditing import PAUSE_S
from dragoon.prepare.audit.judging import Cause
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.enforcement.hami_steps import region_file
from dragoon.prepare.engine import Engine
from dragoon.prepare.observing import Reported
from tests.unit.prepare.audit.auditbed import MONITOR, Bed, bed, cgroup_of, container_id, plain_pod
from tests.unit.prepare.audit.auditbed import running as reported
from tests.unit.prepare.enforcement.regions import running
from tests.unit.prepare.scene import gpu, result, until
from tests.unit.prepare.sharing import (
    GIB,
    PATHS,
    container,
    pod_with_claims,
    share,
    sharing_scene,
)

CARD = gpu(0).address


async def with_share(it: Bed, name: str = "p", memory: str = "4Gi") -> tuple[Object, Engine]:
    """A pod with a share of card 0, prepared and running."""
    engine = await it.scene.started(cgroup_root=it.settings.cgroup_root)
    pod, refs = await pod_with_claims(it.scene, name, {"a": [share(0, memory, share_id=name)]})
    it.scene.disk.cards.cgroups.add(cgroup_folder(it, pod))
    await engine.prepare(refs["a"])
    return await reported(it.scene, pod), engine


def cgroup_folder(it: Bed, pod: Object) -> Path:
    """Where the kubelet has the cgroup of a pod."""
    return it.settings.paths.pod_cgroups(pod["metadata"]["uid"])[0]


def load_library(it: Bed, pod: Object, slot: int = 0) -> None:
    """A process takes a slot of its container's region; its pid there is slot + 1."""
    file = region_file(PATHS, pod["metadata"]["uid"], "main")
    data = running(it.scene.disk.files()[file], slot, {0: GIB})
    MemoryEffects(it.scene.disk).patch(file, 0, data)


async def test_a_process_with_its_claim_and_under_its_limit_is_no_finding(tmp_path: Path) -> None:
    it = bed(tmp_path)
    pod, _ = await with_share(it)
    load_library(it, pod)
    it.run(0, 100, cgroup_of(pod))
    assert await it.twice() == ()
    assert it.reports == []


async def test_whole_cards_belong_to_every_pod_that_names_their_claim(tmp_path: Path) -> None:
    it = bed(tmp_path)
    engine = await it.scene.started()
    pod, refs = await pod_with_claims(it.scene, "p", {"a": [result(1)]})
    await engine.prepare(refs["a"])
    pod = await reported(it.scene, pod)
    it.run(1, 100, cgroup_of(pod), used=20 * GIB)
    assert await it.twice() == ()
    it.run(2, 100, cgroup_of(pod))
    (found,) = await it.twice()
    assert (found.cause, found.card, found.claims) == (Cause.WITHOUT_CLAIM, gpu(2).address, ())


async def test_a_process_of_a_pod_without_claims_is_told_with_whose_card_it_is(
    tmp_path: Path,
) -> None:
    it = bed(tmp_path)
    pod, _ = await with_share(it)
    load_library(it, pod)
    stranger = await plain_pod(it.scene, "stranger")
    it.run(0, 100, cgroup_of(stranger))
    (found,) = await it.twice()
    assert found.cause is Cause.OTHERS_DEVICE
    assert [one.name for one in found.claims] == ["p-a"]
    assert found.pod is not None
    assert found.pod.name == "stranger"
    assert "python (pid 100) in container main of pod team-a/stranger" in found.message
    assert "team-a/p-a" in found.message


async def test_a_container_that_does_not_name_the_claim_of_its_pod_may_not_use_it(
    tmp_path: Path,
) -> None:
    it = bed(tmp_path)
    engine = await it.scene.started()
    pod, refs = await pod_with_claims(
        it.scene,
        "p",
        {"a": [share(0, "4Gi")]},
        container("main", "a"),
        {"name": "sidecar", "image": "i"},
    )
    await engine.prepare(refs["a"])
    pod = await reported(it.scene, pod)
    load_library(it, pod)
    it.run(0, 100, cgroup_of(pod))
    assert await it.twice() == ()
    it.run(0, 101, cgroup_of(pod, "sidecar"))
    (found,) = await it.twice()
    assert (found.cause, found.pid) == (Cause.OTHERS_DEVICE, 101)


async def test_a_container_that_names_one_request_may_use_that_one_alone(tmp_path: Path) -> None:
    it = bed(tmp_path)
    engine = await it.scene.started()
    both = [result(0, request="x"), result(1, request="y")]
    pod, refs = await pod_with_claims(it.scene, "p", {"a": both}, container("main", "a/x"))
    await engine.prepare(refs["a"])
    pod = await reported(it.scene, pod)
    it.run(0, 100, cgroup_of(pod))
    assert await it.twice() == ()
    it.run(1, 100, cgroup_of(pod))
    assert await it.causes() == {Cause.OTHERS_DEVICE}


async def test_a_process_that_the_library_does_not_count_is_not_limited(tmp_path: Path) -> None:
    it = bed(tmp_path)
    pod, _ = await with_share(it)
    load_library(it, pod)
    it.run(0, 100, cgroup_of(pod))
    it.run(0, 101, cgroup_of(pod), inner=77)
    (found,) = await it.twice()
    assert (found.cause, found.pid) == (Cause.NOT_LIMITED, 101)
    assert "is not loaded" in found.message
    assert [one.name for one in found.claims] == ["p-a"]


async def test_without_its_region_nothing_is_limited(tmp_path: Path) -> None:
    it = bed(tmp_path)
    pod, _ = await with_share(it)
    MemoryEffects(it.scene.disk).remove_tree(PATHS.region(pod["metadata"]["uid"], "main"))
    it.run(0, 100, cgroup_of(pod))
    (found,) = await it.twice()
    assert found.cause is Cause.NOT_LIMITED
    assert "is not there" in found.message


async def test_what_the_driver_counts_beyond_the_shares_is_told_once(tmp_path: Path) -> None:
    it = bed(tmp_path)
    pod, _ = await with_share(it)
    load_library(it, pod, 0)
    load_library(it, pod, 1)
    it.run(0, 100, cgroup_of(pod), used=2 * GIB)
    it.run(0, 101, cgroup_of(pod), used=2 * GIB + GIB // 8, inner=2)
    assert await it.twice() == ()
    it.run(0, 101, cgroup_of(pod), used=3 * GIB, inner=2)
    (found,) = await it.twice()
    assert found.cause is Cause.OVER_LIMIT
    assert "uses 5.0 GiB of GPU 0000:10:00.0, its shares are 4.0 GiB" in found.message
    it.run(0, 101, cgroup_of(pod), used=4 * GIB, inner=2)
    assert await it.twice() == (found,)
    assert it.reports == [(found,)]


async def test_two_shares_of_a_pod_on_a_card_are_one_limit(tmp_path: Path) -> None:
    it = bed(tmp_path)
    engine = await it.scene.started()
    pod, refs = await pod_with_claims(
        it.scene, "p", {"a": [share(0, "4Gi")], "b": [share(0, "2Gi", share_id="s-2")]}
    )
    for ref in refs.values():
        await engine.prepare(ref)
    pod = await reported(it.scene, pod)
    load_library(it, pod)
    it.run(0, 100, cgroup_of(pod), used=6 * GIB)
    assert await it.twice() == ()
    it.run(0, 100, cgroup_of(pod), used=7 * GIB)
    (found,) = await it.twice()
    assert {one.name for one in found.claims} == {"p-a", "p-b"}


async def test_a_capped_pod_is_not_limited_when_the_driver_lost_its_cap(tmp_path: Path) -> None:
    limits = MemoryCaps(frozenset({CARD}))
    it = bed(tmp_path, Tier.CGROUP, limits=limits)
    pod, _ = await with_share(it)
    cgroup = cgroup_folder(it, pod)
    cgroup.mkdir(parents=True)
    limits.set(CARD, cgroup, MemoryLimit(4 * GIB))
    it.run(0, 100, cgroup_of(pod))
    assert await it.twice() == ()
    limits.set(CARD, cgroup, MemoryLimit())
    (found,) = await it.twice()
    assert found.cause is Cause.NOT_LIMITED
    assert "the driver's cap is gone" in found.message


async def test_shares_that_the_administrator_left_without_limits_are_no_findings(
    tmp_path: Path,
) -> None:
    it = bed(tmp_path, Tier.NONE)
    pod, _ = await with_share(it)
    it.run(0, 100, cgroup_of(pod), used=20 * GIB)
    assert await it.twice() == ()


async def test_a_process_of_the_host_is_told_once_for_each_start(tmp_path: Path) -> None:
    it = bed(tmp_path)
    it.run(0, 100, MONITOR)
    (found,) = await it.twice()
    assert (found.cause, found.pod_uid, found.pid, found.started) == (
        Cause.OUTSIDE_PODS,
        "",
        100,
        1000,
    )
    for _ in range(3):
        await it.audit.look()
    assert len(it.reports) == 1
    it.end(0, 100)
    it.run(0, 101, MONITOR)
    assert [one.pid for one in await it.twice()] == [101]


async def test_one_look_is_not_enough_and_what_ends_is_taken_back(tmp_path: Path) -> None:
    it = bed(tmp_path)
    stranger = await plain_pod(it.scene, "stranger")
    it.run(0, 100, cgroup_of(stranger))
    assert await it.audit.look() == ()
    it.end(0, 100)
    assert await it.audit.look() == ()
    assert it.reports == []
    it.run(0, 100, cgroup_of(stranger))
    (found,) = await it.twice()
    it.end(0, 100)
    assert await it.audit.look() == ()
    assert it.reports == [(found,), ()]


async def test_many_processes_of_one_container_are_one_finding(tmp_path: Path) -> None:
    it = bed(tmp_path)
    stranger = await plain_pod(it.scene, "stranger")
    for pid in range(100, 110):
        it.run(0, pid, cgroup_of(stranger))
    await it.twice()
    for pid in range(100, 110):
        it.end(0, pid)
        it.run(0, pid + 100, cgroup_of(stranger))
        await it.audit.look()
    assert [[one.cause for one in told] for told in it.reports] == [[Cause.WITHOUT_CLAIM]]


async def test_a_pod_that_the_api_server_does_not_show_is_judged_by_the_journal_alone(
    tmp_path: Path,
) -> None:
    it = bed(tmp_path)
    pod, engine = await with_share(it)
    load_library(it, pod)
    whole, refs = await pod_with_claims(it.scene, "w", {"a": [result(1)]})
    await engine.prepare(refs["a"])
    it.scene.api.faults.fail(times=None, resource=PODS)
    it.run(0, 100, cgroup_of(pod))
    it.run(1, 101, cgroup_of(whole))
    assert await it.twice() == ()
    it.run(0, 102, cgroup_of(whole))
    (found,) = await it.twice()
    assert (found.cause, found.pid, found.pod) == (Cause.OTHERS_DEVICE, 102, None)
    assert any("cannot be listed" in one.problem for one in it.scene.told(Reported))


async def test_a_claim_whose_entry_is_unreadable_is_not_held_against_its_pod(
    tmp_path: Path,
) -> None:
    it = bed(tmp_path)
    engine = await it.scene.started()
    pod, refs = await pod_with_claims(it.scene, "p", {"a": [result(0)]})
    await engine.prepare(refs["a"])
    pod = await reported(it.scene, pod)
    stranger = await plain_pod(it.scene, "stranger")
    MemoryEffects(it.scene.disk).write(PATHS.journal(refs["a"].uid), b"torn", 0o600)
    it.run(0, 100, cgroup_of(pod))
    it.run(0, 101, cgroup_of(stranger))
    (found,) = await it.twice()
    assert found.pid == 101


async def test_a_card_that_cannot_be_looked_at_keeps_its_findings(tmp_path: Path) -> None:
    it = bed(tmp_path)
    stranger = await plain_pod(it.scene, "stranger")
    it.run(0, 100, cgroup_of(stranger))
    it.run(1, 101, cgroup_of(stranger))
    before = await it.twice()
    assert len(before) == 2
    it.lost.add(CARD)
    assert set(await it.twice()) == set(before)
    assert any("0000:10:00.0" in one.problem for one in it.scene.told(Reported))
    it.lost.clear()
    it.end(0, 100)
    assert [one.pid for one in await it.twice()] == [101]


async def test_a_card_that_hangs_keeps_no_other_from_being_audited(tmp_path: Path) -> None:
    it = Bed(tmp_path, sharing_scene(), hangs={CARD}, patience=0.05)
    stranger = await plain_pod(it.scene, "stranger")
    it.run(0, 100, cgroup_of(stranger))
    it.run(1, 101, cgroup_of(stranger))
    while not (found := await it.twice()):
        continue
    assert [one.pid for one in found] == [101]
    assert any("has not answered" in one.problem for one in it.scene.told(Reported))
    it.go.set()
    while len(found) < 2:
        found = await it.twice()
    assert {one.pid for one in found} == {100, 101}


async def test_a_process_that_ends_between_two_questions_is_no_finding(tmp_path: Path) -> None:
    it = bed(tmp_path)
    it.run(0, 100, MONITOR)
    for file in (tmp_path / "100").iterdir():
        file.unlink()
    assert await it.twice() == ()


async def test_our_own_probe_of_caps_is_no_finding(tmp_path: Path) -> None:
    it = bed(tmp_path)
    it.run(0, 100, "/kubepods.slice/dragoon-probe-1/leaf")
    assert await it.twice() == ()


async def test_static_pods_are_found_by_the_uid_that_the_kubelet_gives_them(
    tmp_path: Path,
) -> None:
    it = bed(tmp_path)
    hashed = "0123456789abcdef0123456789abcdef"
    pod = await plain_pod(it.scene, "static", annotations={"kubernetes.io/config.mirror": hashed})
    it.run(0, 100, f"/kubepods/pod{hashed}/{container_id(pod, 'main')}")
    (found,) = await it.twice()
    assert found.pod is not None
    assert (found.pod.name, found.pod.uid) == ("static", pod["metadata"]["uid"])


async def test_the_api_server_is_asked_only_for_pods_that_are_not_known(tmp_path: Path) -> None:
    it = bed(tmp_path)
    asked = it.scene.api.faults.calls
    pod, _ = await with_share(it)
    load_library(it, pod)

    def lists() -> int:
        return sum(call.verb == "list" for call in asked)

    before = lists()
    await it.audit.look()
    assert lists() == before, "nobody uses a GPU"
    it.run(0, 100, cgroup_of(pod))
    for _ in range(5):
        await it.twice()
    assert lists() == before + 1
    it.run(1, 101, "/kubepods/pod6b4f2b1c-0f0e-4c7e-9d3a-1f2e3d4c5b6a")
    for _ in range(5):
        await it.audit.look()
    assert lists() == before + 2, "one that stays unknown is asked for every ten seconds"
    it.scene.clock.advance(10)
    await it.audit.look()
    assert lists() == before + 3


async def test_it_looks_for_ever(tmp_path: Path) -> None:
    it = bed(tmp_path)
    stranger = await plain_pod(it.scene, "stranger")
    it.run(0, 100, cgroup_of(stranger))
    life = asyncio.create_task(it.audit.run())

    def told() -> bool:
        it.scene.clock.advance(PAUSE_S)
        return bool(it.reports)

    await until(told)
    life.cancel()
    assert [one.cause for one in it.reports[0]] == [Cause.WITHOUT_CLAIM]
