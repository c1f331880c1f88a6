"""The adapter on simulated cards: half-done changes, foreign instances, device files."""

import json
import threading

import pytest

from dragoon.errors import DeviceLostError, HardwareError
from dragoon.gpu.faults import (
    CardInUseError,
    FeatureMissingError,
    InstanceChangedError,
    PermissionMissingError,
    PlacementTakenError,
    ResetRequiredError,
)
from dragoon.gpu.mig import occupied_by
from dragoon.gpu.model import MigMode, PciAddress, Placement
from dragoon.gpu.sim.occupants import ProcessState
from dragoon.gpu.sim.state import Effect, Fault, changed
from tests.unit.gpu.rig import Rig, Simulate

SMALL = "1g.10gb"
AT_0 = Placement(0, 1)


def divided(simulate: Simulate, name: str = "dgx-h100") -> tuple[Rig, PciAddress]:
    machine = simulate(name)
    machine.gpus.mig.set_mode(machine.address(0), enabled=True)
    return machine, machine.address(0)


def test_a_look_at_whole_gpus_asks_nothing_about_instances(simulate: Simulate) -> None:
    machine, address = divided(simulate)
    machine.gpus.mig.create(address, SMALL, AT_0)
    before = machine.look()
    for symbol in (
        "nvmlDeviceGetGpuInstances",
        "nvmlDeviceGetGpuInstanceProfileInfoV",
        "nvmlDeviceGetComputeRunningProcesses_v3",
    ):
        machine.hardware.fail(Fault(symbol))
    assert machine.look() == before
    assert not before.degraded


def test_a_compute_instance_that_fails_takes_its_gpu_instance_with_it(simulate: Simulate) -> None:
    machine, address = divided(simulate)
    machine.hardware.fail(Fault("nvmlGpuInstanceCreateComputeInstance", code=23))
    with pytest.raises(PlacementTakenError, match=f"make {SMALL} at 0:1"):
        machine.gpus.mig.create(address, SMALL, AT_0)
    assert machine.gpus.mig.instances(address) == ()


def test_what_cannot_be_taken_back_is_still_seen(simulate: Simulate) -> None:
    machine, address = divided(simulate)
    machine.hardware.fail(Fault("nvmlGpuInstanceCreateComputeInstance"))
    machine.hardware.fail(Fault("nvmlGpuInstanceDestroy"))
    with pytest.raises(HardwareError, match="Unknown Error"):
        machine.gpus.mig.create(address, SMALL, AT_0)
    (left,) = machine.gpus.mig.instances(address)
    assert (left.placement, left.uuid) == (AT_0, None)
    machine.hardware.lift("nvmlGpuInstanceDestroy")
    machine.gpus.mig.destroy(address, left.identity, None)
    assert machine.gpus.mig.instances(address) == ()


def test_an_instance_that_the_driver_denies_and_keeps_is_not_gone(simulate: Simulate) -> None:
    machine, address = divided(simulate)
    there = machine.gpus.mig.create(address, SMALL, AT_0)
    machine.hardware.fail(Fault("nvmlGpuInstanceDestroy", code=6))
    with pytest.raises(HardwareError, match="still shows it") as caught:
        machine.gpus.mig.destroy(address, there.identity, there.uuid)
    assert caught.value.retryable
    (left,) = machine.gpus.mig.instances(address)
    assert left.placement == AT_0


def test_a_removal_that_stops_half_way_can_be_finished(simulate: Simulate) -> None:
    machine, address = divided(simulate)
    there = machine.gpus.mig.create(address, SMALL, AT_0)
    machine.hardware.fail(Fault("nvmlGpuInstanceDestroy", code=19))
    with pytest.raises(CardInUseError, match="nobody that the driver lists") as caught:
        machine.gpus.mig.destroy(address, there.identity, there.uuid)
    assert caught.value.retryable
    machine.hardware.lift("nvmlGpuInstanceDestroy")
    (half,) = machine.gpus.mig.instances(address)
    assert half.uuid is None
    machine.gpus.mig.destroy(address, half.identity, None)
    assert machine.gpus.mig.instances(address) == ()


def test_c17_success_is_said_only_after_the_instance_is_seen(simulate: Simulate) -> None:
    machine, address = divided(simulate)
    machine.hardware.fail(Fault("nvmlGpuInstanceGetComputeInstances", code=6))
    with pytest.raises(HardwareError) as caught:
        machine.gpus.mig.create(address, SMALL, AT_0)
    assert caught.value.retryable
    machine.hardware.lift("nvmlGpuInstanceGetComputeInstances")
    assert machine.gpus.mig.instances(address) == ()


