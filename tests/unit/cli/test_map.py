"""`dragoon map`: from a simulated machine and from a saved cluster."""

import json
from pathlib import Path

import pytest
import yaml

from dragoon.cli import main
from dragoon.diagnose import saving
from tests.unit.diagnose.fleet import fleet

Capture = pytest.CaptureFixture[str]


def test_a_simulated_machine_is_drawn_without_a_cluster(capsys: Capture) -> None:
    assert main.run(["map", "--simulate", "dgx-h100"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("<!doctype html>")
    assert "1 node, 8 GPUs, 8 free" in text


def test_a_saved_cluster_is_drawn_as_data(tmp_path: Path, capsys: Capture) -> None:
    saving.save(fleet(2), tmp_path / "saved")
    assert main.run(["map", "--snapshot", str(tmp_path / "saved"), "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main.run(["map", "--snapshot", str(tmp_path / "saved"), "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == found
    assert (found["apiVersion"], found["kind"]) == ("diagnose.dragoon.dev/v1", "Map")
    assert found["counts"] == {"whole": 5, "shared": 1, "mig": 1, "free": 9}
    first = found["nodes"][0]["cards"][1]
    assert found["claims"][first["holds"][0]["claim"]]["pods"] == ["part-a"]


def test_an_unknown_machine_is_told(capsys: Capture) -> None:
    assert main.run(["map", "--simulate", "dgx-nothing"]) != 0
    assert "dgx-nothing" in capsys.readouterr().err
