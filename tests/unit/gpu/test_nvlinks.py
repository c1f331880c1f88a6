"""NVLink and fabric as the adapter reads them: pairs, domains, links that are down, cliques."""

from dataclasses import replace

import pytest

from dragoon.gpu.model import FabricState, LinkRemote, MigMode
from dragoon.gpu.sim.machine import FABRIC_COMPLETED, FABRIC_IN_PROGRESS, FabricRecord
from dragoon.gpu.sim.state import Effect, Fault
from dragoon.gpu.topology import nvlink_domains
from tests.unit.gpu.rig import Simulate

CLUSTER = "11111111-2222-3333-4444-555555555555"


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
