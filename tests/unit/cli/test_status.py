"""`dragoon status`: one screen of a cluster, of a node without one, of a saved one."""

import asyncio
import json
from pathlib import Path

import pytest

from dragoon.cli import main
from dragoon.diagnose import saving
from dragoon.gpu.opening import open_gpus
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.state import Fault
from dragoon.kube.port import GANGS, PODS
from dragoon.prepare.effects import HostEffects
from tests.scenario.damage.cluster_world import HOME, ClusterWorld
from tests.unit.diagnose.cases import slice_
from tests.unit.diagnose.scenes import gpus, holding, node, snapshot
from tests.unit.prepare.scene import Scene, result

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Options of a simulated node without a cluster."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return (
        *("--simulate", "dgx-h100", "--node-name", "n1"),
        *("--state-dir", str(tmp_path / "state"), "--cdi-root", str(tmp_path / "cdi")),
        *("--kubelet-root", str(tmp_path / "kubelet")),
    )


async def run(*arguments: str) -> int:
    return await asyncio.to_thread(main.run, arguments)


async def test_a_cluster_is_one_screen(cluster: tuple[ClusterWorld, str], capsys: Capture) -> None:
    assert await run("status", "--kubeconfig", cluster[1]) == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert lines[0].endswith(": Kubernetes v1.37.0-dragoon-memory")
    assert "  plugin: 2 of 2 ready" in lines
    assert "  controller: 1 of 1 ready" in lines
    assert "  claims: 1 with our devices, 0 waiting" in lines
    table = [line.split() for line in lines if line.startswith(("NODE", "all", "n1", "n2"))]
    assert [row[:6] for row in table] == [
        ["NODE", "FORM", "DEVICES", "FREE", "USED", "TAINTED"],
        ["all", "whole", "16", "7", "1", "8"],
        ["n2", "whole", "8", "0", "0", "8"],
        ["n1", "whole", "8", "7", "1", "0"],
    ]
    assert "gangs (1 running, 0 not)" not in lines
    assert told.err == "next: dragoon check\n"


async def test_trouble_is_listed_and_the_next_command_is_about_it(
    cluster: tuple[ClusterWorld, str], capsys: Capture
) -> None:
    world, kubeconfig = cluster
    status = {"phase": "Waiting", "waitingFor": "room for 2 members"}
    await world.api.patch(
        GANGS, "train", {"status": status}, namespace="default", subresource="status"
    )
    ready = {"conditions": [{"type": "Ready", "status": "False"}]}
    await world.api.patch(
        PODS, "controller", {"status": ready}, namespace=HOME, subresource="status"
    )
    assert await run("status", "--kubeconfig", kubeconfig) == 1
    told = capsys.readouterr()
    assert "gangs (0 running, 1 not)\n  default/train Waiting: room for 2 members" in told.out
    assert f"error API007 pod {HOME}/controller: " in told.out
    assert told.err == f"next: kubectl logs -n {HOME} controller\n"


async def test_one_node_is_shown_by_device_with_who_has_it(
    cluster: tuple[ClusterWorld, str], capsys: Capture
) -> None:
    assert await run("status", "node/n1", "--kubeconfig", cluster[1]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "gpu-" in line]
    assert len(rows) == 8
    assert rows[0][1:] == ["whole", "used", "default/has", "-"]
    assert rows[1][1:] == ["whole", "free", "-", "-"]


async def test_a_node_without_a_cluster_tells_of_itself(
    tmp_path: Path, alone: tuple[str, ...], capsys: Capture
) -> None:
    scene = Scene(root=tmp_path)
    engine = await scene.started(HostEffects())
    await engine.prepare(await scene.claim("c", result(0)))
    await run("status", "node/n1", *alone)
    told = capsys.readouterr()
    assert told.out.startswith("node n1\n")
    assert told.err.startswith("note: this node alone: no API server is configured")
    assert sum("gpu-" in line for line in told.out.splitlines()) == 8
    assert "KUBELET001" in told.out


