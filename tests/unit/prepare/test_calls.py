"""How calls of the kubelet are met: the points, tried with a real one, that concern prepare."""

import asyncio

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.errors import (
    ClaimGoneError,
    DeviceBusyError,
    DeviceLostError,
    DragoonError,
    InvalidInputError,
    UnknownDeviceError,
)
from dragoon.gpu.model import Inventory
from dragoon.kube.port import CLAIMS
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.observing import Finished, Waiting
from tests.unit.prepare.scene import GatedEffects, Scene, device, gpu, pass_time, result, until


async def test_point_1_what_may_pass_is_waited_for_inside_the_call(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    fault = scene.api.faults.fail(verb="get", times=3)

    call = asyncio.create_task(engine.prepare(claim))
    await pass_time(scene, call)

    assert call.result()
    assert fault.hits == 3
    (told,) = scene.told(Waiting)
    assert "API server is away" in str(told.reason)


async def test_point_1_a_call_ends_before_the_kubelets_45_seconds(scene: Scene) -> None:
    engine = await scene.started()
    holder, waiter = await scene.claim("holder"), await scene.claim("waiter")
    await engine.prepare(holder)

    call = asyncio.create_task(engine.prepare(waiter))
    await pass_time(scene, call)

    with pytest.raises(DeviceBusyError, match=f"team-a/holder .{holder.uid}"):
        call.result()
    assert 40 <= scene.clock.now() < 44
    (error,) = (event.error for event in scene.told(Finished) if event.error)
    assert error.retryable


@pytest.mark.parametrize(
    "error", [UnknownDeviceError, ClaimGoneError, InvalidInputError, DeviceLostError]
)
async def test_point_1_a_final_error_is_not_waited_for(
    scene: Scene, error: type[DragoonError]
) -> None:
    engine = await scene.started()
    claim = {
        UnknownDeviceError: await scene.claim("one", result(77)),
        ClaimGoneError: ClaimRef("team-a", "nobody", "0a"),
        InvalidInputError: ClaimRef("team-a", "one", "../0a"),
        DeviceLostError: await scene.claim("two"),
    }[error]
    if error is DeviceLostError:
        await engine.prepare(claim)
        scene.gpus.found = Inventory(gpus=(gpu(0, uuid="GPU-new"),), simulated=True)

    with pytest.raises(error):
        await engine.prepare(claim)
    assert scene.clock.now() == 0


async def test_points_5_and_6_and_c35_a_claim_waits_for_the_unprepare_of_a_force_deleted_pods(
    scene: Scene,
) -> None:
    engine = await scene.started()
    old, new = await scene.claim("old"), await scene.claim("new")
    await engine.prepare(old)
    await scene.api.delete(CLAIMS, old.name, namespace=old.namespace)

    call = asyncio.create_task(engine.prepare(new))
    await until(lambda: scene.clock.sleeping > 0)
    assert not call.done()
    assert old.uid in str(scene.told(Waiting)[0].reason)

    await engine.unprepare(old)
    assert (await call)[0].device == device(0)
    assert scene.clock.now() == 0, "woken by the unprepare, not by time"


async def test_point_6_other_gpus_are_prepared_while_one_waits(scene: Scene) -> None:
    engine = await scene.started()
    await engine.prepare(await scene.claim("holder"))
    waiter = asyncio.create_task(engine.prepare(await scene.claim("waiter")))
    await until(lambda: scene.clock.sleeping > 0)

    assert await engine.prepare(await scene.claim("other", result(1)))
    waiter.cancel()


async def test_c35_admin_access_does_not_wait(scene: Scene) -> None:
    engine = await scene.started()
    await engine.prepare(await scene.claim("holder"))
    assert await engine.prepare(await scene.claim("watcher", result(0, adminAccess=True)))


async def test_point_7_effects_that_have_begun_are_finished_after_a_cancel(scene: Scene) -> None:
    effects = GatedEffects(scene.disk)
    engine = scene.engine(effects)
    await engine.start()
    claim = await scene.claim("one")
    call = asyncio.create_task(engine.prepare(claim))
    await until(effects.reached.is_set)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    again = asyncio.create_task(engine.prepare(claim))
    effects.go.set()

    answer = await again
    assert answer == await engine.prepare(claim)
    begun = [done for done in effects.performed if f"journal/{claim.uid}" in done]
    assert sum(done.startswith("rename") for done in begun) == 2, "prepared once, then kept"


async def test_point_7_an_unprepare_does_not_overtake_effects_that_have_begun(
    scene: Scene,
) -> None:
    effects = GatedEffects(scene.disk)
    engine = scene.engine(effects)
    await engine.start()
    claim = await scene.claim("one")
    call = asyncio.create_task(engine.prepare(claim))
    await until(effects.reached.is_set)
    call.cancel()

    undo = asyncio.create_task(engine.unprepare(claim))
    effects.go.set()
    await undo

    assert scene.files == {}


async def test_point_7_a_call_that_only_waits_is_dropped_when_the_kubelet_cancels(
    scene: Scene,
) -> None:
    engine = await scene.started()
    holder, waiter = await scene.claim("holder"), await scene.claim("waiter")
    await engine.prepare(holder)
    call = asyncio.create_task(engine.prepare(waiter))
    await until(lambda: scene.clock.sleeping > 0)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await engine.unprepare(holder)
    scene.clock.advance(100)
    await asyncio.gather(*(t for t in asyncio.all_tasks() if t is not asyncio.current_task()))

    assert scene.files == {}, "nobody knows of it, so it must not be prepared"


async def test_point_7_a_second_caller_gets_the_whole_time_again(scene: Scene) -> None:
    engine = await scene.started()
    holder, waiter = await scene.claim("holder"), await scene.claim("waiter")
    await engine.prepare(holder)
    first = asyncio.create_task(engine.prepare(waiter))
    while scene.clock.now() < 30:
        await until(lambda: scene.clock.sleeping > 0)
        scene.clock.advance(1)

    second = asyncio.create_task(engine.prepare(waiter))
    await asyncio.sleep(0)
    first.cancel()
    await pass_time(scene, second)

    with pytest.raises(DeviceBusyError):
        second.result()
    assert scene.clock.now() >= 70


async def test_point_8_and_c28_two_calls_for_one_claim_are_one_piece_of_work(
    scene: Scene,
) -> None:
    effects = MemoryEffects(scene.disk)
    engine = scene.engine(effects)
    await engine.start()
    claim = await scene.claim("one")
    await scene.claim("other")
    scene.api.faults.calls.clear()

    first, second = await asyncio.gather(engine.prepare(claim), engine.prepare(claim))

    assert first == second
    assert len(scene.api.faults.calls) == 1
    assert sum("rename" in done and "cdi" in done for done in effects.performed) == 1


async def test_c28_a_later_prepare_of_a_shared_claim_touches_no_file(scene: Scene) -> None:
    await (await scene.started()).prepare(claim := await scene.claim("one"))
    before = scene.files
    effects = MemoryEffects(scene.disk)

    assert await scene.engine(effects).prepare(claim)

    assert effects.performed == []
    assert scene.files == before


async def test_point_12_a_second_plugin_process_sees_the_same_state(scene: Scene) -> None:
    old, new = await scene.started(), await scene.started()
    claim = await scene.claim("one")

    answer = await old.prepare(claim)
    assert await new.prepare(claim) == answer
    await new.unprepare(claim)

    assert scene.files == {}
    await old.unprepare(claim)


async def test_point_12_an_unprepare_by_another_process_wakes_the_waiter(scene: Scene) -> None:
    old, new = await scene.started(), await scene.started()
    holder, waiter = await scene.claim("holder"), await scene.claim("waiter")
    await old.prepare(holder)
    call = asyncio.create_task(old.prepare(waiter))
    await until(lambda: scene.clock.sleeping > 0)

    await new.unprepare(holder)
    await pass_time(scene, call)

    assert call.result()
    assert scene.clock.now() <= 1


async def test_a_waiting_claim_that_is_deallocated_is_not_prepared_on_its_old_device(
    scene: Scene,
) -> None:
    engine = await scene.started()
    holder, waiter = await scene.claim("holder"), await scene.claim("waiter")
    await engine.prepare(holder)
    call = asyncio.create_task(engine.prepare(waiter))
    await until(lambda: scene.clock.sleeping > 0)
    await scene.deallocate(waiter)
    await scene.allocate(waiter, result(2))

    await engine.unprepare(holder)

    assert [one.device for one in await call] == [device(2)]


async def test_other_devices_of_a_reallocated_claim_wait_for_its_own_unprepare(
    scene: Scene,
) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await engine.prepare(claim)
    await scene.deallocate(claim)
    await scene.allocate(claim, result(2))

    call = asyncio.create_task(engine.prepare(claim))
    await until(lambda: scene.clock.sleeping > 0)
    assert "still prepared with the old ones" in str(scene.told(Waiting)[0].reason)
    await engine.unprepare(claim)

    assert [one.device for one in await call] == [device(2)]
