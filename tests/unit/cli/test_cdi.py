"""What `dragoon cdi` shows of specs, and what it makes of an OCI runtime spec."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoon.api.claims import ClaimRef
from dragoon.cli import main
from dragoon.prepare.effects import HostEffects
from tests.unit.prepare.scene import Scene, gpu, result

Capture = pytest.CaptureFixture[str]


class Node:
    """A node on which two claims are prepared, in folders of its own."""

    def __init__(self, root: Path, *claims: ClaimRef) -> None:
        self.root = root
        self.claims = claims
        self.where = ("--state-dir", str(root / "state"), "--cdi-root", str(root / "cdi"))
        self.config = root / "config.json"
        self.config.write_text(json.dumps({"ociVersion": "1.2.0", "process": {"env": ["A=1"]}}))

    def spec(self, number: int) -> Path:
        (found,) = (self.root / "cdi").glob(f"*{self.claims[number].uid}.json")
        return found

    def shown(self, capsys: Capture, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
        assert main.run(["cdi", "show", *arguments, *self.where, "-o", "json"]) == code
        found = json.loads(capsys.readouterr().out)
        assert (found["apiVersion"], found["kind"]) == (
            "gpu.dragoon.dev/v1alpha1",
            "CdiSpecList",
        )
        items: list[dict[str, Any]] = found["items"]
        return sorted(items, key=lambda one: str(one["claim"]["name"]))

    def ids(self, capsys: Capture) -> list[str]:
        return [one for item in self.shown(capsys, "--all") for one in item["ids"]]


@pytest.fixture
async def node(tmp_path: Path) -> Node:
    """Simulated GPUs: markers in place of device files."""
    scene = Scene(root=tmp_path)
    engine = await scene.started(HostEffects())
    claims = [await scene.claim(f"c{n}", result(n)) for n in range(2)]
    for claim in claims:
        await engine.prepare(claim)
    return Node(tmp_path, *claims)


async def test_the_spec_of_a_claim_is_shown_as_it_was_written(node: Node, capsys: Capture) -> None:
    (found,) = node.shown(capsys, "c0")
    assert found["claim"]["name"] == "c0"
    assert (found["file"], found["state"]) == (str(node.spec(0)), "as written")
    assert found["spec"] == json.loads(node.spec(0).read_bytes())
    assert found["ids"] == [f"gpu.dragoon.dev/claim={found['spec']['devices'][0]['name']}"]
    assert main.run(["cdi", "show", "--all", *node.where]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].split() == ["CLAIM", "DEVICE", "EDIT", "WHAT"]
    assert sum(line.startswith("team-a/c1 ") for line in told) >= 2
    assert any("variable" in line and line.endswith(f"={gpu(1).uuid}") for line in told)
    assert any(" mount " in line and "ro" in line for line in told)


async def test_a_file_that_is_gone_or_was_changed_is_a_finding(node: Node, capsys: Capture) -> None:
    node.spec(0).write_text("{}")
    gone = node.spec(1)
    gone.unlink()
    first, second = node.shown(capsys, "--all", code=1)
    assert (first["state"], second["state"]) == ("changed", "missing")
    assert main.run(["cdi", "show", "team-a/c1", *node.where]) == 1
    assert f"{gone} is missing" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [(), ("c0", "--all")])
async def test_one_claim_or_all_of_them(
    node: Node, capsys: Capture, arguments: tuple[str, ...]
) -> None:
    assert main.run(["cdi", "show", *arguments, *node.where]) == 2
    assert "either claim/NAME or --all" in capsys.readouterr().err


async def test_a_container_gets_what_it_asks_for_and_nothing_is_changed(
    node: Node, capsys: Capture
) -> None:
    first, second = node.ids(capsys)
    before = node.config.read_bytes()
    arguments = ("--device", first, "--device", second, *node.where[2:])
    assert main.run(["cdi", "inject", str(node.config), *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["process"]["env"][0] == "A=1"
    assert "NVIDIA_VISIBLE_DEVICES=void" in found["process"]["env"]
    assert {one["source"] for one in found["mounts"]} == {
        str(path) for path in (node.root / "state/markers").iterdir()
    }
    assert node.config.read_bytes() == before


async def test_files_can_be_given_in_place_of_the_folder(
    node: Node, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = node.root / "mine.yaml"
    spec.write_text(yaml.safe_dump(json.loads(node.spec(1).read_bytes())))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(node.config.read_bytes())))
    assert main.run(["cdi", "inject", "-", "--spec", str(spec), "-o", "yaml"]) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    assert any(entry.endswith(gpu(1).uuid) for entry in found["process"]["env"])
    assert not any(entry.endswith(gpu(0).uuid) for entry in found["process"]["env"])


async def test_what_the_runtime_does_not_find_is_a_finding_in_its_words(
    node: Node, capsys: Capture
) -> None:
    (node.root / "cdi/half.json").write_text('{"cdiVersion": ')
    arguments = ("--device", "gpu.dragoon.dev/claim=gone", *node.where[2:])
    assert main.run(["cdi", "inject", str(node.config), *arguments]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "unresolvable CDI devices gpu.dragoon.dev/claim=gone" in told.err
    (first, _) = node.ids(capsys)
    (node.root / "cdi/copy.json").write_bytes(node.spec(0).read_bytes())
    arguments = ("--device", first, *node.where[2:])
    assert main.run(["cdi", "inject", str(node.config), *arguments]) == 1
    assert "unresolvable" in capsys.readouterr().err


async def test_a_file_that_is_no_spec_is_left_out_and_named(node: Node, capsys: Capture) -> None:
    for name in ("half.json", "half.yaml"):
        (node.root / "cdi" / name).write_text('{"cdiVersion": ')
    (first, _) = node.ids(capsys)
    arguments = ("--device", first, *node.where[2:])
    assert main.run(["cdi", "inject", str(node.config), *arguments]) == 0
    told = capsys.readouterr()
    assert "half.json: not a CDI spec" in told.err
    assert "half.yaml: not a CDI spec" in told.err
    assert json.loads(told.out)["ociVersion"] == "1.2.0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("{}", "ociVersion"),
        ('{"ociVersion":"1","mounts":{}}', "mounts: found"),
    ],
)
async def test_what_is_no_runtime_spec_is_wrong_usage(
    node: Node, capsys: Capture, text: str, message: str
) -> None:
    (first, _) = node.ids(capsys)
    node.config.write_text(text)
    assert main.run(["cdi", "inject", str(node.config), "--device", first, *node.where[2:]]) == 2
    assert message in capsys.readouterr().err


async def test_something_to_inject_must_be_named(node: Node, capsys: Capture) -> None:
    assert main.run(["cdi", "inject", str(node.config)]) == 2
    assert "--device, --spec or both" in capsys.readouterr().err


async def test_a_folder_that_is_not_there_is_a_source_out_of_reach(
    node: Node, capsys: Capture
) -> None:
    arguments = ("--device", "a/b=c", "--cdi-root", str(node.root / "nowhere"))
    assert main.run(["cdi", "inject", str(node.config), *arguments]) == 3
    assert "nowhere" in capsys.readouterr().err


RUNTIME = "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = {}\n"


def test_c31_a_runtime_with_cdi_off_is_a_finding_and_one_with_it_on_is_fine(
    tmp_path: Path, capsys: Capture
) -> None:
    config = tmp_path / "containerd.toml"
    config.write_text(RUNTIME.format("true"))
    assert main.run(["cdi", "runtime", str(config)]) == 0
    config.write_text(RUNTIME.format("false"))
    assert main.run(["cdi", "runtime", str(config)]) == 1
    assert "set enable_cdi = true" in capsys.readouterr().err


def test_what_is_no_text_is_no_configuration_of_a_runtime(tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "containerd.toml"
    config.write_bytes(b"\xae\x00\xff")
    assert main.run(["cdi", "runtime", str(config)]) == 2
    told = capsys.readouterr().err
    assert "the runtime's configuration is not TOML" in told
    assert told.endswith("next: dragoon cdi runtime --help\n")


def test_c31_a_container_that_sees_no_device_is_a_finding(tmp_path: Path, capsys: Capture) -> None:
    config, environment = tmp_path / "containerd.toml", tmp_path / "env"
    config.write_text(RUNTIME.format("true"))
    environment.write_text("PATH=/bin\n")
    asked = ["cdi", "runtime", str(config), "--environment", str(environment), "-o", "json"]
    assert main.run(asked) == 1
    assert "applied no CDI spec of ours" in json.loads(capsys.readouterr().out)["problems"][0]
    environment.write_text("DRAGOON_GPU_0000_65_00_0=GPU-1\n")
    assert main.run(asked) == 0
