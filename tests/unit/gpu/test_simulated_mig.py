"""What the simulated library answers about MIG, asked through pynvml itself."""

from collections.abc import Iterator
from ctypes import byref, c_uint
from pathlib import Path
from typing import Any

import pynvml
import pytest

from dragoon.errors import HardwareError, InvalidInputError
from dragoon.gpu.nvml.library import Library
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.occupants import ProcessState
from dragoon.gpu.sim.profiles import find_machine

SMALL, SMALL_ID, THREE_ID, SEVEN_ID = "1g.10gb", 19, 9, 0


@pytest.fixture
def hardware(tmp_path: Path) -> Hardware:
    return Hardware.installed(tmp_path / "machine.json", find_machine("dgx-h100"), "node-a")


@pytest.fixture
def card(hardware: Hardware) -> Iterator[Any]:
    """The handle of card 0, in MIG mode."""
    library = Library(SimulatedLibrary(hardware))
    with library.held():
        library.open()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        assert pynvml.nvmlDeviceSetMigMode(handle, 1) == 0
        yield handle
        library.shut()


def code_of(question: Any) -> int:
    with pytest.raises(pynvml.NVMLError) as caught:
        question()
    return int(caught.value.value)


def make(card: Any, profile: int, start: int, size: int) -> Any:
    place = pynvml.c_nvmlGpuInstancePlacement_t(start, size)
    return pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(card, profile, byref(place))


def test_creation_answers_with_the_codes_of_nvml(card: Any) -> None:
    make(card, SMALL_ID, 0, 1)
    assert code_of(lambda: make(card, SMALL_ID, 0, 1)) == 23  # taken
    assert code_of(lambda: make(card, THREE_ID, 0, 4)) == 23  # overlaps
    assert code_of(lambda: make(card, THREE_ID, 2, 4)) == 2  # no such start
    assert code_of(lambda: make(card, SMALL_ID, 1, 2)) == 2  # no such size
    assert code_of(lambda: make(card, 999, 0, 1)) == 2  # no such profile


def test_without_a_placement_the_first_free_one_is_taken(card: Any) -> None:
    starts = []
    for _ in range(7):
        made = pynvml.nvmlDeviceCreateGpuInstance(card, SMALL_ID)
        starts.append(pynvml.nvmlGpuInstanceGetInfo(made).placement.start)
    assert starts == list(range(7))
    assert code_of(lambda: pynvml.nvmlDeviceCreateGpuInstance(card, SMALL_ID)) == 23


def test_the_remaining_capacity_counts_what_still_fits(card: Any) -> None:
    ask = pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity
    assert [ask(card, profile) for profile in (SMALL_ID, THREE_ID, SEVEN_ID)] == [7, 2, 1]
    make(card, THREE_ID, 4, 4)
    assert [ask(card, profile) for profile in (SMALL_ID, THREE_ID, SEVEN_ID)] == [4, 1, 0]


def test_nothing_is_made_or_listed_outside_mig_mode(hardware: Hardware, card: Any) -> None:
    other = pynvml.nvmlDeviceGetHandleByIndex(1)
    assert code_of(lambda: make(other, SMALL_ID, 0, 1)) == 3
    assert code_of(lambda: pynvml.nvmlDeviceGetMigDeviceHandleByIndex(other, 0)) == 3
    array, count = (pynvml.c_nvmlGpuInstance_t * 7)(), c_uint(7)
    ask = pynvml.nvmlDeviceGetGpuInstances
    assert code_of(lambda: ask(other, SMALL_ID, array, byref(count))) == 3


def test_a_list_needs_an_array_for_all_that_the_profile_allows(card: Any) -> None:
    make(card, SMALL_ID, 0, 1)
    make(card, SMALL_ID, 3, 1)
    array, count = (pynvml.c_nvmlGpuInstance_t * 7)(), c_uint(0)
    pynvml.nvmlDeviceGetGpuInstances(card, SMALL_ID, array, byref(count))
    infos = [pynvml.nvmlGpuInstanceGetInfo(one) for one in array[: count.value]]
    assert [(i.placement.start, i.placement.size, i.profileId) for i in infos] == [
        (0, 1, SMALL_ID),
        (3, 1, SMALL_ID),
    ]
    assert pynvml.nvmlDeviceGetUUID(infos[0].device) == pynvml.nvmlDeviceGetUUID(card)
    short = (pynvml.c_nvmlGpuInstance_t * 1)()
    ask = pynvml.nvmlDeviceGetGpuInstances
    assert code_of(lambda: ask(card, SMALL_ID, short, byref(count))) == 2


