"""Kinds of damage to a node, each found by `dragoon check` with its code, by real files."""

import hashlib
import json
import shutil
import socket

import pytest

from dragoon.diagnose.checking import Report, run
from dragoon.gpu.sim.machine import FabricRecord
from dragoon.gpu.sim.state import Effect, Fault
from dragoon.kube.port import CLAIMS
from tests.scenario.damage.damages import Damage, Damages, assert_told, codes
from tests.scenario.damage.node_world import DIVIDED, RUNTIME, NodeWorld
from tests.scenario.pluginbed import DRIVER

DAMAGES: Damages[NodeWorld] = Damages()
"""The code, what the finding is about, and the damage."""
found_by = DAMAGES.row


async def report(world: NodeWorld) -> Report:
    return run(await world.evidence(), ("host", "runtime", "kubelet", "state"))


@found_by("HOST001", "NVML")
async def the_driver_does_not_start(world: NodeWorld) -> None:
    await world.stop_plugin()
    world.hardware.fail(Fault("nvmlInitWithFlags", code=9))


@found_by("HOST001", "NVML")
async def the_driver_hangs(world: NodeWorld) -> None:
    await world.stop_plugin()
    world.hardware.fail(Fault("nvmlDeviceGetCount_v2", Effect.HANG))
    world.patience = 0.2


@found_by("HOST002", "driverRoot")
async def the_driver_root_is_wrong(world: NodeWorld) -> None:
    world.settings["driver_root"] = str(world.bed.root / "elsewhere")


@found_by("HOST003", "/dev/nvidia-uvm")
async def a_device_file_is_missing(world: NodeWorld) -> None:
    (world.host / "dev/nvidia-uvm").unlink()


@found_by("HOST004", "GPU 0000:")
async def a_card_fell_off_the_bus(world: NodeWorld) -> None:
    world.hardware.lose(7)


@found_by("HOST005", "GPU 0000:")
async def a_card_does_not_answer_a_question(world: NodeWorld) -> None:
    world.hardware.fail(Fault("nvmlDeviceGetMemoryInfo_v2", slot=7))
    world.hardware.fail(Fault("nvmlDeviceGetMemoryInfo", slot=7))


@found_by("HOST007", "GPU 0000:")
async def a_card_could_not_join_its_fabric(world: NodeWorld) -> None:
    world.hardware.set_fabric(7, FabricRecord(state=3, status=999))


@found_by("HOST008", "GPU 0000:")
async def a_card_lost_its_links_to_the_switch(world: NodeWorld) -> None:
    for link in range(18):
        world.hardware.drop_link(7, link)


@found_by("RUNTIME001", "containerd")
async def cdi_is_off(world: NodeWorld) -> None:
    world.runtime.write_text(RUNTIME.replace("enable_cdi = true", "enable_cdi = false"))


@found_by("RUNTIME002", "containerd")
async def the_runtime_reads_another_folder(world: NodeWorld) -> None:
    world.runtime.write_text(RUNTIME + 'cdi_spec_dirs = ["/opt/cdi"]\n')


@found_by("RUNTIME003", "containerd")
async def the_runtime_does_not_say_whether_cdi_is_on(world: NodeWorld) -> None:
    world.runtime.write_text('version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n')


@found_by("RUNTIME004", "")
async def somebody_left_half_a_cdi_file(world: NodeWorld) -> None:
    (world.bed.cdi_root / "vendor.json").write_text('{"cdiVersion": ')


@found_by("KUBELET001", "kubeletRoot")
async def the_kubelet_root_is_wrong(world: NodeWorld) -> None:
    world.settings["kubelet_root"] = str(world.bed.root / "elsewhere")


@found_by("KUBELET002", DRIVER)
async def no_plugin_runs(world: NodeWorld) -> None:
    await world.stop_plugin()


