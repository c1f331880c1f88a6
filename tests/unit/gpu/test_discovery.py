"""The adapter over the simulated library, case by case."""

import threading
from dataclasses import replace
from functools import partial

import pytest

from dragoon.errors import DragoonError, DriverMissingError, HardwareError
from dragoon.gpu.model import FabricState, LinkRemote, MigMode, PciAddress
from dragoon.gpu.naming import whole_name
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.nvml.library import Library
from dragoon.gpu.sim.machine import FABRIC_COMPLETED, FABRIC_IN_PROGRESS, FabricRecord
from dragoon.gpu.sim.state import Effect, Fault, Loss, State
from dragoon.gpu.topology import nvlink_domains
from tests.unit.gpu.rig import Rig, Simulate

CLUSTER = "11111111-2222-3333-4444-555555555555"


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


def test_c05_one_gpu_off_the_nvlink_domain_is_offered_without_one(simulate: Simulate) -> None:
    machine = simulate("hgx-b200-one-gpu-off-nvlink")
    found = machine.look()
    assert [machine.slots(d) for d in nvlink_domains(found.gpus)] == [[0, 1, 3, 4, 5, 6, 7]]
    assert len(found.gpus) == 8
    assert not any(link.active for link in found.gpus[2].links)


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("rtx8000-4way-crossed-bridges", [[0, 3], [1, 2]]),
        ("a40-8way-bridge-pairs", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("a6000-3way-one-bridge", [[0, 1]]),
    ],
)
def test_c07_bridge_pairs_are_read_and_not_guessed(
    simulate: Simulate, name: str, pairs: list[list[int]]
) -> None:
    machine = simulate(name)
    assert [machine.slots(d) for d in nvlink_domains(machine.look().gpus)] == pairs


@pytest.mark.parametrize(
    "missing",
    [(), ("nvmlDeviceGetGpuFabricInfo_v4",)],
    ids=["fabric query v4", "v3"],
)
def test_c10_a_registered_card_has_cluster_and_clique(
    simulate: Simulate, missing: tuple[str, ...]
) -> None:
    machine = simulate("gb200-tray-4gpu")
    for symbol in missing:
        machine.hardware.fail(Fault(symbol, Effect.MISSING))
    fabric = machine.gpu(0).fabric
    assert fabric.state is FabricState.COMPLETED
    assert (fabric.cluster_uuid, fabric.clique_id, fabric.reason) == (CLUSTER, 4026, "")


def test_c10_old_drivers_are_asked_in_the_oldest_form(simulate: Simulate) -> None:
    machine = simulate("gb200-tray-4gpu")
    machine.hardware.fail(Fault("nvmlDeviceGetGpuFabricInfo_v4", Effect.MISSING))
    machine.hardware.fail(Fault("nvmlDeviceGetGpuFabricInfoV", code=25, struct_version=0x03000028))
    assert machine.gpu(0).fabric.clique_id == 4026
    assert machine.gpu(0).problems == ()


def test_c10_a_zero_cluster_uuid_is_no_fabric_and_no_error(simulate: Simulate) -> None:
    fabric = simulate("dgx-h100").gpu(0).fabric
    assert (fabric.state, fabric.cluster_uuid, fabric.clique_id) == (
        FabricState.COMPLETED,
        None,
        None,
    )
    assert "zero" in fabric.reason


def test_c10_registration_in_progress_is_published_when_it_completes(simulate: Simulate) -> None:
    machine = simulate("gb200-tray-4gpu")
    machine.hardware.set_fabric(0, FabricRecord(state=FABRIC_IN_PROGRESS))
    assert machine.gpu(0).fabric.state is FabricState.IN_PROGRESS
    assert machine.gpu(0).fabric.cluster_uuid is None
    machine.hardware.set_fabric(0, FabricRecord(FABRIC_COMPLETED, cluster_uuid=CLUSTER, clique=7))
    assert machine.gpu(0).fabric.clique_id == 7


def test_c10_a_failed_registration_has_a_reason_and_no_clique(simulate: Simulate) -> None:
    machine = simulate("gb200-tray-4gpu")
    machine.hardware.set_fabric(
        1, FabricRecord(FABRIC_COMPLETED, status=999, cluster_uuid=CLUSTER, clique=7)
    )
    fabric = machine.gpu(1).fabric
    assert (fabric.state, fabric.cluster_uuid) == (FabricState.FAILED, None)
    assert "999" in fabric.reason


def test_c10_an_unhealthy_fabric_is_told(simulate: Simulate) -> None:
    machine = simulate("gb200-tray-4gpu")
    record = machine.state.fabric(0)
    machine.hardware.set_fabric(0, replace(record, health=2))
    fabric = machine.gpu(0).fabric
    assert fabric.clique_id == 4026
    assert "unhealthy" in fabric.reason


def test_c10_a_guest_without_fabric_data_has_none(simulate: Simulate) -> None:
    assert simulate("vgpu-l40s-3way").gpu(0).fabric.state is FabricState.UNSUPPORTED


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


def test_links_have_speed_version_and_far_end(simulate: Simulate) -> None:
    machine = simulate("gh200-4way")
    links = machine.gpu(0).links
    assert len(links) == 18
    assert {(link.remote, link.version, link.mb_per_second) for link in links} == {
        (LinkRemote.GPU, 6, 26562)
    }
    assert {link.peer for link in links} == {machine.address(slot) for slot in (1, 2, 3)}


