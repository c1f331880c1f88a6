"""Every question to a card may fail on its own: the others never notice."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoon.errors import HardwareError
from dragoon.gpu.model import Gpu, Inventory, LostGpu
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.profiles import machine_from
from dragoon.gpu.sim.state import Effect, Fault
from tests.unit.gpu.rig import Rig, rig

# A machine with everything that can be asked: direct links, a fabric over nodes, MIG.
EVERYTHING = """
schema: case-topology/1
name: everything
count: 4
gpus:
  - {index: 0, product: NVIDIA H100, memoryMiB: 81559, numaNode: 0}
  - {index: 1, product: NVIDIA H100, memoryMiB: 81559, numaNode: 0}
  - {index: 2, product: NVIDIA H100, memoryMiB: 81559, numaNode: 1}
  - {index: 3, product: NVIDIA H100, memoryMiB: 81559, numaNode: 1}
nvlink: {via: direct, linksPerGPU: 18, allPairsOf: [0, 1, 2, 3], linksPerPair: 6}
fabric:
  state: Completed
  status: Success
  cliqueId: 5
  clusterUUID: 11111111-2222-3333-4444-555555555555
mig:
  axisWidth: 8
  profiles: [{name: 1g.10gb, id: 19, instances: 7, starts: [0, 1, 2, 3, 4, 5, 6], size: 1}]