@found_by("KUBELET003", "")
async def a_socket_of_a_dead_plugin_is_left(world: NodeWorld) -> None:
    path = world.bed.kubelet_root / "plugins_registry" / f"{DRIVER}-dead-reg.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))


@found_by("KUBELET004", "plugin")
async def the_plugin_is_not_registered(world: NodeWorld) -> None:
    await world.stop_plugin()
    await world.stop_kubelet()
    await world.start_plugin()


@found_by("STATE001", "journal of claim")
async def a_journal_file_is_cut_off(world: NodeWorld) -> None:
    await world.stop_plugin()
    file = world.journal("whole")
    file.write_bytes(file.read_bytes()[:40])


@found_by("STATE002", "claim default/whole")
async def a_newer_version_prepared_a_claim(world: NodeWorld) -> None:
    await world.stop_plugin()
    entry = json.loads(world.journal("whole").read_bytes())["entry"]
    _write(world, "whole", entry | {"version": 99, "steps": [{"type": "of-the-future"}]})


@found_by("STATE003", "claim default/whole")
async def the_cdi_file_of_a_claim_is_gone(world: NodeWorld) -> None:
    await world.stop_plugin()
    world.spec("whole").unlink()


@found_by("STATE003", "claim default/whole")
async def the_cdi_file_of_a_claim_was_edited(world: NodeWorld) -> None:
    await world.stop_plugin()
    file = world.spec("whole")
    file.write_text(file.read_text().replace("/dev/", "/other/") + "\n")


@found_by("STATE004", "")
async def a_cdi_file_is_stale(world: NodeWorld) -> None:
    await world.stop_plugin()
    shutil.copy(world.spec("whole"), world.paths.spec("11111111-2222-3333-4444-555555555555"))


@found_by("STATE005", "MIG instance")
async def somebody_made_a_mig_instance(world: NodeWorld) -> None:
    world.hardware.make_by_hand(DIVIDED, "1g.10gb", 6)


@found_by("STATE006", "claim default/divided")
async def the_mig_instance_of_a_claim_is_gone(world: NodeWorld) -> None:
    await world.stop_plugin()
    world.hardware.set_mig_mode(DIVIDED, enabled=True)


@found_by("STATE007", "claim default/whole")
async def a_claim_is_prepared_that_the_cluster_does_not_have(world: NodeWorld) -> None:
    await world.stop_plugin()
    await world.bed.memory.delete(CLAIMS, "whole", namespace="default")


async def test_nothing_is_found_on_a_node_that_is_well(node: NodeWorld) -> None:
    found = await report(node)
    assert codes(found) == set()
    assert found.is_fine
    assert not [one for one in found.results if one.skipped]


@pytest.mark.parametrize(("code", "about", "damage"), DAMAGES.rows, ids=DAMAGES.names)
async def test_damage_is_found(
    node: NodeWorld, code: str, about: str, damage: Damage[NodeWorld]
) -> None:
    assert code not in codes(await report(node))
    await damage(node)
    assert_told(await report(node), code, about)


async def test_after_a_reboot_what_is_gone_with_the_boot_is_no_damage(node: NodeWorld) -> None:
    await node.stop_plugin()
    for name in ("whole", "divided"):
        _of_another_boot(node, name)
        node.spec(name).unlink()
    node.hardware.set_mig_mode(DIVIDED, enabled=False)
    assert not codes(await report(node)) & {"STATE001", "STATE003", "STATE006"}


def _of_another_boot(world: NodeWorld, claim: str) -> None:
    entry = json.loads(world.journal(claim).read_bytes())["entry"]
    _write(world, claim, entry | {"bootId": "another"})


def _write(world: NodeWorld, claim: str, entry: object) -> None:
    """A journal file with a checksum that fits."""
    body = json.dumps(entry, separators=(",", ":"))
    digest = hashlib.sha256(body.encode()).hexdigest()
    world.journal(claim).write_text(f'{{"checksum": "sha256:{digest}", "entry": {body}}}')
