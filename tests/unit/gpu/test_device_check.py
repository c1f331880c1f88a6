import subprocess
import sys
from pathlib import Path

import pytest

from device_check import health, report
from dragoon.gpu.sim.occupants import ConditionState
from dragoon.gpu.sim.profiles import find_machine, machine_from, shipped
from dragoon.gpu.sim.state import Fault
from tests.unit.gpu.rig import REPOSITORY, Simulate


def check(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(REPOSITORY / "hack/device_check.py"), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("name", shipped())
def test_the_printed_file_is_the_same_machine(simulate: Simulate, name: str) -> None:
    printed = report(simulate(name).gpus, name)
    assert printed is not None
    assert machine_from(printed, "printed") == find_machine(name)


def test_what_is_wrong_with_the_cards_is_written_into_the_notes(simulate: Simulate) -> None:
    machine = simulate("gb200-tray-4gpu")
    machine.hardware.lose(0)
    machine.hardware.drop_link(1, 5)
    machine.hardware.fail(Fault("nvmlDeviceGetBrand", slot=2))
    printed = report(machine.gpus, "tray") or ""
    notes = printed.split("notes:")[1]
    for part in ("lost: 0008:01:00.0", "down: [5]", "brand: Unknown Error"):
        assert part in notes
    assert len(machine_from(printed, "printed").cards) == 3


def test_what_cards_answer_about_their_health_is_told_beside_the_file(simulate: Simulate) -> None:
    machine = simulate("a30-2way")
    machine.hardware.set_condition(0, ConditionState(recovery=1))
    machine.hardware.fail(Fault("nvmlDeviceRegisterEvents", code=3, slot=1))
    first, second = health(machine.gpus)
    assert "GPU reset" in first
    assert "events: reported" in first
    assert "Not Supported" in second
    done = check("--simulate", "t4")
    assert "Condition(" in done.stderr
    assert "Condition(" not in done.stdout


def test_a_machine_whose_cards_are_all_lost_has_no_file(simulate: Simulate) -> None:
    machine = simulate("t4")
    machine.hardware.lose(0)
    assert report(machine.gpus, "t4") is None


def test_the_printed_file_can_be_simulated_again(tmp_path: Path) -> None:
    first = check("--simulate", "dgx-a100-40gb")
    file = tmp_path / "printed.yaml"
    file.write_text(first.stdout)
    assert check("--simulate", str(file)).stdout == first.stdout


def test_optional_symbols_are_told_apart() -> None:
    printed = check("--simulate", "t4").stdout
    present, absent = printed.split("present: ")[1].split("absent: ")
    assert "nvmlDeviceGetGpuFabricInfo_v4" in present
    assert "nvmlDeviceSetMemoryLimits_v1" in absent


def test_a_wrong_name_is_an_error_and_not_a_missing_gpu() -> None:
    done = check("--simulate", "nothing")
    assert done.returncode == 1
    assert "nothing" in done.stderr


@pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="there is a real driver")
def test_without_a_gpu_it_says_so_with_status_3() -> None:
    done = check()
    assert (done.returncode, done.stdout) == (3, "")
    assert "no GPU here" in done.stderr


def test_instances_of_cards_in_mig_mode_are_noted_without_uuids(simulate: Simulate) -> None:
    machine = simulate("a30-2way")
    machine.hardware.set_mig_mode(0, enabled=True)
    machine.hardware.make_by_hand(0, "2g.12gb", 2)
    machine.hardware.set_mig_mode(1, enabled=True)
    notes = (report(machine.gpus, "a30") or "").split("notes:")[1]
    assert "in MIG mode, instances: 2g.12gb at 2:2 with 1 compute instances" in notes
    assert "in MIG mode, instances: none" in notes
    assert "MIG-" not in notes
    machine.hardware.fail(Fault("nvmlDeviceGetGpuInstances"))
    assert "instances: cannot be read" in (report(machine.gpus, "a30") or "")
