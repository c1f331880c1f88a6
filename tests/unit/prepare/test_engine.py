"""Preparing and unpreparing whole GPUs."""

import json
from pathlib import Path

from dragoon.prepare.effects import HostEffects
from dragoon.prepare.port import PreparedDevice, Preparer
from tests.unit.prepare.scene import POOL, Scene, device, gpu, result


async def test_a_claim_is_prepared_and_taken_back_on_a_real_file_system(tmp_path: Path) -> None:
    scene = Scene(root=tmp_path)
    boot_id = tmp_path / "proc/sys/kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text("6a3c\n")
    engine: Preparer = await scene.started(effects=HostEffects(tmp_path / "proc"))
    claim = await scene.claim("one", result(2))

    answer = await engine.prepare(claim)

    cdi_id = f"gpu.dragoon.dev/claim={claim.uid}_gpu_{device(2)}"
    assert answer == (PreparedDevice(("gpu",), POOL, device(2), (cdi_id,)),)
    spec_file = tmp_path / f"cdi/gpu.dragoon.dev-claim-{claim.uid}.json"
    spec = json.loads(spec_file.read_text())
    assert spec["cdiVersion"] == "0.5.0"
    assert spec["kind"] == "gpu.dragoon.dev/claim"
    assert spec["containerEdits"]["env"] == ["NVIDIA_VISIBLE_DEVICES=void"]
    (node,) = spec["devices"]
    assert node["name"] == f"{claim.uid}_gpu_{device(2)}"
    assert node["containerEdits"]["env"] == [f"DRAGOON_GPU_0000_12_00_0={gpu(2).uuid}"]
    (mount,) = node["containerEdits"]["mounts"]
    assert mount["containerPath"] == f"/dev/dragoon/{device(2)}"
    marker = tmp_path / f"state/markers/{claim.uid}_{device(2)}.json"
    assert mount["hostPath"] == str(marker)
    assert json.loads(marker.read_text()) == {
        "device": device(2),
        "uuid": gpu(2).uuid,
        "simulated": True,
    }
    assert spec_file.stat().st_mode & 0o777 == 0o644
    journal_file = tmp_path / f"state/journal/{claim.uid}.json"
    assert journal_file.stat().st_mode & 0o777 == 0o600
    assert json.loads(journal_file.read_text())["entry"]["bootId"] == "6a3c"

    await engine.unprepare(claim)

    assert files_below(tmp_path) == {"boot_id", "effects.lock"}


def files_below(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


async def test_a_second_prepare_answers_the_same_and_changes_nothing(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    first = await engine.prepare(claim)
    before = scene.files

    assert await engine.prepare(claim) == first
    assert scene.files == before


async def test_unpreparing_an_unknown_claim_is_a_success(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")

    await engine.unprepare(claim)

    assert scene.files == {}