def test_half_a_list_of_instances_is_an_error(simulate: Simulate) -> None:
    """A profile that cannot be read would hide the instances made of it."""
    machine, address = divided(simulate)
    machine.hardware.fail(Fault("nvmlDeviceGetGpuInstancePossiblePlacements_v2"))
    with pytest.raises(HardwareError, match="MIG profiles cannot be read"):
        machine.gpus.mig.instances(address)


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        (3, FeatureMissingError, False),
        (4, PermissionMissingError, False),
        (13, FeatureMissingError, False),
        (15, DeviceLostError, False),
        (16, ResetRequiredError, False),
        (19, CardInUseError, True),
        (10, HardwareError, True),
        (999, HardwareError, False),
    ],
)
def test_every_refusal_names_the_card_and_says_whether_to_try_again(
    simulate: Simulate, code: int, kind: type[HardwareError], *, retryable: bool
) -> None:
    machine, address = divided(simulate)
    machine.hardware.fail(Fault("nvmlDeviceCreateGpuInstanceWithPlacement", code=code))
    with pytest.raises(kind, match=f"GPU {address}: make {SMALL} at 0:1") as caught:
        machine.gpus.mig.create(address, SMALL, AT_0)
    assert type(caught.value) is kind
    assert caught.value.retryable is retryable


@pytest.mark.parametrize("effect", [Effect.MISSING, Effect.CODE])
def test_a_driver_without_the_symbols_is_a_missing_feature_or_a_failure(
    simulate: Simulate, effect: Effect
) -> None:
    machine = simulate("dgx-h100")
    machine.hardware.fail(Fault("nvmlDeviceSetMigMode", effect))
    kind = FeatureMissingError if effect is Effect.MISSING else HardwareError
    with pytest.raises(kind, match="turn MIG mode on"):
        machine.gpus.mig.set_mode(machine.address(0), enabled=True)


def test_c21_foreign_instances_are_seen_and_nothing_removes_them(simulate: Simulate) -> None:
    machine, address = divided(simulate)
    (whole,) = machine.hardware.make_by_hand(0, "2g.20gb", 4)
    parts = machine.hardware.make_by_hand(0, "3g.40gb", 0, (1, 2))
    machine.hardware.make_by_hand(0, SMALL, 6, ())
    split, two, half = machine.gpus.mig.instances(address)
    assert (two.uuid, two.is_whole) == (whole, True)
    assert tuple(one.uuid for one in split.compute) == parts
    assert (split.uuid, split.is_whole, half.uuid) == (None, False, None)
    used = [p for p in (Placement(s, 1) for s in range(7)) if occupied_by((split, two, half), p)]
    assert len(used) == 7
    for instance in (split, two, half):
        with pytest.raises(InstanceChangedError):
            machine.gpus.mig.destroy(address, instance.identity, "MIG-ours")
    with pytest.raises(InstanceChangedError):
        machine.gpus.mig.destroy(address, split.identity, None)
    with pytest.raises(PlacementTakenError, match=whole):
        machine.gpus.mig.create(address, SMALL, Placement(5, 1))
    assert machine.gpus.mig.instances(address) == (split, two, half)


def test_c21_a_client_that_nobody_lists_is_still_in_the_way(simulate: Simulate) -> None:
    machine = simulate("dgx-h100")
    machine.hardware.run(0, ProcessState(77, "nv-hostengine", listed=False))
    with pytest.raises(CardInUseError, match="nobody that the driver lists") as caught:
        machine.gpus.mig.set_mode(machine.address(0), enabled=True)
    assert "dcgm" in caught.value.hint
    assert machine.gpus.processes(machine.address(0)) == ()


def test_c21_a_mode_left_pending_by_others_is_seen(simulate: Simulate) -> None:
    machine = simulate("dgx-a100-40gb")
    address = machine.address(0)
    machine.hardware.change(lambda state: changed(state, 0, mig_pending=True))
    card = machine.gpus.mig.card(address)
    assert card is not None
    assert card.mode == MigMode(enabled=False, pending=True)
    assert machine.gpus.mig.set_mode(address, enabled=False) == MigMode(False, False)


def test_c21_a_change_that_others_left_pending_does_not_hold_up_what_is_on(
    simulate: Simulate,
) -> None:
    machine, address = divided(simulate)
    there = machine.gpus.mig.create(address, SMALL, AT_0)
    machine.hardware.change(lambda state: changed(state, 0, mig_pending=False))
    assert machine.gpus.mig.set_mode(address, enabled=True) == MigMode(enabled=True, pending=True)
    assert machine.gpus.mig.instances(address) == (there,)


def test_a_change_of_mode_on_ampere_gives_the_card_another_minor(simulate: Simulate) -> None:
    machine = simulate("dgx-a100-40gb")
    before = machine.gpu(0).minor
    machine.gpus.mig.set_mode(machine.address(0), enabled=True)
    made = machine.gpus.mig.create(machine.address(0), "1g.5gb", AT_0)
    assert made.parent_minor == machine.gpu(0).minor != before
    assert made.node is not None


def test_device_files_are_where_the_kernel_says(simulate: Simulate) -> None:
    machine, address = divided(simulate)
    made = machine.gpus.mig.create(address, "7g.80gb", Placement(0, 8))
    (compute,) = made.compute
    listing = machine.hardware.roots.proc / "driver/nvidia/capabilities"
    place = listing / f"gpu{made.parent_minor}/mig/gi{made.identity}"
    for node, file in (
        (made.node, place / "access"),
        (compute.node, place / f"ci{compute.identity}/access"),
    ):
        assert node is not None
        assert f"DeviceFileMinor: {node.minor}\n" in file.read_text()
        assert (node.major, node.exists) == (234, True)
        assert (machine.hardware.roots.dev / node.path.removeprefix("/dev/")).exists()
    machine.gpus.mig.destroy(address, made.identity, made.uuid)
    assert not place.exists()