def test_a_mig_device_is_there_only_with_its_compute_instance(card: Any) -> None:
    gi = make(card, THREE_ID, 4, 4)
    assert code_of(lambda: pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)) == 6
    ci = pynvml.nvmlGpuInstanceCreateComputeInstance(gi, 2)
    mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)
    uuid = pynvml.nvmlDeviceGetUUID(mig)
    assert uuid.startswith("MIG-")
    info = pynvml.nvmlComputeInstanceGetInfo(ci)
    assert pynvml.nvmlDeviceGetUUID(info.device) == uuid
    assert pynvml.nvmlGpuInstanceGetInfo(info.gpuInstance).id == pynvml.nvmlDeviceGetGpuInstanceId(
        mig
    )
    assert pynvml.nvmlDeviceGetComputeInstanceId(mig) == info.id
    assert pynvml.nvmlDeviceGetName(mig) == "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    assert pynvml.nvmlDeviceGetMemoryInfo(mig).total == 40448 << 20
    assert pynvml.nvmlDeviceIsMigDeviceHandle(mig).value == 1
    assert pynvml.nvmlDeviceIsMigDeviceHandle(card).value == 0
    assert code_of(lambda: pynvml.nvmlDeviceGetMigMode(mig)) == 2
    assert code_of(lambda: pynvml.nvmlDeviceGetGpuInstanceId(card)) == 2


def test_compute_profiles_are_those_that_fit_into_the_instance(card: Any) -> None:
    gi = make(card, THREE_ID, 0, 4)
    ask = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo
    found = [ask(gi, number, 0) for number in range(3)]
    assert [(i.sliceCount, i.instanceCount, i.name) for i in found] == [
        (1, 3, "MIG 1c.3g.40gb"),
        (2, 1, "MIG 2c.3g.40gb"),
        (3, 1, "MIG 3g.40gb"),
    ]
    assert code_of(lambda: ask(gi, 3, 0)) == 3
    assert code_of(lambda: ask(gi, 9, 0)) == 2
    assert code_of(lambda: ask(gi, 0, 1)) == 2
    assert ask(gi, 2, 0, version=1).sliceCount == 3


def test_compute_instances_share_out_the_slices_of_their_gpu_instance(card: Any) -> None:
    gi = make(card, THREE_ID, 0, 4)
    create = pynvml.nvmlGpuInstanceCreateComputeInstance
    one, two = create(gi, 0), create(gi, 1)
    places = [pynvml.nvmlComputeInstanceGetInfo(ci).placement for ci in (one, two)]
    assert [(place.start, place.size) for place in places] == [(0, 1), (1, 2)]
    assert code_of(lambda: create(gi, 0)) == 23
    assert code_of(lambda: create(gi, 3)) == 2
    pynvml.nvmlComputeInstanceDestroy(one)
    assert pynvml.nvmlComputeInstanceGetInfo(create(gi, 0)).placement.start == 0


def test_a_gpu_instance_goes_only_after_its_compute_instances(card: Any) -> None:
    gi = make(card, THREE_ID, 0, 4)
    ci = pynvml.nvmlGpuInstanceCreateComputeInstance(gi, 2)
    assert code_of(lambda: pynvml.nvmlGpuInstanceDestroy(gi)) == 19
    pynvml.nvmlComputeInstanceDestroy(ci)
    pynvml.nvmlGpuInstanceDestroy(gi)
    assert code_of(lambda: pynvml.nvmlGpuInstanceDestroy(gi)) == 6
    assert code_of(lambda: pynvml.nvmlComputeInstanceGetInfo(ci)) == 6


def test_a_handle_of_one_kind_is_nothing_for_functions_of_another(card: Any) -> None:
    gi = make(card, THREE_ID, 0, 4)
    assert code_of(lambda: pynvml.nvmlDeviceGetName(gi)) == 2
    assert code_of(lambda: pynvml.nvmlComputeInstanceGetInfo(gi)) == 2
    assert code_of(lambda: pynvml.nvmlGpuInstanceGetInfo(card)) == 2


