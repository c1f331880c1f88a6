"""The adapter over the simulated library, case by case."""

from dataclasses import replace
from functools import partial

import pytest

from dragoon.gpu.model import MigMode, PciAddress
from dragoon.gpu.naming import whole_name
from dragoon.gpu.sim.state import Loss, State
from tests.unit.gpu.rig import Rig, Simulate


def names(machine: Rig) -> set[str]:
    return {whole_name(gpu.address) for gpu in machine.look().gpus}


@pytest.mark.parametrize("how", list(Loss))
def test_c01_a_lost_card_costs_no_other_and_keeps_its_identity(
    simulate: Simulate, how: Loss
) -> None:
    machine = simulate("dgx-h100")
    before = machine.look()
    machine.hardware.lose(3, how)
    after = machine.look()
    assert after.degraded
    assert [gpu.uuid for gpu in after.gpus] == [g.uuid for g in before.gpus if g.index != 3]
    assert {g.address for g in after.gpus} < {g.address for g in before.gpus}
    (lost,) = after.lost
    assert (lost.address, lost.uuid) == (before.gpus[3].address, before.gpus[3].uuid)
    assert lost.reason


@pytest.mark.parametrize("how", [Loss.SILENT, Loss.NO_HANDLE, Loss.UNLISTED])
def test_c01_a_card_lost_before_the_start_is_found_on_the_bus(
    simulate: Simulate, how: Loss
) -> None:
    machine = simulate("dgx-h100")
    machine.hardware.lose(0, how)
    lost = machine.lost()
    assert lost.address == machine.address(0)
    assert lost.uuid == machine.state.cards[0].uuid  # from the listing of the kernel module


@pytest.mark.parametrize("how", list(Loss))
def test_c01_a_card_that_comes_back_is_seen_by_the_next_look_but_one(
    simulate: Simulate, how: Loss
) -> None:
    machine = simulate("l40s-4way-pcie")
    before = machine.look()
    machine.hardware.lose(1, how)
    assert len(machine.look().gpus) == 3
    machine.hardware.bring_back(1)
    assert machine.look() == before


def test_c01_all_cards_lost_is_an_inventory_and_no_error(simulate: Simulate) -> None:
    machine = simulate("l40s-4way-pcie")
    for slot in range(4):
        machine.hardware.lose(slot)
    found = machine.look()
    assert (found.gpus, len(found.lost)) == ((), 4)


def test_c02_names_do_not_move_when_a_card_leaves(simulate: Simulate) -> None:
    machine = simulate("dgx-a100-40gb")
    before = names(machine)
    machine.hardware.lose(0, Loss.OFF_BUS)
    assert before - names(machine) == {whole_name(machine.address(0))}
    assert [gpu.index for gpu in machine.look().gpus] == list(range(7))


def test_c04_a_card_without_a_memory_size_has_none(simulate: Simulate) -> None:
    found = simulate("gb10-single").look()
    (gpu,) = found.gpus
    assert gpu.memory_bytes is None
    assert gpu.mig is None
    assert gpu.problems == ()
    assert gpu.address.domain == 0xF


@pytest.mark.parametrize(
    ("name", "mib", "architecture"),
    [
        ("gh200-4way", 97871, "Hopper"),
        ("hgx-h200-8gpu", 143771, "Hopper"),
        ("gh200-144g-single", None, "Hopper"),
    ],
)
def test_c11_memory_and_architecture_come_from_queries(
    simulate: Simulate, name: str, mib: int | None, architecture: str
) -> None:
    gpu = simulate(name).gpu(0)
    assert gpu.memory_bytes == (None if mib is None else mib << 20)
    assert gpu.architecture == architecture


def _with_driver_version(state: State, *, text: str) -> State:
    return replace(state, machine=replace(state.machine, driver_version=text))


def test_c12_the_driver_version_stays_as_the_driver_wrote_it(simulate: Simulate) -> None:
    machine = simulate("t4")
    for text in ("580.159.04", "580.126.20.01", ""):
        machine.hardware.change(partial(_with_driver_version, text=text))
        assert machine.look().driver_version == text
    assert machine.look().cuda_version == (13, 0)


def test_c13_mig_is_a_property_of_the_card(simulate: Simulate) -> None:
    a30, t4 = simulate("mixed-a30-t4").look().gpus
    assert a30.mig == MigMode(enabled=False, pending=False)
    assert t4.mig is None
    assert all(gpu.mig is None for gpu in simulate("l20-4way-pcie").look().gpus)


def test_c53_grace_gpus_are_on_the_numa_node_of_their_cpus(simulate: Simulate) -> None:
    gpus = simulate("gb200-tray-4gpu").look().gpus
    assert [gpu.numa_node for gpu in gpus] == [0, 0, 1, 1]
    assert all(gpu.address.domain for gpu in gpus)
    gh200 = simulate("gh200-4way").look().gpus
    assert [gpu.numa_node for gpu in gh200] == [0, 1, 2, 3]


def test_c53_an_unknown_numa_node_is_none_and_the_root_is_in_standard_form(
    simulate: Simulate,
) -> None:
    gpu = simulate("gb10-single").gpu(0)
    assert (gpu.numa_node, gpu.pcie_root) == (None, "pci000f:00")


def test_a_slot_may_come_back_with_another_card(simulate: Simulate) -> None:
    machine = simulate("t4")
    machine.look()
    other = "GPU-00000000-0000-0000-0000-000000000001"
    machine.hardware.set_uuid(0, other)
    assert machine.gpu(0).uuid == other
    machine.hardware.lose(0)
    assert machine.lost().uuid == other


def test_two_cards_at_one_address_cost_only_themselves(simulate: Simulate) -> None:
    machine = simulate("l40s-4way-pcie")
    machine.hardware.move(1, machine.address(0))
    found = machine.look()
    assert [gpu.address for gpu in found.gpus] == [machine.address(2), machine.address(3)]
    assert machine.address(0) in {lost.address for lost in found.lost}


def test_pci_addresses_have_no_function_of_their_own(simulate: Simulate) -> None:
    assert simulate("t4").gpu(0).address == PciAddress(0, 0x11, 0)
