"""`dragoon check`: what is printed, exit codes, categories, a laptop, a node, a saved cluster."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from dragoon.cli import main
from dragoon.diagnose import saving
from dragoon.diagnose.checking import CATEGORIES
from dragoon.errors import ApiForbiddenError
from dragoon.kube.port import PODS
from tests.scenario.damage.cluster_world import ClusterWorld
from tests.unit.diagnose.cases import H100, slice_
from tests.unit.diagnose.scenes import node, snapshot

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A machine without cluster; options of a machine that is no node."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return ("--kubelet-root", str(tmp_path / "none"), "--proc-root", str(tmp_path))


async def run(*arguments: str) -> int:
    return await asyncio.to_thread(main.run, arguments)


async def test_a_cluster_that_is_well_ends_with_0_and_says_what_is_not_checked(
    cluster: tuple[ClusterWorld, str], nowhere: tuple[str, ...], capsys: Capture
) -> None:
    assert await run("check", "--kubeconfig", cluster[1], *nowhere) == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert lines[0] == (
        "host: not checked: this is no node: run it on one, or in the pod of its plugin"
    )
    assert "api: 13 of 13 checked, fine" in lines
    assert "gang: 6 of 6 checked, fine" in lines
    assert told.err == "next: dragoon status\n"


async def test_an_error_ends_with_1_and_has_code_find_remedy_page_and_next(
    cluster: tuple[ClusterWorld, str], nowhere: tuple[str, ...], capsys: Capture
) -> None:
    world, kubeconfig = cluster
    del world.admission[PODS]
    assert await run("check", "--category", "api,gang", "--kubeconfig", kubeconfig, *nowhere) == 1
    told = capsys.readouterr()
    lines = told.out.splitlines()
    at = lines.index("  error GANG001 The API server does not hold pods of gangs")
    about, remedy, see, after = lines[at + 1 : at + 5]
    assert "is created without the gate" in about
    assert remedy.startswith("    remedy: Apply deploy/policies/gang-gate.yaml")
    assert see == "    see:    docs/checks.md#gang001"
    command = after.removeprefix("    next:   ")
    assert told.err == f"next: {command}\n"
    assert [line.partition(":")[0] for line in lines if not line.startswith(" ")] == ["api", "gang"]


async def test_a_user_without_a_right_is_told_the_verb_and_the_rest_is_checked(
    cluster: tuple[ClusterWorld, str], nowhere: tuple[str, ...], capsys: Capture
) -> None:
    world, kubeconfig = cluster
    text = 'pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope'
    world.api.faults.fail(
        times=None, verb="list", resource=PODS, error=lambda: ApiForbiddenError(text, status=403)
    )
    assert await run("check", "--category", "api", "--kubeconfig", kubeconfig, *nowhere) == 0
    told = capsys.readouterr()
    assert "you: may not list pods" in told.out
    assert "  not checked API006, API007, API008: pods: " in told.out
    assert told.err == "next: kubectl auth can-i list pods\n"


def test_where_nothing_can_be_checked_it_ends_with_3(
    nowhere: tuple[str, ...], capsys: Capture
) -> None:
    assert main.run(["check", *nowhere]) == 3
    told = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert [line.split(": ")[:2] for line in told] == [[name, "not checked"] for name in CATEGORIES]


def test_data_has_every_check_with_its_state(nowhere: tuple[str, ...], capsys: Capture) -> None:
    main.run(["check", "--simulate", "dgx-h100", *nowhere, "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["apiVersion"], found["kind"]) == ("diagnose.dragoon.dev/v1", "CheckList")
    items = {one["code"]: one for one in found["items"]}
    assert set(items) == {rule.check.code for rules in CATEGORIES.values() for rule in rules}
    assert items["HOST001"]["state"] == "ok"
    assert items["API001"]["state"] == "not checked"
    assert items["API001"]["notChecked"].startswith("no API server is configured")
    assert items["KUBELET001"]["state"] == "error"
    assert items["KUBELET001"]["problems"][0]["next"]


def test_before_an_install_only_what_makes_sense_is_checked(
    nowhere: tuple[str, ...], capsys: Capture
) -> None:
    main.run(["check", "--pre", "--simulate", "dgx-h100", *nowhere, "-o", "json"])
    codes = {one["code"] for one in json.loads(capsys.readouterr().out)["items"]}
    assert {"HOST001", "RUNTIME001", "KUBELET001", "API001", "API003", "API009"} <= codes
    assert not codes & {"KUBELET002", "API005", "API006", "API007", "API008"}
    assert not any(code.startswith(("STATE", "GANG")) for code in codes)


def test_what_the_runtime_printed_is_checked_from_anywhere(
    tmp_path: Path, nowhere: tuple[str, ...], capsys: Capture
) -> None:
    file = tmp_path / "dump.toml"
    file.write_text('version = 3\n[plugins."io.containerd.cri.v1.runtime"]\nenable_cdi = false\n')
    options = ("--category", "runtime", "--runtime-config", str(file))
    assert main.run(["check", *options, *nowhere]) == 1
    assert "error RUNTIME001" in capsys.readouterr().out


def test_a_saved_cluster_is_checked_for_what_it_tells(tmp_path: Path, capsys: Capture) -> None:
    known = snapshot(slice_(H100, resourceSliceCount=2), node()).replacing(version="v1.36.0")
    saving.save(known, tmp_path / "saved")
    assert main.run(["check", "--snapshot", str(tmp_path / "saved"), "-o", "yaml"]) == 1
    items = {one["code"]: one for one in yaml.safe_load(capsys.readouterr().out)["items"]}
    assert items["API002"]["state"] == "warning"
    assert items["API011"]["state"] == "error"
    assert items["API006"]["notChecked"] == "a saved cluster cannot be asked"


def test_an_unknown_category_is_wrong_usage(capsys: Capture) -> None:
    assert main.run(["check", "--category", "api,disk"]) == 2
    assert "found 'disk', allowed are host, runtime, kubelet, api, state, gang" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("fail_on", "code"), [("error", 0), ("warning", 1), ("info", 1), ("never", 0)]
)
def test_the_exit_code_is_for_what_is_as_bad_as_one_says(
    fail_on: str, code: int, tmp_path: Path, capsys: Capture
) -> None:
    known = snapshot(slice_(H100), node()).replacing(version="v1.36.0")
    saving.save(known, tmp_path / "saved")
    options = ("--category", "api", "--snapshot", str(tmp_path / "saved"))
    assert main.run(["check", *options, "--fail-on", fail_on]) == code
    assert "warning API002" in capsys.readouterr().out


def test_what_never_fails_still_says_with_3_that_nothing_could_be_checked(
    nowhere: tuple[str, ...],
) -> None:
    assert main.run(["check", *nowhere, "--fail-on", "never"]) == 3


async def test_it_looks_again_until_what_was_wrong_is_right(
    cluster: tuple[ClusterWorld, str], nowhere: tuple[str, ...], capsys: Capture
) -> None:
    world, kubeconfig = cluster
    taken = world.admission.pop(PODS)
    options = ("--category", "gang", "--kubeconfig", kubeconfig, *nowhere)
    checking = asyncio.ensure_future(run("check", *options, "--wait", "10m"))
    told = ""
    while "note: GANG001, looking again\n" not in told:
        await asyncio.sleep(0)
        told += capsys.readouterr().err
    world.admission[PODS] = taken
    assert await checking == 0
    assert "gang: 6 of 6 checked, fine" in capsys.readouterr().out


async def test_when_the_time_is_over_the_last_find_is_told_once(
    cluster: tuple[ClusterWorld, str], nowhere: tuple[str, ...], capsys: Capture
) -> None:
    world, kubeconfig = cluster
    del world.admission[PODS]
    options = ("--category", "gang", "--kubeconfig", kubeconfig, *nowhere)
    assert await run("check", *options, "--wait", "1ms") == 1
    assert capsys.readouterr().out.count("error GANG001") == 1


def test_a_saved_cluster_is_not_waited_for(tmp_path: Path, capsys: Capture) -> None:
    saving.save(snapshot(node()), tmp_path / "saved")
    assert main.run(["check", "--snapshot", str(tmp_path / "saved"), "--wait", "5m"]) == 2
    assert "--wait: found with --snapshot" in capsys.readouterr().err


def test_the_checks_are_listed_one_a_line_without_looking_anywhere(
    nowhere: tuple[str, ...], capsys: Capture
) -> None:
    assert main.run(["check", "--list", *nowhere]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["CODE", "CATEGORY", "SEVERITY", "FINDS"]
    known = {rule.check.code: name for name, rules in CATEGORIES.items() for rule in rules}
    assert {line.split()[0]: line.split()[1] for line in lines} == known
    assert len(lines) == len(known)


def test_the_list_is_data_too_and_of_the_categories_that_are_asked_for(capsys: Capture) -> None:
    assert main.run(["check", "--list", "--category", "gang", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["apiVersion"], found["kind"]) == (
        "diagnose.dragoon.dev/v1",
        "CheckDefinitionList",
    )
    assert {one["category"] for one in found["items"]} == {"gang"}
    first = found["items"][0]
    assert (first["code"], first["severity"]) == ("GANG001", "error")
    assert first["docs"] == "docs/checks.md#gang001"
    assert main.run(["check", "--list", "--pre", "--category", "state", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == []
