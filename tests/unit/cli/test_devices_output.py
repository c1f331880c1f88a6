"""`dragoon devices` as a wide table and as names."""

import re
from pathlib import Path

import pytest

from dragoon.cli import main
from dragoon.gpu.sim.state import Fault
from tests.unit.cli.machines import a_machine

Capture = pytest.CaptureFixture[str]


def test_wide_has_what_identifies_a_device_and_why_something_is_unknown(
    tmp_path: Path, capsys: Capture
) -> None:
    hardware, options = a_machine(tmp_path, "rtx3090-2way-bridge")
    hardware.fail(Fault("nvmlDeviceGetMemoryInfo_v2", code=999, slot=1))
    hardware.fail(Fault("nvmlDeviceGetMemoryInfo", code=999, slot=1))
    assert main.run(["devices", *options, "-o", "wide"]) == 0
    header, fine, silent = capsys.readouterr().out.splitlines()
    assert header.split()[-4:] == ["POOL", "UUID", "DRIVER", "WHY"]
    pool, uuid, driver, why = fine.split()[-4:]
    assert (pool, why) == ("n1/gpu", "-")
    assert uuid.startswith("GPU-")
    assert re.fullmatch(r"[0-9.]+", driver)
    assert "unknown" in silent
    assert "memory" in silent.rpartition("  ")[2]


def test_names_are_printed_as_other_commands_print_devices(capsys: Capture) -> None:
    assert main.run(["devices", "--simulate", "rtx3090-2way-bridge", "-o", "name"]) == 0
    names = capsys.readouterr().out.splitlines()
    assert len(names) == 2
    assert all(re.fullmatch(r"device/gpu-[0-9a-f-]+", one) for one in names)


def test_a_template_is_printed_in_every_form(capsys: Capture) -> None:
    for form, said in (("table", "gpu-"), ("wide", "WHY"), ("name", "device/gpu-")):
        options = ("--simulate", "rtx3090-2way-bridge", "--template", "pool-a", "-o", form)
        assert main.run(["devices", *options]) == 0
        assert said in capsys.readouterr().out