def test_a_device_file_that_is_not_made_yet_is_told(simulate: Simulate) -> None:
    machine, address = divided(simulate)
    made = machine.gpus.mig.create(address, SMALL, AT_0)
    assert made.node is not None
    (machine.hardware.roots.dev / made.node.path.removeprefix("/dev/")).unlink()
    (again,) = machine.gpus.mig.instances(address)
    assert again.node is not None
    assert (again.node.minor, again.node.exists) == (made.node.minor, False)


def test_a_capability_that_the_kernel_does_not_list_is_none(simulate: Simulate) -> None:
    machine, address = divided(simulate)
    machine.gpus.mig.create(address, SMALL, AT_0)
    (machine.hardware.roots.proc / "driver/nvidia/capabilities").rename(
        machine.hardware.roots.proc / "elsewhere"
    )
    (one,) = machine.gpus.mig.instances(address)
    assert (one.node, one.compute[0].node) == (None, None)


def test_two_cards_change_at_the_same_time(simulate: Simulate) -> None:
    """A card whose driver call takes long holds up neither another card nor a look."""
    machine = simulate("dgx-h100")
    slow, quick = machine.address(0), machine.address(1)
    machine.gpus.mig.set_mode(slow, enabled=True)
    machine.hardware.fail(Fault("nvmlDeviceCreateGpuInstanceWithPlacement", Effect.HANG, slot=0))
    thread = threading.Thread(target=machine.gpus.mig.create, args=(slow, SMALL, AT_0))
    thread.start()
    try:
        machine.gpus.mig.set_mode(quick, enabled=True)
        machine.gpus.mig.create(quick, SMALL, AT_0)
        assert len(machine.look().gpus) == 8
        assert thread.is_alive()
    finally:
        machine.hardware.lift("nvmlDeviceCreateGpuInstanceWithPlacement")
        thread.join()
    assert len(machine.gpus.mig.instances(slow)) == 1


def test_processes_are_told_with_size_and_instance(simulate: Simulate) -> None:
    machine, address = divided(simulate)
    made = machine.gpus.mig.create(address, SMALL, AT_0)
    machine.hardware.run(0, ProcessState(12, "train", 5 << 20, made.identity, 0))
    machine.hardware.run(1, ProcessState(11, "infer", 7 << 20))
    (inside,) = machine.gpus.processes(address)
    (plain,) = machine.gpus.processes(machine.address(1))
    assert (inside.pid, inside.used_bytes, inside.gpu_instance) == (12, 5 << 20, made.identity)
    assert (plain.gpu_instance, plain.compute_instance, plain.name) == (None, None, "infer")


def test_a_process_that_has_ended_meanwhile_has_no_name(simulate: Simulate) -> None:
    machine = simulate("t4")
    machine.hardware.run(0, ProcessState(12, "train", 1))
    (machine.hardware.roots.proc / "12/comm").unlink()
    (one,) = machine.gpus.processes(machine.address(0))
    assert (one.name, str(one)) == (None, "process (pid 12)")


def test_lists_of_processes_that_a_driver_has_not_are_skipped(simulate: Simulate) -> None:
    machine = simulate("t4")
    machine.hardware.run(0, ProcessState(12, "train", 1))
    for symbol in ("Graphics", "MPSCompute"):
        machine.hardware.fail(Fault(f"nvmlDeviceGet{symbol}RunningProcesses_v3", Effect.MISSING))
    assert len(machine.gpus.processes(machine.address(0))) == 1
    machine.hardware.fail(Fault("nvmlDeviceGetComputeRunningProcesses_v3"))
    with pytest.raises(HardwareError, match="list processes"):
        machine.gpus.processes(machine.address(0))


def test_a_card_that_moved_is_asked_for_where_it_is_now(simulate: Simulate) -> None:
    machine = simulate("dgx-h100")
    old, new = machine.address(0), PciAddress(0, 0xC1, 0)
    machine.hardware.move(0, new)
    with pytest.raises(DeviceLostError, match=f"GPU {old}: the driver does not list it"):
        machine.gpus.mig.card(old)
    card = machine.gpus.mig.card(new)
    assert card is not None
    assert card.address == new


def test_a_state_file_from_before_mig_can_still_be_read(simulate: Simulate) -> None:
    machine = simulate("t4")
    before, raw = machine.state, json.loads(machine.hardware.file.read_text())
    for card in raw["cards"]:
        for field in ("minor", "reset_blocked", "instances", "processes", "caps"):
            del card[field]
    for field in ("boot", "next_serial", "accounting"):
        del raw[field]
    machine.hardware.file.write_text(json.dumps(raw))
    assert machine.state == before
