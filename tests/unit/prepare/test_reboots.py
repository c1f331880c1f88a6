"""Case C20: after a reboot what was prepared is made again, and holds nothing back."""

import pytest

from dragoon.errors import DeviceLostError
from dragoon.gpu.model import Inventory
from tests.unit.prepare.keeping import PATHS
from tests.unit.prepare.scene import Scene, gpu


async def test_c20_after_a_reboot_claims_are_prepared_again_with_the_same_answer(
    scene: Scene,
) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    answer = await engine.prepare(claim)
    scene.disk.reboot("boot-2", wiped=[PATHS.cdi_folder])

    engine = await scene.started()
    assert not any(name.startswith("cdi/") for name in scene.files), "not before it is asked for"
    assert await engine.prepare(claim) == answer
    assert f"cdi/{PATHS.spec(claim.uid).name}" in scene.files


async def test_c20_a_spec_that_outlived_a_reboot_is_not_left_for_containers(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await engine.prepare(claim)
    scene.disk.reboot("boot-2")

    await scene.started()

    assert set(scene.files) == {f"state/journal/{claim.uid}.json"}


async def test_c20_what_was_prepared_before_a_reboot_holds_nothing_back(scene: Scene) -> None:
    engine = await scene.started()
    await engine.prepare(await scene.claim("old"))
    scene.disk.reboot("boot-2", wiped=[PATHS.cdi_folder])
    engine = await scene.started()
    assert await engine.prepare(await scene.claim("new"))


async def test_c20_after_a_reboot_another_card_in_the_slot_is_refused(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await engine.prepare(claim)
    scene.disk.reboot("boot-2", wiped=[PATHS.cdi_folder])
    scene.gpus.found = Inventory(gpus=(gpu(0, uuid="GPU-new"),), simulated=True)
    engine = await scene.started()

    with pytest.raises(DeviceLostError, match="GPU-new sits in that slot now"):
        await engine.prepare(claim)
    await engine.unprepare(claim)
    assert scene.files == {}
