"""The rules that a library under pynvml must honour, asked through pynvml itself."""

import ctypes
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from dragoon.gpu.nvml.library import Library
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.profiles import find_machine
from dragoon.gpu.sim.state import Effect, Fault
from dragoon.gpu.words import ARCHITECTURES, BRANDS

XID = pynvml.nvmlEventTypeXidCriticalError


@pytest.fixture
def hardware(tmp_path: Path) -> Hardware:
    return Hardware.installed(tmp_path / "machine.json", find_machine("dgx-h100"), "node-a")


@pytest.fixture
def card(hardware: Hardware) -> Iterator[Any]:
    """The handle of card 0, with the simulated library behind pynvml."""
    library = Library(SimulatedLibrary(hardware))
    with library.held():
        library.open()
        yield pynvml.nvmlDeviceGetHandleByIndex(0)
        library.shut()


def code_of(question: Any) -> int:
    with pytest.raises(pynvml.NVMLError) as caught:
        question()
    return int(caught.value.value)


def test_symbols_are_plain_functions_that_take_a_restype(hardware: Hardware) -> None:
    function: Any = SimulatedLibrary(hardware).nvmlErrorString
    function.restype = ctypes.c_char_p
    assert function(25) == b"Argument version mismatch"


def test_an_unknown_symbol_is_an_attribute_error(hardware: Hardware) -> None:
    library = SimulatedLibrary(hardware)
    assert not hasattr(library, "nvmlDeviceSetFanSpeed_v2")
    hardware.fail(Fault("nvmlDeviceGetName", Effect.MISSING))
    assert not hasattr(library, "nvmlDeviceGetName")


def test_a_symbol_that_goes_missing_after_its_first_use_is_still_missing(
    hardware: Hardware, card: Any
) -> None:
    assert pynvml.nvmlDeviceGetName(card) == "NVIDIA H100 80GB HBM3"
    hardware.fail(Fault("nvmlDeviceGetName", Effect.MISSING))
    assert code_of(lambda: pynvml.nvmlDeviceGetName(card)) == 13


def test_errors_outside_the_table_of_pynvml_have_words(card: Any) -> None:
    with pytest.raises(pynvml.NVMLError, match="Argument version mismatch"):
        pynvml.nvmlDeviceGetMemoryInfo(card, version=0x01000028)


def test_memory_v1_and_v2_agree(card: Any) -> None:
    old = pynvml.nvmlDeviceGetMemoryInfo(card)
    new = pynvml.nvmlDeviceGetMemoryInfo(card, version=pynvml.nvmlMemory_v2)
    assert old.total == new.total == 81559 << 20
    assert new.reserved == 0


@pytest.mark.parametrize("version", [0x01000024, 0x02000028, 0x04000024])
def test_a_fabric_struct_of_another_version_is_refused(card: Any, version: int) -> None:
    info = pynvml.c_nvmlGpuFabricInfo_v2_t()
    info.version = version
    question = lambda: pynvml.nvmlDeviceGetGpuFabricInfoV(card, pynvml.byref(info))  # noqa: E731
    assert code_of(question) == 25


def test_the_profile_info_is_refused_in_another_version(hardware: Hardware, card: Any) -> None:
    info = pynvml.c_nvmlGpuInstanceProfileInfo_v2_t()
    info.version = 0x01000098
    ask = SimulatedLibrary(hardware)
    ask.nvmlInitWithFlags(0)
    handle = pynvml.c_nvmlDevice_t()
    ask.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(0), ctypes.byref(handle))
    assert ask.nvmlDeviceGetGpuInstanceProfileInfoV(handle, 0, ctypes.byref(info)) == 25


def test_mig_profiles_have_both_struct_versions_and_placements(card: Any) -> None:
    double = pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2
    new = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(card, double)
    old = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(card, double, version=1)
    assert (new.name, new.id, new.instanceCount, new.sliceCount) == ("MIG 1g.20gb", 15, 4, 1)
    assert (old.id, old.memorySizeMB) == (15, new.memorySizeMB)
    count = ctypes.c_uint()
    ask = pynvml.nvmlDeviceGetGpuInstancePossiblePlacements
    ask(card, new.id, None, ctypes.byref(count))
    assert count.value == 4
    places = (pynvml.c_nvmlGpuInstancePlacement_t * 4)()
    ask(card, new.id, ctypes.byref(places), ctypes.byref(count))
    assert [(place.start, place.size) for place in places] == [(0, 2), (2, 2), (4, 2), (6, 2)]
    small = ctypes.c_uint(2)
    assert code_of(lambda: ask(card, new.id, ctypes.byref(places), ctypes.byref(small))) == 7


def test_a_profile_that_the_card_has_not_is_not_supported(card: Any) -> None:
    ask = pynvml.nvmlDeviceGetGpuInstanceProfileInfo
    assert code_of(lambda: ask(card, pynvml.NVML_GPU_INSTANCE_PROFILE_8_SLICE)) == 3
    assert code_of(lambda: ask(card, pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT)) == 2
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(card) == 7


def test_a_link_past_the_last_is_an_invalid_argument(card: Any) -> None:
    assert pynvml.nvmlDeviceGetNvLinkState(card, 17) == 1
    assert code_of(lambda: pynvml.nvmlDeviceGetNvLinkState(card, 18)) == 2


