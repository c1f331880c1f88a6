"""`dragoon lint`: output, exit codes, files and snapshots."""

import json
from pathlib import Path

import pytest
import yaml

from dragoon.cli import main
from dragoon.diagnose import saving
from dragoon.diagnose.snapshot import ClusterSnapshot
from tests.unit.diagnose.cases import GPU_CLASS, H100, claim, exactly, pod, selecting, slice_

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "manifests.yaml"


def test_right_manifests_end_with_0_and_say_so_on_stderr(file: Path, capsys: Capture) -> None:
    file.write_text(yaml.safe_dump(claim(exactly())))
    assert main.run(["lint", "-f", str(file)]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"1 object: nothing found\nnext: dragoon simulate -f {file}\n"


def test_an_error_ends_with_1_and_names_place_find_and_fix(file: Path, capsys: Capture) -> None:
    file.write_text(yaml.safe_dump(claim({"name": "g", "deviceClassName": "x"})))
    assert main.run(["lint", "-f", str(file)]) == 1
    told = capsys.readouterr()
    first, found, instead, see = told.out.splitlines()
    assert first.startswith(f"{file}:1 (document 1): error DRG201: ResourceClaim default/c spec.")
    assert found.startswith("  found:   deviceClassName")
    assert "{name: g, exactly: {deviceClassName: x}}" in instead
    assert see.endswith("docs/checks.md#drg201")
    assert told.err == f"1 object: 1 error\nnext: dragoon lint -f {file}\n"


def test_a_warning_ends_with_0(file: Path, capsys: Capture) -> None:
    file.write_text(yaml.safe_dump(pod([{"name": "g", "resourceClaimName": "c"}], [])))
    assert main.run(["lint", "-f", str(file)]) == 0
    assert "warning DRG308" in capsys.readouterr().out


def test_json_is_a_versioned_list(file: Path, capsys: Capture) -> None:
    file.write_text("not: kubernetes\n---\n" + yaml.safe_dump(claim({"name": "g"})))
    assert main.run(["lint", "-o", "json", "-f", str(file)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["apiVersion"], told["kind"]) == ("diagnose.dragoon.dev/v1", "FindingList")
    assert [(one["code"], one["document"], one["line"]) for one in told["items"]] == [
        ("DRG002", 1, 1),
        ("DRG206", 2, 3),
    ]


def test_a_snapshot_lets_it_look_at_devices(file: Path, tmp_path: Path, capsys: Capture) -> None:
    size = "device.capacity['gpu.dragoon.dev'].memory.compareTo(quantity('80Gi')) >= 0"
    file.write_text(yaml.safe_dump(selecting(size)))
    saving.save(ClusterSnapshot.of([GPU_CLASS, slice_(H100)]), tmp_path / "saved")
    assert main.run(["lint", "-f", str(file), "--snapshot", str(tmp_path / "saved")]) == 0
    assert "quantity('79Gi')" in capsys.readouterr().out


def test_a_document_that_is_no_object_has_no_place(file: Path, capsys: Capture) -> None:
    file.write_text("{}")
    assert main.run(["lint", "-f", str(file)]) == 1
    first, found, *_ = capsys.readouterr().out.splitlines()
    assert first == f"{file}:1 (document 1): error DRG002"
    assert found == "  found:   no apiVersion and no kind; found no keys"


@pytest.mark.parametrize(
    "text", ["", "# nothing\n---\n", "{kind: List, apiVersion: v1, items: []}"]
)
@pytest.mark.parametrize("command", ["lint", "simulate"])
def test_files_without_any_object_are_wrong_usage(
    command: str, text: str, file: Path, capsys: Capture
) -> None:
    """Whatever should have written them has failed: a check of nothing must not pass."""
    file.write_text(text)
    assert main.run([command, "-f", str(file)]) == 2
    assert f"found no object in {file}, allowed is at least one" in capsys.readouterr().err


def test_an_empty_file_beside_others_is_told(file: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "empty.yaml").touch()
    file.write_text(yaml.safe_dump(claim(exactly())))
    assert main.run(["lint", "-f", str(tmp_path / "empty.yaml"), "-f", str(file)]) == 0
    assert capsys.readouterr().err.startswith(f"note: no object in {tmp_path}/empty.yaml\n1 object")


@pytest.mark.parametrize("arguments", [[], ["-f", "/nowhere.yaml"]])
def test_no_file_or_one_that_is_not_there_is_wrong_usage(arguments: list[str]) -> None:
    assert main.run(["lint", *arguments]) == 2