def test_old_handles_never_mean_an_instance_made_later(card: Any) -> None:
    old = make(card, THREE_ID, 0, 4)
    identity = pynvml.nvmlGpuInstanceGetInfo(old).id
    pynvml.nvmlGpuInstanceDestroy(old)
    new = make(card, THREE_ID, 0, 4)
    assert pynvml.nvmlGpuInstanceGetInfo(new).id == identity
    assert code_of(lambda: pynvml.nvmlGpuInstanceGetInfo(old)) == 6
    assert (
        pynvml.nvmlGpuInstanceGetInfo(pynvml.nvmlDeviceGetGpuInstanceById(card, identity)).id
        == identity
    )
    assert code_of(lambda: pynvml.nvmlDeviceGetGpuInstanceById(card, 99)) == 6


def test_a_mode_that_cannot_change_now_is_pending_until_the_next_reset(
    hardware: Hardware, card: Any
) -> None:
    other = pynvml.nvmlDeviceGetHandleByIndex(1)
    hardware.run(1, ProcessState(42, "python", 1))
    assert pynvml.nvmlDeviceSetMigMode(other, 1) == 19
    assert pynvml.nvmlDeviceGetMigMode(other) == [0, 1]
    with pytest.raises(HardwareError, match="In use"):
        hardware.reset(1)
    hardware.end(1, 42)
    hardware.reset(1)
    assert pynvml.nvmlDeviceGetMigMode(other) == [1, 1]
    assert code_of(lambda: pynvml.nvmlDeviceSetMigMode(other, 2)) == 2


def test_a_reset_takes_the_instances_and_keeps_the_mode(hardware: Hardware, card: Any) -> None:
    make(card, THREE_ID, 0, 4)
    assert code_of(lambda: pynvml.nvmlDeviceSetMigMode(card, 0)) == 19
    hardware.reset(0)
    assert pynvml.nvmlDeviceGetMigMode(card) == [1, 1]
    assert pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity(card, SEVEN_ID) == 1


def test_a_reboot_changes_the_boot_id_and_the_minors(hardware: Hardware) -> None:
    file = hardware.roots.proc / "sys/kernel/random/boot_id"
    before, minors = file.read_text(), [hardware.read().minor(slot) for slot in range(8)]
    hardware.reboot()
    assert file.read_text() != before
    assert sorted(map(str, minors)) == sorted(str(hardware.read().minor(s)) for s in range(8))
    assert all(hardware.read().minor(slot) != minor for slot, minor in enumerate(minors))


def test_processes_belong_to_the_mig_device_they_run_on(hardware: Hardware, card: Any) -> None:
    hardware.make_by_hand(0, SMALL, 0)
    hardware.make_by_hand(0, SMALL, 1)
    first, _ = hardware.read().cards[0].instances
    hardware.run(0, ProcessState(42, "python", 1 << 20, first.identity, 0))
    ask = pynvml.nvmlDeviceGetComputeRunningProcesses
    on = [ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, index)) for index in (0, 1)]
    assert [[one.pid for one in listed] for listed in on] == [[42], []]
    assert [one.gpuInstanceId for one in ask(card)] == [first.identity]
    mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)
    assert pynvml.nvmlDeviceGetMemoryInfo(mig).used == 1 << 20
    with pytest.raises(HardwareError, match="Invalid"):
        hardware.run(0, ProcessState(43, "python", 1))  # a divided card runs nothing as a whole


def test_hands_make_only_what_the_card_allows(hardware: Hardware, card: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"allowed: 1g\.10gb"):
        hardware.make_by_hand(0, "1g.5gb", 0)
    hardware.make_by_hand(0, SMALL, 0)
    with pytest.raises(HardwareError, match="Insufficient"):
        hardware.make_by_hand(0, "7g.80gb", 0)
    with pytest.raises(HardwareError, match="Not Supported"):
        hardware.make_by_hand(1, SMALL, 0)


def test_a_handle_can_be_asked_for_by_address(hardware: Hardware, card: Any) -> None:
    address = str(hardware.read().address(0))
    found = pynvml.nvmlDeviceGetHandleByPciBusId(address)
    assert pynvml.nvmlDeviceGetUUID(found) == pynvml.nvmlDeviceGetUUID(card)
    assert code_of(lambda: pynvml.nvmlDeviceGetHandleByPciBusId("0000:ee:00.0")) == 6
    assert code_of(lambda: pynvml.nvmlDeviceGetHandleByPciBusId("nonsense")) == 2
