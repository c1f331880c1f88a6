"""Simulated machines as `dragoon devices` tells of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoon.api.slice_validation import check_slice
from dragoon.cli import main
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.profiles import find_machine

Capture = pytest.CaptureFixture[str]


def listed(capsys: Capture, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    """The devices in `dragoon devices -o json`, after checking every slice as the API would."""
    assert main.run(["devices", "-o", "json", *arguments]) == code
    told = json.loads(capsys.readouterr().out)
    assert (told["apiVersion"], told["kind"]) == ("resource.k8s.io/v1", "ResourceSliceList")
    for item in told["items"]:
        assert check_slice(item) == ()
    return [device for item in told["items"] for device in item["spec"].get("devices", ())]


def attribute(device: dict[str, Any], name: str) -> Any:
    typed = device["attributes"].get(name, {})
    return next(iter(typed.values()), None)


def a_machine(tmp_path: Path, name: str) -> tuple[Hardware, list[str]]:
    """A simulated machine that can be changed, and the options that show it."""
    file = tmp_path / "gpus.json"
    hardware = Hardware.installed(file, find_machine(name), "n1")
    return hardware, ["--simulate-state", str(file), "--node-name", "n1"]