def test_data_is_versioned_and_has_the_problems(tmp_path: Path, capsys: Capture) -> None:
    known = snapshot(
        slice_(*gpus(2)), node(), holding("a", "gpu-0"), holding("b", "gpu-0")
    ).replacing(version="v1.37.2")
    saving.save(known, tmp_path / "saved")
    assert main.run(["status", "--snapshot", str(tmp_path / "saved"), "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["apiVersion"], found["kind"]) == ("diagnose.dragoon.dev/v1", "Status")
    assert found["totals"] == {"whole": {"used": 1, "free": 1}}
    assert found["nodes"][0]["devices"][0]["claims"] == ["default/a", "default/b"]
    assert [one["code"] for one in found["problems"]] == ["STATE008"]


def test_a_node_that_is_not_there_is_wrong_usage(tmp_path: Path, capsys: Capture) -> None:
    saving.save(snapshot(slice_(*gpus(1)), node()), tmp_path / "saved")
    assert main.run(["status", "node/x", "--snapshot", str(tmp_path / "saved")]) == 2
    assert main.run(["status", "pod/x", "--snapshot", str(tmp_path / "saved")]) == 2
    assert "found 'pod/x', allowed is node/NAME" in capsys.readouterr().err


async def test_a_driver_that_does_not_work_is_told_and_the_claims_are_shown(
    tmp_path: Path, alone: tuple[str, ...], capsys: Capture
) -> None:
    scene = Scene(root=tmp_path)
    engine = await scene.started(HostEffects())
    await engine.prepare(await scene.claim("c", result(0)))
    state = tmp_path / "machine.json"
    machine = ("--simulate-state", str(state))
    open_gpus("dgx-h100", state, node="n1", beside_driver=True).close()
    Hardware(state).fail(Fault("nvmlInitWithFlags", code=9))
    capsys.readouterr()
    assert await run("status", "--local", *alone, *machine) == 1
    told = capsys.readouterr().out
    assert "error HOST001 NVML: " in told
    assert "GPUs: the driver cannot be asked" in told


def test_wide_has_every_node_and_why_a_pool_cannot_be_used(tmp_path: Path, capsys: Capture) -> None:
    torn = slice_(*gpus(1), node="node-00", resourceSliceCount=2)
    many = [
        one
        for number in range(1, 25)
        for one in (node(f"node-{number:02}"), slice_(*gpus(1), node=f"node-{number:02}"))
    ]
    saving.save(snapshot(torn, node("node-00"), *many), tmp_path / "saved")
    options = ("--snapshot", str(tmp_path / "saved"))
    main.run(["status", *options])
    assert "and 5 more nodes: -o wide has all" in capsys.readouterr().out
    main.run(["status", *options, "-o", "wide"])
    lines = capsys.readouterr().out.splitlines()
    (header,) = (line for line in lines if line.startswith("NODE "))
    assert header.endswith("  WHY")
    rows = [line for line in lines if line.startswith("node-")]
    assert len(rows) == 25
    assert not rows[0].endswith("-")
    assert all(row.endswith("  -") for row in rows[1:])
    main.run(["status", "node/node-00", *options, "-o", "wide"])
    (device,) = (line for line in capsys.readouterr().out.splitlines() if "gpu-0" in line)
    assert "pool closed" in device
    assert not device.endswith("-")


def test_names_are_those_of_nodes_or_of_the_devices_of_one(tmp_path: Path, capsys: Capture) -> None:
    saving.save(snapshot(slice_(*gpus(2)), node()), tmp_path / "saved")
    options = ("--snapshot", str(tmp_path / "saved"))
    assert main.run(["status", *options, "-o", "name"]) == 0
    (one,) = capsys.readouterr().out.splitlines()
    assert main.run(["status", one, *options, "-o", "name"]) == 0
    assert capsys.readouterr().out == "device/gpu-0\ndevice/gpu-1\n"