def test_the_speed_for_all_links_serves_where_there_is_none_for_each(simulate: Simulate) -> None:
    machine = simulate("rtx8000-4way-crossed-bridges")
    assert machine.gpu(0).links[0].mb_per_second == 25781


def test_a_dropped_link_is_down_at_both_ends_and_comes_up_again(simulate: Simulate) -> None:
    machine = simulate("rtx3090-2way-bridge")
    machine.hardware.drop_link(0, 2)
    for slot in (0, 1):
        assert [link.active for link in machine.gpu(slot).links] == [True, True, False, True]
    assert machine.gpu(1).links[2].mb_per_second is None
    machine.hardware.raise_link(0, 2)
    assert all(link.active for link in machine.gpu(1).links)


def test_a_link_that_is_down_may_fail_to_tell_its_end(simulate: Simulate) -> None:
    machine = simulate("rtx3090-2way-bridge")
    machine.hardware.drop_link(0, 0)
    machine.hardware.fail(Fault("nvmlDeviceGetNvLinkRemoteDeviceType"))
    (problem,) = machine.gpu(0).problems
    assert "(3 times)" in problem  # the three links that are up


def test_mig_mode_takes_links_down_and_the_domain_stays(simulate: Simulate) -> None:
    machine = simulate("dgx-h100")
    before = nvlink_domains(machine.look().gpus)
    machine.hardware.set_mig_mode(2, enabled=True)
    found = machine.look()
    assert found.gpus[2].mig == MigMode(enabled=True, pending=True)
    assert not any(link.active for link in found.gpus[2].links)
    assert nvlink_domains(found.gpus) == before


def test_links_down_for_another_reason_end_the_membership(simulate: Simulate) -> None:
    machine = simulate("dgx-h100")
    machine.look()
    machine.hardware.drop_link(2, 0)
    assert [machine.slots(d) for d in nvlink_domains(machine.look().gpus)] == [
        [0, 1, 3, 4, 5, 6, 7]
    ]


def test_no_driver_says_so_with_a_hint() -> None:
    gpus = NvmlGpus(stand_in=_Broken(12))
    with pytest.raises(DriverMissingError) as caught:
        gpus.inventory()
    assert "--simulate" in caught.value.hint
    gpus.close()


@pytest.mark.parametrize(
    ("code", "kind", "word"),
    [
        (9, DriverMissingError, "install"),
        (18, HardwareError, "reboot"),
        (4, HardwareError, "root"),
        (999, HardwareError, ""),
    ],
)
def test_a_library_that_does_not_start_names_its_code(
    code: int, kind: type[DragoonError], word: str
) -> None:
    gpus = NvmlGpus(stand_in=_Broken(code))
    with pytest.raises(kind) as caught:
        gpus.inventory()
    assert f"code {code}" in caught.value.message
    assert word in caught.value.hint


def test_a_driver_taken_away_is_an_error_and_works_again_when_it_is_back(
    simulate: Simulate,
) -> None:
    machine = simulate("t4")
    before = machine.look()
    aside = machine.hardware.file.with_suffix(".aside")
    machine.hardware.file.rename(aside)
    with pytest.raises(DriverMissingError):
        machine.look()
    aside.rename(machine.hardware.file)
    assert machine.look() == before


def test_closing_twice_is_one_closing(simulate: Simulate) -> None:
    machine = simulate("t4")
    machine.look()
    machine.gpus.close()
    machine.gpus.close()
    assert len(machine.look().gpus) == 1


def test_several_threads_may_look_at_once(simulate: Simulate) -> None:
    one, two = simulate("dgx-h100"), simulate("gb200-tray-4gpu")
    expected = one.look(), two.look()
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda m=machine: found.append(m.look()))
        for machine in (one, two) * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count(expected[0]) == found.count(expected[1]) == 4


def test_a_close_beside_a_call_that_hangs_gives_up(simulate: Simulate) -> None:
    stuck = _Stuck()
    thread = threading.Thread(target=NvmlGpus(stand_in=stuck).close)
    looking = threading.Thread(target=_look_in_vain, args=(NvmlGpus(stand_in=stuck),))
    looking.start()
    assert stuck.entered.wait(60)
    Library().close(patience=0.01)
    thread.start()
    stuck.release.set()
    thread.join()
    looking.join()
    assert len(simulate("t4").look().gpus) == 1


def _look_in_vain(gpus: NvmlGpus) -> None:
    with pytest.raises(HardwareError):
        gpus.inventory()


class _Stuck:
    """A library whose initialisation does not come back before it is released, and then fails."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.release = threading.Event()
        self.nvmlErrorString = lambda _code: b"stuck"

    def nvmlInitWithFlags(self, _flags: int) -> int:  # noqa: N802 - a C symbol
        self.entered.set()
        assert self.release.wait(60)
        return 999


class _Broken:
    """A library whose initialisation fails with a code."""

    def __init__(self, code: int) -> None:
        self.nvmlInitWithFlags = lambda _flags: code
        self.nvmlErrorString = lambda _code: b"broken"


def test_pci_addresses_have_no_function_of_their_own(simulate: Simulate) -> None:
    assert simulate("t4").gpu(0).address == PciAddress(0, 0x11, 0)
