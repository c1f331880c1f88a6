"""Calls of the kubelet while the API server (case C50), the driver or the claim itself is not as it should be."""

import asyncio

import pytest

from dragoon.errors import (
    ApiForbiddenError,
    ApiUnavailableError,
    ClaimNotAllocatedError,
    HardwareError,
)
from dragoon.gpu.model import Inventory
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.observing import Waiting
from tests.unit.prepare.scene import Scene, device, inventory, pass_time, result, until


async def test_c42_a_claim_of_other_drivers_is_an_empty_success_without_a_trace(
    scene: Scene,
) -> None:
    engine = await scene.started()
    claim = await scene.claim("nic", result(0, driver="dra.net"))
    assert await engine.prepare(claim) == ()
    assert scene.files == {}


async def test_a_claim_without_allocation_is_waited_for(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await scene.deallocate(claim)
    call = asyncio.create_task(engine.prepare(claim))
    await until(lambda: scene.clock.sleeping > 0)
    await scene.allocate(claim, result(1))
    await pass_time(scene, call)
    assert call.result()[0].device == device(1)

    await scene.deallocate(claim)
    call = asyncio.create_task(engine.prepare(claim))
    await pass_time(scene, call)
    with pytest.raises(ClaimNotAllocatedError):
        call.result()


async def test_c50_a_claim_that_cannot_be_read_is_a_retryable_error_and_leaves_nothing(
    scene: Scene,
) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    scene.api.faults.fail(times=None)

    call = asyncio.create_task(engine.prepare(claim))
    await pass_time(scene, call)

    with pytest.raises(ApiUnavailableError) as caught:
        call.result()
    assert caught.value.retryable
    assert 40 <= scene.clock.now() < 44
    assert scene.files == {}


async def test_c50_an_api_server_that_never_answers_does_not_hold_a_call_for_ever(
    scene: Scene,
) -> None:
    engine = await scene.started(api_patience_s=0.01)
    claim = await scene.claim("one")
    hang = scene.api.faults.hang(times=1)
    call = asyncio.create_task(engine.prepare(claim))
    await pass_time(scene, call)
    assert call.result()
    assert hang.hits == 1


async def test_c50_a_missing_permission_is_told_at_once(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    scene.api.faults.fail(error=lambda: ApiForbiddenError("no", status=403))
    with pytest.raises(ApiForbiddenError):
        await engine.prepare(claim)


@pytest.mark.parametrize("fault", ["fail", "hang"])
async def test_c50_unprepare_works_without_the_api(scene: Scene, fault: str) -> None:
    engine = await scene.started(api_patience_s=0.01)
    claim = await scene.claim("one")
    await scene.pod("user", claim)
    await engine.prepare(claim)
    ordered = getattr(scene.api.faults, fault)(times=None)

    await engine.unprepare(claim)

    assert ordered.hits
    assert scene.files == {}


async def test_a_driver_that_does_not_answer_is_told_and_holds_nothing(scene: Scene) -> None:
    async def hang() -> Inventory:
        raise HardwareError("the NVIDIA driver does not answer", retryable=True)

    engine = await scene.started(look=hang, wait_s=0.0)
    claim = await scene.claim("one")
    with pytest.raises(HardwareError, match="does not answer"):
        await engine.prepare(claim)
    assert scene.files == {}


async def test_a_missing_device_file_is_waited_for(scene: Scene) -> None:
    scene.gpus.found = inventory(simulated=False)
    engine = await scene.started()
    call = asyncio.create_task(engine.prepare(await scene.claim("one")))
    await until(lambda: scene.clock.sleeping > 0)
    assert "/dev/nvidia0 does not exist" in str(scene.told(Waiting)[0].reason)
    assert scene.files == {}

    host = MemoryEffects(scene.disk)
    host.make_folder(scene.root.parent / "dev", 0o755)
    host.write(scene.root.parent / "dev/nvidia0", b"", 0o666)
    await pass_time(scene, call)
    assert call.result()
