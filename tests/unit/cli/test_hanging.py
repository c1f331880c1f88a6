"""Commands on a node whose driver hangs: each ends, and tells what needs no driver."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoon.cli import exits, main
from dragoon.gpu.sim.state import Effect, Fault
from tests.unit.cli.node import GIB, Node, device
from tests.unit.gpu.rig import rig

Capture = pytest.CaptureFixture[str]

SYMBOL = "nvmlDeviceGetCount_v2"
TIMEOUT = ("--timeout", "100ms")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """A node with a share and a whole GPU that are prepared, and a driver that hangs from now on."""
    here = Node(tmp_path)
    with rig("dgx-h100", tmp_path) as machine:
        first, second = machine.gpu(0), machine.gpu(1)
        here.share("a", first.address, first.uuid, "main")
        here.claim("w", device(second.address, second.uuid))
        machine.hardware.fail(Fault(SYMBOL, Effect.HANG))
        yield here
        machine.hardware.lift(SYMBOL)  # Lets go of threads that hang in it.


@pytest.mark.parametrize("words", [("topo",), ("mig",), ("mig", "profiles"), ("devices",)])
def test_a_command_that_needs_the_driver_ends_with_3_and_says_so(
    words: tuple[str, ...], node: Node, capsys: Capture
) -> None:
    machine = node.where[:2]
    assert main.run([*words, *machine, *TIMEOUT]) == exits.UNREACHABLE
    told = capsys.readouterr()
    assert "error: no answer within 0.1 s: the driver hangs\n" in told.err
    assert told.err.endswith("next: dragoon check --category host\n")
    assert not told.out


def test_usage_still_tells_of_shares_and_why_the_rest_is_not_known(
    node: Node, capsys: Capture
) -> None:
    assert main.run(["usage", *node.where, *TIMEOUT, "-o", "json"]) == exits.FINDINGS
    shares, whole = json.loads(capsys.readouterr().out)["items"]
    assert (shares["usedBytes"], shares["problem"]) == (3 * GIB, "")
    assert (whole["usedBytes"], whole["processes"]) == (None, None)
    assert whole["problem"] == "no answer within 0.1 s: the driver hangs"


def test_status_still_tells_of_claims_and_why_the_rest_is_not_known(
    node: Node, tmp_path: Path, capsys: Capture
) -> None:
    options = ("--kubelet-root", str(tmp_path / "kubelet"), "--proc-root", str(tmp_path / "proc"))
    arguments = ["status", "--local", *node.where, *options, *TIMEOUT]
    assert main.run(arguments) == exits.FINDINGS
    told = capsys.readouterr().out
    assert "GPUs: the driver cannot be asked: no answer within 0.1 s: the driver hangs" in told


def test_status_of_a_node_without_devices_says_that_the_driver_could_not_be_asked(
    node: Node, tmp_path: Path, capsys: Capture
) -> None:
    options = ("--kubelet-root", str(tmp_path / "kubelet"), "--proc-root", str(tmp_path / "proc"))
    arguments = ["status", "node/n1", "--node-name", "n1", "--local", *node.where, *options]
    assert main.run([*arguments, *TIMEOUT]) == exits.USAGE
    told = capsys.readouterr().err
    assert "error: node/n1: no node of that name has devices of gpu.dragoon.dev\nhint: " in told
    assert "GPUs: the driver cannot be asked: no answer within 0.1 s: the driver hangs" in told


@pytest.mark.parametrize("text", ["0s", "-5s", "soon", "5", ""])
def test_a_time_that_is_none_is_wrong_usage(text: str, capsys: Capture) -> None:
    assert main.run(["topo", "--timeout", text]) == exits.USAGE
    assert f"found {text!r}, allowed is such as 30s, 5m or 1h30m" in capsys.readouterr().err
