"""What `dragoon usage` says of claims, from the files of a node and a simulated driver."""

import json
from pathlib import Path

import pytest

from dragoon.api.enforcement import Tier
from dragoon.cli import main
from dragoon.gpu.limits import MemoryLimit
from dragoon.gpu.model import Gpu, PciAddress, Placement
from dragoon.gpu.sim.occupants import Accounting, ProcessState
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.hami_steps import region_file
from dragoon.prepare.enforcement.memory_cap import MemoryCap
from dragoon.prepare.mig import MigPart
from dragoon.prepare.shares import Share
from tests.unit.cli.node import GIB, MACHINE, POD, Capture, Node, device
from tests.unit.gpu.rig import rig
from tests.unit.prepare.enforcement.regions import running


@pytest.fixture
def node(tmp_path: Path) -> Node:
    with rig(MACHINE, tmp_path):
        return Node(tmp_path)


def two_shares(node: Node) -> Gpu:
    """Claims a and b have shares of one card, in the containers one and two."""
    gpu = node.card(0)
    node.share("a", gpu.address, gpu.uuid, "one")
    node.share("b", gpu.address, gpu.uuid, "two")
    return gpu


def test_a_share_is_told_by_the_region_of_its_container(node: Node, capsys: Capture) -> None:
    gpu = node.card(0)
    node.share("a", gpu.address, gpu.uuid, "main")
    (found,) = node.said(capsys)
    assert found == {
        "claims": [{"namespace": "team-a", "name": "a", "uid": "a-uid"}],
        "podUID": POD,
        "container": "main",
        "gpu": str(gpu.address),
        "kind": "hami",
        "usedBytes": 3 * GIB,
        "limitBytes": 4 * GIB,
        "usedPercent": 75,
        "coresLimit": 50,
        "processes": 1,
        "problem": "",
    }
    assert main.run(["usage", *node.where]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["CLAIM", "POD", "UID"]
    shown = "3.0 GiB  4.0 GiB  75  50     1"
    assert line == f"team-a/a  {POD}  main       {gpu.address}  hami  {shown}"


def test_one_claim_can_be_asked_for_and_a_wrong_name_lists_those_that_are_here(
    node: Node, capsys: Capture
) -> None:
    two_shares(node)
    assert len(node.said(capsys)) == 2
    for name in ("b", "team-a/b", "b-uid"):
        assert [one["container"] for one in node.said(capsys, name)] == ["two"]
    assert main.run(["usage", "c", *node.where]) == 1
    assert "prepared are: team-a/a, team-a/b" in capsys.readouterr().err


def test_a_capped_pod_is_told_by_the_driver(node: Node, capsys: Capture) -> None:
    cgroup = node.paths.pod_cgroups(POD)[0]
    cgroup.mkdir(parents=True)
    with rig(MACHINE, node.root) as machine:
        gpu = machine.gpu(1)
        machine.hardware.set_accounting(Accounting.DMEM)
        process = ProcessState(7, "python", 2 * GIB, cgroup=str(cgroup / "container"))
        machine.hardware.run(1, process)
        cap = MemoryCap(POD, str(gpu.address), 8 * GIB)
        share = Share(8 * GIB, 0, 80 * GIB, Tier.CGROUP)
        node.claim("capped", device(gpu.address, gpu.uuid, share=share), cap, pod=POD)
        (bare,) = node.said(capsys)
        assert (bare["limitBytes"], bare["usedBytes"]) == (0, 2 * GIB)
        machine.gpus.limits.set(gpu.address, cgroup, MemoryLimit(8 * GIB))
    (found,) = node.said(capsys)
    assert (found["kind"], found["container"], found["usedPercent"]) == ("cgroup", "", 25)
    assert found["coresLimit"] is None


def test_whole_gpus_and_mig_devices_are_told_by_their_processes(
    node: Node, capsys: Capture
) -> None:
    with rig(MACHINE, node.root) as machine:
        whole, divided = machine.gpu(0), machine.gpu(1)
        machine.gpus.mig.set_mode(divided.address, enabled=True)
        mine = machine.gpus.mig.create(divided.address, "1g.10gb", Placement(0, 1))
        other = machine.gpus.mig.create(divided.address, "1g.10gb", Placement(1, 1))
        for pid, instance in ((10, mine), (11, other)):
            inside = (instance.identity, instance.compute[0].identity)
            machine.hardware.run(1, ProcessState(pid, "python", pid * GIB // 2, *inside))
        machine.hardware.run(0, ProcessState(12, "python", 12 * GIB))
    part = MigPart("1g.10gb", 0, 1, uuid=str(mine.uuid))
    node.claim("part", device(divided.address, divided.uuid, mig=part))
    node.claim("whole", device(whole.address, whole.uuid))
    by_kind = {one["kind"]: one for one in node.said(capsys)}
    assert (by_kind["mig"]["usedBytes"], by_kind["mig"]["processes"]) == (5 * GIB, 1)
    assert by_kind["mig"]["limitBytes"] == 9984 << 20
    assert (by_kind["whole"]["usedBytes"], by_kind["whole"]["processes"]) == (12 * GIB, 1)
    assert by_kind["whole"]["limitBytes"] == whole.memory_bytes


def test_a_region_that_is_gone_is_a_finding_and_the_rest_is_still_told(
    node: Node, capsys: Capture
) -> None:
    gpu = two_shares(node)
    region_file(node.paths, POD, "one").unlink()
    gone, whole = node.said(capsys, code=1)
    assert "is not there" in gone["problem"]
    assert (gone["usedBytes"], whole["usedBytes"]) == (None, 3 * GIB)
    assert main.run(["usage", *node.where]) == 1
    told = capsys.readouterr()
    assert f"note: team-a/a on GPU {gpu.address}" in told.err
    assert len(told.out.splitlines()) == 3


def test_shares_are_told_where_there_is_no_driver(tmp_path: Path, capsys: Capture) -> None:
    here = Node(tmp_path)
    address = PciAddress(0, 0x10, 0)
    here.share("a", address, "GPU-1", "main")
    here.claim("w", device(PciAddress(0, 0x11, 0), "GPU-2"))
    where = ("--sys-root", str(tmp_path / "sys"), *here.where[2:])
    assert main.run(["usage", *where, "-o", "json"]) == 1
    told = capsys.readouterr()
    shares, whole = json.loads(told.out)["items"]
    assert shares["usedBytes"] == 3 * GIB
    assert (whole["usedBytes"], whole["limitBytes"]) == (None, None)
    assert whole["problem"]


def test_a_damaged_journal_file_costs_its_claim_alone(node: Node, capsys: Capture) -> None:
    gpu = node.card(0)
    node.share("a", gpu.address, gpu.uuid, "main")
    node.paths.journal("b-uid").write_bytes(b"torn")
    assert [one["container"] for one in node.said(capsys, code=1)] == ["main"]


def test_a_journal_that_cannot_be_read_is_a_source_out_of_reach(
    node: Node, capsys: Capture
) -> None:
    node.paths.journal_folder.rmdir()
    node.paths.journal_folder.write_text("no folder")
    assert main.run(["usage", *node.where]) == 3
    assert "journal" in capsys.readouterr().err


def test_a_region_may_lie_about_what_cannot_be(node: Node, capsys: Capture) -> None:
    gpu = node.card(0)
    node.share("a", gpu.address, gpu.uuid, "main")
    file = region_file(node.paths, POD, "main")
    file.write_bytes(running(file.read_bytes(), 0, {0: 2**63}))
    (found,) = node.said(capsys, code=1)
    assert (found["usedBytes"], found["problem"]) == (0, "the region says what cannot be")
    assert file.stat().st_size == region.BYTES


def test_wide_says_why_something_is_not_known_and_names_are_those_of_the_claims(
    node: Node, capsys: Capture
) -> None:
    two_shares(node)
    region_file(node.paths, POD, "one").unlink()
    assert main.run(["usage", *node.where, "-o", "wide"]) == 1
    header, gone, there = capsys.readouterr().out.splitlines()
    assert header.endswith("  CLAIM UID  WHY")
    assert "  a-uid      " in gone
    assert gone.endswith("is not there")
    assert there.endswith("  b-uid      -")
    assert main.run(["usage", *node.where, "-o", "name"]) == 1
    assert capsys.readouterr().out == "claim/a\nclaim/b\n"