def test_field_values_fail_one_by_one(card: Any) -> None:
    speed, unknown = pynvml.nvmlDeviceGetFieldValues(
        card, [(pynvml.NVML_FI_DEV_NVLINK_GET_SPEED, 3), pynvml.NVML_FI_DEV_ECC_CURRENT]
    )
    assert (speed.nvmlReturn, speed.value.uiVal) == (0, 26562)
    assert unknown.nvmlReturn == 3


def test_nothing_works_before_the_initialisation(hardware: Hardware) -> None:
    with Library(SimulatedLibrary(hardware)).held():
        assert code_of(pynvml.nvmlDeviceGetCount) == 1


def test_an_index_or_a_handle_of_nothing_is_an_invalid_argument(card: Any) -> None:
    assert code_of(lambda: pynvml.nvmlDeviceGetHandleByIndex(8)) == 2
    assert code_of(lambda: pynvml.nvmlDeviceGetName(pynvml.c_nvmlDevice_t())) == 2


def test_text_longer_than_the_buffer_is_refused(hardware: Hardware, card: Any) -> None:
    buffer = ctypes.create_string_buffer(8)
    ask = SimulatedLibrary(hardware)
    ask.nvmlInitWithFlags(0)
    assert ask.nvmlSystemGetDriverVersion(buffer, ctypes.c_uint(8)) == 7


def test_an_xid_reaches_those_who_registered_and_only_once(hardware: Hardware, card: Any) -> None:
    hardware.raise_xid(0, 31)  # before the registration: never delivered
    events = pynvml.nvmlEventSetCreate()
    assert pynvml.nvmlDeviceGetSupportedEventTypes(card) & XID
    pynvml.nvmlDeviceRegisterEvents(card, XID, events)
    hardware.raise_xid(1, 43)  # another card
    hardware.raise_xid(0, 79)
    event = pynvml.nvmlEventSetWait_v2(events, 10_000)
    assert (event.eventType, event.eventData) == (XID, 79)
    assert pynvml.nvmlDeviceGetUUID(event.device) == hardware.read().cards[0].uuid
    assert code_of(lambda: pynvml.nvmlEventSetWait_v2(events, 0)) == 10
    pynvml.nvmlEventSetFree(events)
    assert code_of(lambda: pynvml.nvmlEventSetFree(events)) == 2


def test_each_card_delivers_from_its_own_registration_on(hardware: Hardware, card: Any) -> None:
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(card, XID, events)
    hardware.raise_xid(1, 43)
    pynvml.nvmlDeviceRegisterEvents(pynvml.nvmlDeviceGetHandleByIndex(1), XID, events)
    hardware.raise_xid(1, 44)
    assert pynvml.nvmlEventSetWait_v2(events, 10_000).eventData == 44


def test_a_card_that_hangs_does_not_hold_up_the_others(hardware: Hardware, card: Any) -> None:
    hardware.fail(Fault("nvmlDeviceGetName", Effect.HANG, slot=3))
    assert pynvml.nvmlDeviceGetName(card) == "NVIDIA H100 80GB HBM3"


def test_a_wait_ends_when_the_event_is_raised(hardware: Hardware, card: Any) -> None:
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(card, XID, events)
    thread = threading.Thread(target=hardware.raise_xid, args=(0, 48))
    thread.start()
    assert pynvml.nvmlEventSetWait_v2(events, 60_000).eventData == 48
    thread.join()


def test_a_call_that_hangs_comes_back_when_the_fault_is_lifted(
    hardware: Hardware, card: Any
) -> None:
    hardware.fail(Fault("nvmlDeviceGetName", Effect.HANG))
    threading.Timer(0, hardware.lift, args=("nvmlDeviceGetName",)).start()
    assert pynvml.nvmlDeviceGetName(card) == "NVIDIA H100 80GB HBM3"


def test_a_slow_call_takes_its_time_and_then_answers(hardware: Hardware, card: Any) -> None:
    hardware.fail(Fault("nvmlDeviceGetName", Effect.SLOW, milliseconds=30))
    started = time.perf_counter()
    assert pynvml.nvmlDeviceGetName(card) == "NVIDIA H100 80GB HBM3"
    assert time.perf_counter() - started >= 0.03


def test_words_are_numbered_as_the_library_numbers_them() -> None:
    for name, number in vars(pynvml).items():
        if name.startswith("NVML_DEVICE_ARCH_") and number in ARCHITECTURES:
            word = name.removeprefix("NVML_DEVICE_ARCH_").lower()
            assert ARCHITECTURES[number].lower().startswith(word)
    assert BRANDS[pynvml.NVML_BRAND_TESLA] == "Tesla"
    assert BRANDS[pynvml.NVML_BRAND_NVIDIA] == "NVIDIA"
    assert BRANDS[pynvml.NVML_BRAND_QUADRO_RTX] == "Quadro RTX"
    assert BRANDS[pynvml.NVML_BRAND_GEFORCE] == "GeForce"


def test_bound_names_that_later_features_need_are_in_pynvml() -> None:
    for name in (
        "nvmlDeviceSetMemoryLimits_v1",
        "nvmlDeviceGetMemoryLimits_v1",
        "nvmlEventSetWait_v3",
        "nvmlDeviceGetGpuFabricInfo_v4",
        "nvmlDeviceGetHandleByUUIDV",
        "nvmlDeviceGetPdi",
        "nvmlGpuInstanceGetComputeInstanceById",
    ):
        assert hasattr(pynvml, name)