"""
BROKEN = 1
V4, V3 = "nvmlDeviceGetGpuFabricInfo_v4", "nvmlDeviceGetGpuFabricInfoV"
CODES = {
    "not supported": 3,
    "no permission": 4,
    "lost": 15,
    "needs a reset": 16,
    "unknown": 999,
    "a code of the future": 77,
}


class Recording:
    """A library that notes which symbols are looked up."""

    def __init__(self, library: SimulatedLibrary) -> None:
        self.library = library
        self.symbols: set[str] = set()

    def __getattr__(self, symbol: str) -> Any:
        self.symbols.add(symbol)
        return getattr(self.library, symbol)


def symbols_of_the_adapter() -> set[str]:
    """Those that a look uses, with a new driver and with one that has no fabric query v4."""
    found: set[str] = set()
    for missing in ((), (V4,)):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "machine.json"
            hardware = Hardware.installed(file, machine_from(EVERYTHING, "here"), "node")
            for symbol in missing:
                hardware.fail(Fault(symbol, Effect.MISSING))
            library = Recording(SimulatedLibrary(hardware))
            gpus = NvmlGpus(hardware.roots, stand_in=library)
            gpus.inventory()
            gpus.close()
            found |= library.symbols
    return found


SYMBOLS = symbols_of_the_adapter()
WHOLE = {"nvmlInitWithFlags", "nvmlShutdown", "nvmlDeviceGetCount_v2", "nvmlErrorString"}
VERSIONS = {"nvmlSystemGetDriverVersion", "nvmlSystemGetCudaDriverVersion_v2"}
PER_CARD = sorted(SYMBOLS - WHOLE - VERSIONS)
IDENTITY = {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetUUID"}
TEXTS = {"nvmlDeviceGetName", "nvmlDeviceGetUUID"}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Rig]:
    file = tmp_path / "everything.yaml"
    file.write_text(EVERYTHING)
    with rig(str(file), tmp_path) as made:
        yield made


@pytest.fixture
def healthy(machine: Rig) -> Inventory:
    return machine.look()


def break_it(machine: Rig, fault: Fault) -> None:
    """Besides, the newest fabric query is missing where the one before it is to be asked."""
    if fault.symbol == V3:
        machine.hardware.fail(Fault(V4, Effect.MISSING))
    if fault.symbol == V4 and fault.code == CODES["not supported"]:
        machine.hardware.fail(replace(fault, symbol=V3))  # or the older query answers
    machine.hardware.fail(fault)


def others(inventory: Inventory) -> list[Gpu]:
    return [gpu for gpu in inventory.gpus if gpu.index != BROKEN]


def test_the_list_of_symbols_is_that_of_a_whole_look() -> None:
    assert IDENTITY | TEXTS | WHOLE - {"nvmlErrorString"} <= SYMBOLS
    assert len(PER_CARD) >= 16


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
@pytest.mark.parametrize("symbol", PER_CARD)
def test_a_query_that_fails_on_one_card_costs_no_other(
    machine: Rig, healthy: Inventory, symbol: str, code: int
) -> None:
    break_it(machine, Fault(symbol, code=code, slot=BROKEN))
    found = machine.look()
    assert others(found) == others(healthy)
    expect_the_card(found, healthy.gpus[BROKEN], lost=symbol in IDENTITY or code in {15, 16})


@pytest.mark.parametrize("symbol", PER_CARD)
def test_a_query_that_fails_on_every_card_costs_at_most_its_answer(
    machine: Rig, healthy: Inventory, symbol: str
) -> None:
    break_it(machine, Fault(symbol))
    found = machine.look()
    assert len(found.gpus) + len(found.lost) == len(healthy.gpus)
    assert bool(found.lost) == (symbol in IDENTITY)


@pytest.mark.parametrize("symbol", sorted(set(PER_CARD) - IDENTITY))
def test_a_symbol_that_the_driver_does_not_have_is_no_problem_of_a_card(
    machine: Rig, healthy: Inventory, symbol: str
) -> None:
    machine.hardware.fail(Fault(symbol, Effect.MISSING))
    found = machine.look()
    assert len(found.gpus) == 4
    assert not any(gpu.problems for gpu in found.gpus)


@pytest.mark.parametrize("symbol", sorted(TEXTS))
def test_text_that_is_not_utf8_costs_no_other_card(
    machine: Rig, healthy: Inventory, symbol: str
) -> None:
    machine.hardware.fail(Fault(symbol, Effect.GARBLE, slot=BROKEN))
    found = machine.look()
    assert others(found) == others(healthy)
    expect_the_card(found, healthy.gpus[BROKEN], lost=symbol in IDENTITY)


def test_a_failure_is_told_once_with_its_number_of_times(machine: Rig) -> None:
    machine.hardware.fail(Fault("nvmlDeviceGetNvLinkVersion", code=999, slot=0))
    (problem,) = machine.gpu(0).problems
    assert problem == "NVLink version: Unknown Error (code 999) (18 times)"


@pytest.mark.parametrize("symbol", sorted(VERSIONS))
def test_an_unknown_version_costs_no_card(machine: Rig, healthy: Inventory, symbol: str) -> None:
    break_it(machine, Fault(symbol))
    found = machine.look()
    assert found.gpus == healthy.gpus
    assert None in {found.driver_version, found.cuda_version}


@pytest.mark.parametrize("symbol", ["nvmlInitWithFlags", "nvmlDeviceGetCount_v2"])
def test_a_library_that_fails_as_a_whole_is_an_error_and_may_be_asked_again(
    machine: Rig, symbol: str
) -> None:
    machine.hardware.fail(Fault(symbol))
    with pytest.raises(HardwareError, match="999") as caught:
        machine.look()
    assert caught.value.retryable
    machine.hardware.lift(symbol)
    assert len(machine.look().gpus) == 4


def expect_the_card(found: Inventory, healthy: Gpu, *, lost: bool) -> None:
    if lost:
        (card,) = found.lost
        assert card == LostGpu(healthy.address, card.reason, healthy.uuid)
        assert card.reason
        return
    assert found.lost == ()
    (gpu,) = (gpu for gpu in found.gpus if gpu.index == BROKEN)
    same = ("address", "index", "uuid", "numa_node", "pcie_root")
    assert [getattr(gpu, name) for name in same] == [getattr(healthy, name) for name in same]
    assert gpu != replace(healthy, problems=gpu.problems)
