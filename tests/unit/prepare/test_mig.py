"""Claims of MIG instances: made, kept, made again and removed."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.errors import DeviceBusyError, UnknownDeviceError
from dragoon.gpu.faults import CardInUseError
from dragoon.gpu.mig import CapabilityNode, GpuProcess
from dragoon.prepare import cdi
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.observing import Repaired
from tests.unit.prepare.migging import A30, A100, H100, PATHS, MigScene, ids, inside
from tests.unit.prepare.scene import gpu, result


async def test_a_claim_gets_an_instance_made_at_its_placement() -> None:
    scene = MigScene(H100)
    engine = await scene.started()
    claim = await scene.claim("c", scene.mig_result("3g.40gb", 4))

    (answer,) = await engine.prepare(claim)

    assert answer.device == scene.name("3g.40gb", 4)
    assert scene.there() == [("3g.40gb", 4)]
    uuid = scene.card().instances[0].uuid
    got = inside(scene, claim, *answer.cdi_ids)
    assert got.env == (cdi.VOID, cdi.device_variable(answer.device, uuid or ""))
    (mount,) = got.mounts
    assert json.loads(scene.disk.files()[Path(mount.host_path)])["uuid"] == uuid
    (entry,) = scene.entries()
    assert entry.devices[0].mig is not None
    assert entry.devices[0].mig.uuid == uuid


async def test_the_mode_goes_off_with_the_last_claim_that_needed_it() -> None:
    scene = MigScene(H100)
    engine = await scene.started()
    one = await scene.claim("one", scene.mig_result("3g.40gb", 4))
    two = await scene.claim("two", scene.mig_result("4g.40gb", 0))
    await engine.prepare(one)
    await engine.prepare(two)

    await engine.unprepare(one)
    assert (scene.there(), scene.card().card.mode.enabled) == ([("4g.40gb", 0)], True)

    await engine.unprepare(two)
    assert (scene.there(), scene.card().card.mode.enabled) == ([], False)
    assert scene.files == {}


async def test_a_mode_that_an_administrator_turned_on_stays() -> None:
    scene = MigScene(H100)
    scene.mig.set_mode(gpu(0).address, enabled=True)
    engine = await scene.started()
    claim = await scene.claim("c", scene.mig_result("1g.10gb", 6))
    await engine.prepare(claim)
    await engine.unprepare(claim)
    assert scene.card().card.mode.enabled


async def test_a_client_that_holds_the_card_does_not_keep_a_claim_from_ending() -> None:
    scene = MigScene(H100)
    engine = await scene.started(wait_s=0.0)
    claim = await scene.claim("c", scene.mig_result("1g.10gb", 6))
    await engine.prepare(claim)
    scene.card().processes = (GpuProcess(7, name="dcgm"),)

    await engine.unprepare(claim)
    assert (scene.files, scene.there(), scene.card().card.mode.enabled) == ({}, [], True)

    whole = await scene.claim("whole")
    with pytest.raises(CardInUseError, match=r"dcgm \(pid 7\)"):
        await engine.prepare(whole)
    scene.card().processes = ()
    await engine.prepare(whole)
    assert not scene.card().card.mode.enabled


async def test_instances_that_overlap_wait_for_each_other_and_others_do_not() -> None:
    scene = MigScene(H100)
    engine = await scene.started(wait_s=0.0)
    await engine.prepare(await scene.claim("first", scene.mig_result("3g.40gb", 4)))

    over = await scene.claim("over", scene.mig_result("1g.10gb", 5))
    whole = await scene.claim("whole")
    for late in (over, whole):
        with pytest.raises(DeviceBusyError, match="first"):
            await engine.prepare(late)
    beside = await scene.claim("beside", scene.mig_result("1g.10gb", 3))
    await engine.prepare(beside)
    assert scene.there() == [("1g.10gb", 3), ("3g.40gb", 4)]


async def test_a_whole_gpu_keeps_instances_off_it() -> None:
    scene = MigScene(H100)
    engine = await scene.started(wait_s=0.0)
    await engine.prepare(await scene.claim("whole"))
    with pytest.raises(DeviceBusyError, match="whole"):
        await engine.prepare(await scene.claim("part", scene.mig_result("1g.10gb", 0)))
    assert not scene.card().card.mode.enabled


async def test_c19_three_and_four_sevenths_then_seven_single_ones_then_the_whole_card() -> None:
    scene = MigScene(A100)
    engine = await scene.started(wait_s=0.0)
    rounds = [[("4g.20gb", 0), ("3g.20gb", 4)], [("1g.5gb", start) for start in range(7)]]
    for number, wanted in enumerate(rounds):
        claims = [
            await scene.claim(f"c{number}-{start}", scene.mig_result(profile, start))
            for profile, start in wanted
        ]
        for claim in reversed(claims):
            await engine.prepare(claim)
        assert scene.there() == sorted(wanted, key=lambda one: one[1])
        for claim in claims:
            await engine.unprepare(claim)
        assert scene.there() == []
    assert scene.files == {}


async def test_c19_a_placement_that_the_card_does_not_have_lists_those_it_has() -> None:
    scene = MigScene(A100)
    engine = await scene.started()
    legal = scene.name("3g.20gb", 4)
    for device in (legal[:-1] + "2", legal.replace("20gb", "40gb")):
        claim = await scene.claim(device, result(device=device))
        with pytest.raises(UnknownDeviceError, match=r"3g\.20gb at 0/4, 4g\.20gb at 0"):
            await engine.prepare(claim)
    assert scene.entries() == ()


async def test_c20_after_a_reboot_an_instance_is_made_again_at_the_same_place() -> None:
    scene = MigScene(H100, A30)
    engine = await scene.started()
    claims = [
        await scene.claim("h100", scene.mig_result("2g.20gb", 2)),
        await scene.claim("a30", scene.mig_result("2g.12gb", 2, 1)),
    ]
    before = [await ids(engine, claim) for claim in claims]
    old = {one.uuid for n in (0, 1) for one in scene.card(n).instances}

    scene.disk.reboot("boot-2", wiped=[PATHS.cdi_folder])
    engine = await scene.started()
    assert (scene.there(0), scene.there(1)) == ([], [])
    assert [await ids(engine, claim) for claim in claims] == before

    assert (scene.there(0), scene.there(1)) == ([("2g.20gb", 2)], [("2g.12gb", 2)])
    new = {one.uuid for n in (0, 1) for one in scene.card(n).instances}
    text = "".join(data.decode() for data in scene.files.values())
    assert not old & new
    assert not any(str(uuid) in text for uuid in old)
    assert all(str(uuid) in text for uuid in new)


async def test_c20_what_stands_there_after_a_reboot_is_not_taken_for_ours() -> None:
    scene = MigScene(A100)
    engine = await scene.started(wait_s=0.0)
    claim = await scene.claim("c", scene.mig_result("3g.20gb", 4))
    await engine.prepare(claim)

    scene.disk.reboot("boot-2", wiped=[PATHS.cdi_folder])
    theirs = scene.make("3g.20gb", 4)
    engine = await scene.started(wait_s=0.0)
    await engine.unprepare(claim)

    assert scene.card().instances == (theirs,)
    assert scene.files == {}


async def test_an_instance_with_a_process_in_it_is_removed_when_that_has_ended() -> None:
    scene = MigScene(H100)
    engine = await scene.started(wait_s=0.0)
    claim = await scene.claim("c", scene.mig_result("1g.10gb", 0))
    await engine.prepare(claim)
    made = scene.card().instances[0]
    scene.card().processes = (GpuProcess(9, gpu_instance=made.identity, name="train"),)
    with pytest.raises(CardInUseError, match="train"):
        await engine.unprepare(claim)
    # The driver may have removed the compute instance before it refused.
    scene.mig.halve(gpu(0).address, made.identity)
    scene.card().processes = ()

    await engine.unprepare(claim)
    assert (scene.there(), scene.files) == ([], {})


async def test_a_card_that_is_lost_lets_its_claims_end() -> None:
    scene = MigScene(H100)
    engine = await scene.started()
    claim = await scene.claim("c", scene.mig_result("1g.10gb", 0))
    await engine.prepare(claim)
    scene.card().is_lost = True
    await engine.unprepare(claim)
    assert scene.files == {}


async def test_an_instance_that_is_lost_is_made_again_and_the_spec_follows() -> None:
    scene = MigScene(H100)
    engine = await scene.started()
    claim = await scene.claim("c", scene.mig_result("1g.10gb", 0))
    before = await ids(engine, claim)
    made = scene.card().instances[0]
    scene.mig.destroy(gpu(0).address, made.identity, made.uuid)

    assert await ids(engine, claim) == before

    (again,) = scene.card().instances
    assert again.uuid != made.uuid
    assert str(again.uuid) in scene.disk.files()[PATHS.spec(claim.uid)].decode()
    assert any("MIG instance 1g.10gb" in told.what for told in scene.told(Repaired))
    await engine.unprepare(claim)
    assert scene.there() == []


async def test_what_a_crash_left_of_an_instance_is_made_whole() -> None:
    scene = MigScene(H100)
    engine = await scene.started()
    claim = await scene.claim("c", scene.mig_result("1g.10gb", 0))
    await engine.prepare(claim)
    made = scene.card().instances[0]
    scene.mig.halve(gpu(0).address, made.identity)

    await scene.started()
    (again,) = scene.card().instances
    assert again.is_whole


async def test_on_a_real_card_a_container_gets_the_files_of_its_instance_alone() -> None:
    scene = MigScene(H100)
    scene.show(simulated=False)
    scene.mig.set_mode(gpu(0).address, enabled=True)
    engine = await scene.started()
    claim = await scene.claim("c", scene.mig_result("1g.10gb", 0))
    effects = MemoryEffects(scene.disk)
    effects.make_folder(Path("/dev/nvidia-caps"), 0o755)
    for name in ("nvidia0", *(f"nvidia-caps/nvidia-cap{n}" for n in (3, 4))):
        effects.write(Path("/dev") / name, b"", 0o644)

    got = inside(scene, claim, *await ids(engine, claim))

    (made,) = scene.card().instances
    assert made.node is not None
    assert made.compute[0].node is not None
    caps = {made.node.path, made.compute[0].node.path}
    assert {node.path for node in got.device_nodes} == {"/dev/nvidia0", *caps}
    assert got.mounts == ()


async def test_capability_files_that_are_not_there_yet_are_described_by_number() -> None:
    scene = MigScene(H100)
    scene.show(simulated=False)
    theirs = scene.make("1g.10gb", 0)
    node = CapabilityNode("/dev/nvidia-caps/nvidia-cap12", 12, 237, exists=False)
    inner = replace(theirs.compute[0], node=replace(node, path="/dev/nvidia-caps/x", minor=13))
    scene.card().instances = (replace(theirs, node=node, compute=(inner,)),)
    effects = MemoryEffects(scene.disk)
    effects.make_folder(Path("/dev"), 0o755)
    effects.write(Path("/dev/nvidia0"), b"", 0o644)
    engine = await scene.started()

    claim = await scene.claim("c", scene.mig_result("1g.10gb", 0))
    got = inside(scene, claim, *await ids(engine, claim))
    numbers = {(n.type, n.major, n.minor) for n in got.device_nodes}
    assert numbers == {("", None, None), ("c", 237, 12), ("c", 237, 13)}


async def test_admin_access_sees_an_instance_and_makes_none() -> None:
    scene = MigScene(H100)
    engine = await scene.started(wait_s=0.0)
    look = await scene.claim("look", scene.mig_result("1g.10gb", 0, adminAccess=True))
    with pytest.raises(UnknownDeviceError, match=r"no MIG instance 1g\.10gb"):
        await engine.prepare(look)
    work = await scene.claim("work", scene.mig_result("1g.10gb", 0))
    await engine.prepare(work)

    got = inside(scene, look, *await ids(engine, look))
    assert any(str(scene.card().instances[0].uuid) in entry for entry in got.env)
    await engine.unprepare(look)
    assert scene.there() == [("1g.10gb", 0)]


async def test_a_claim_of_which_only_the_spec_is_left_keeps_others_off_its_card() -> None:
    scene = MigScene(H100)
    engine = await scene.started(wait_s=0.0)
    lost = await scene.claim("lost", scene.mig_result("1g.10gb", 0))
    await engine.prepare(lost)
    MemoryEffects(scene.disk).write(PATHS.journal(lost.uid), b"{", 0o600)

    with pytest.raises(DeviceBusyError):
        await engine.prepare(await scene.claim("whole"))


async def test_c32_a_mig_claim_of_journal_version_2_stays_as_its_version_wrote_it() -> None:
    """So that a plugin of that version can still take it back; this one can, too."""
    scene = MigScene(H100)
    engine = await scene.started()
    claim = await scene.claim("c", scene.mig_result("3g.40gb", 4))
    answer = await engine.prepare(claim)
    as_version_2(scene, claim)
    before = scene.files

    engine = await scene.started()

    assert await engine.prepare(claim) == answer
    assert scene.files == before
    await engine.unprepare(claim)
    assert (scene.there(), scene.files) == ([], {})


def as_version_2(scene: MigScene, claim: ClaimRef) -> None:
    """That version wrote no record of what it changed on cards."""
    outside = MemoryEffects(scene.disk)
    outside.remove(PATHS.card_record(claim.uid))
    path = PATHS.journal(claim.uid)
    body = json.loads(scene.disk.files()[path])["entry"]
    steps = [step for step in body["steps"] if step["step"] != "cardRecord"]
    data = json.dumps(body | {"version": 2, "steps": steps})
    checksum = f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"
    outside.write(path, f'{{"checksum": "{checksum}", "entry": {data}}}'.encode(), 0o600)
