"""`dragoon gangs`: lists, details and giving up, live over HTTP."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoon.api.gang import GATE, LABEL
from dragoon.app.gang_view import age
from dragoon.cli import main
from dragoon.errors import ApiNotFoundError
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import GANGS, PODS
from dragoon.kube.serving import EmbeddedApi

Capture = pytest.CaptureFixture[str]


async def add(api: MemoryApi, name: str, *, phase: str, waiting: str = "", **status: Any) -> None:
    meta = {"name": name, "namespace": "team"}
    await api.create(GANGS, {"metadata": meta, "spec": {"size": 2}})
    body = {"phase": phase, "waitingFor": waiting, "members": {"summary": "1/2"}, **status}
    await api.patch(GANGS, name, {"status": body}, namespace="team", subresource="status")


@contextlib.asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[tuple[MemoryApi, str]]:
    api = EmbeddedApi(MemoryApi())
    await api.start()
    try:
        yield api.memory, str(api.write_kubeconfig(folder / "kubeconfig"))
    finally:
        await api.stop()


async def run(*arguments: str) -> int:
    return await asyncio.to_thread(main.run, arguments)


async def test_gangs_are_listed_and_one_in_trouble_is_a_finding(
    tmp_path: Path, capsys: Capture
) -> None:
    async with cluster(tmp_path) as (memory, kubeconfig):
        await add(memory, "b", phase="Running")
        await add(memory, "a", phase="Waiting", waiting="room")
        assert await run("gangs", "--kubeconfig", kubeconfig) == 0
        header, first, second = capsys.readouterr().out.splitlines()
        assert header.split()[:5] == ["NAMESPACE", "NAME", "READY", "PHASE", "AGE"]
        assert first.split()[:4] == ["team", "a", "1/2", "Waiting"]
        assert first.endswith("room")
        assert second.split()[:4] == ["team", "b", "1/2", "Running"]
        await add(memory, "c", phase="Stuck", waiting="pod x cannot be bound")
        assert await run("gangs", "--kubeconfig", kubeconfig, "-o", "json") == 1
        found = json.loads(capsys.readouterr().out)
        assert (found["apiVersion"], found["kind"]) == ("diagnose.dragoon.dev/v1", "GangList")
        assert [(one["name"], one["phase"]) for one in found["items"]][-1] == ("c", "Stuck")


async def test_without_the_crd_there_are_no_gangs(tmp_path: Path, capsys: Capture) -> None:
    async with cluster(tmp_path) as (memory, kubeconfig):
        memory.faults.fail(
            times=None, resource=GANGS, error=lambda: ApiNotFoundError("no such kind", status=404)
        )
        assert await run("gangs", "--kubeconfig", kubeconfig) == 0
        assert len(capsys.readouterr().out.splitlines()) == 1


async def test_a_gang_that_cannot_be_read_is_named_with_its_field(
    tmp_path: Path, capsys: Capture
) -> None:
    async with cluster(tmp_path) as (memory, kubeconfig):
        await memory.create(GANGS, {"metadata": {"name": "odd", "namespace": "team"}, "spec": {}})
        for words in (["gangs"], ["gangs", "release", "--all"]):
            assert await run(*words, "--kubeconfig", kubeconfig) == 2
            assert "error: team/odd: Gang: spec: Object missing required field `size`" in (
                capsys.readouterr().err
            )


async def test_of_a_gang_whose_group_is_another_projects_that_group_is_shown(
    tmp_path: Path, capsys: Capture
) -> None:
    async with cluster(tmp_path) as (memory, kubeconfig):
        source = {"name": "JobSet", "group": "pretrain/default"}
        spec = {"size": 2, "source": source}
        meta = {"name": "g", "namespace": "team"}
        await memory.create(GANGS, {"metadata": meta, "spec": spec})
        arguments = ("gangs", "show", "-n", "team", "--kubeconfig", kubeconfig)
        await run(*arguments, "g")
        assert "JobSet pretrain/default" in capsys.readouterr().out


async def test_one_gang_is_shown_with_its_reasons_and_members(
    tmp_path: Path, capsys: Capture
) -> None:
    held = {"pod": "p0", "uid": "u", "node": "n0", "claims": [{"name": "c", "uid": "v"}]}
    plan = {"version": 1, "serial": 1, "step": "Hold", "since": "", "held": [held]}
    condition = {"type": "Placed", "status": "True", "reason": "Planned", "message": "1 pod"}
    condition["lastTransitionTime"] = "2026-11-29T19:00:00Z"
    async with cluster(tmp_path) as (memory, kubeconfig):
        await add(
            memory,
            "a",
            phase="Waiting",
            waiting="room",
            explanation=["no room", "it would fit: release claim x"],
            conditions=[condition],
            plan=plan,
        )
        arguments = ("gangs", "show", "-n", "team", "--kubeconfig", kubeconfig)
        assert await run(*arguments, "a") == 0
        told = capsys.readouterr().out
        assert "gang team/a: Waiting, 1/2 ready" in told
        assert "  it would fit: release claim x" in told
        assert "  Placed True (Planned): 1 pod" in told
        assert "  p0 on n0: claims c" in told
        assert await run(*arguments, "nowhere") == 2
        assert "gang team/nowhere: not found" in capsys.readouterr().err


async def test_giving_up_needs_to_be_told_what(tmp_path: Path, capsys: Capture) -> None:
    async with cluster(tmp_path) as (memory, kubeconfig):
        pod = {"metadata": {"name": "p", "namespace": "team", "labels": {LABEL: "a"}}}
        spec = {"containers": [], "schedulingGates": [{"name": GATE}, {"name": "other"}]}
        await memory.create(PODS, {**pod, "spec": spec})
        release = ("gangs", "release", "--kubeconfig", kubeconfig)
        assert await run(*release) == 2
        assert await run(*release, "a", "--all") == 2
        capsys.readouterr()
        assert await run(*release, "--all") == 0
        assert "pods let go: 1, rules removed: 0" in capsys.readouterr().out
        (stored,) = (await memory.list(PODS)).items
        assert stored["spec"]["schedulingGates"] == [{"name": "other"}]


def test_an_age_is_told_as_kubectl_does() -> None:
    now = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)
    for seconds, text in ((0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (172800, "2d")):
        assert age((now - timedelta(seconds=seconds)).isoformat(), now) == text
    assert age("", now) == "0s"
    assert [age(one, now) for one in ("x", "2026-11-29")] == ["unknown", "unknown"]


async def test_wide_says_where_a_gang_is_and_why_not_and_names_can_be_typed_again(
    tmp_path: Path, capsys: Capture
) -> None:
    held = {"pod": "p0", "uid": "u", "node": "n0", "claims": []}
    plan = {"version": 1, "serial": 1, "step": "Hold", "since": "", "held": [held]}
    async with cluster(tmp_path) as (memory, kubeconfig):
        await add(memory, "a", phase="Waiting", waiting="room", explanation=["no room", "at all"])
        await add(memory, "b", phase="Binding", plan=plan)
        assert await run("gangs", "--kubeconfig", kubeconfig, "-o", "wide") == 0
        header, first, second = capsys.readouterr().out.splitlines()
        assert header.split()[-3:] == ["SOURCE", "NODES", "WHY"]
        assert first.endswith("  no room; at all")
        assert second.split()[-3:] == ["-", "n0", "-"]
        assert await run("gangs", "--kubeconfig", kubeconfig, "-o", "name") == 0
        told = capsys.readouterr()
        assert told.out == "gang/a\ngang/b\n"
        assert told.err == "next: dragoon explain gang/a -n team\n"


def saved(folder: Path, *gangs: dict[str, Any], missing: tuple[str, ...] = ()) -> str:
    """A saved cluster with these Gangs."""
    header = {
        "apiVersion": "diagnose.dragoon.dev/v1",
        "kind": "Snapshot",
        "source": "there",
        "missing": list(missing),
    }
    named = [{"apiVersion": "gang.dragoon.dev/v1alpha1", "kind": "Gang", **one} for one in gangs]
    file = folder / "my cluster.yaml"
    file.write_text(yaml.safe_dump_all([header, *named]))
    return str(file)


def of(name: str, namespace: str = "team", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"size": 2},
        "status": {"members": {"summary": "1/2"}, **status},
    }


def test_gangs_of_a_saved_cluster_are_listed_and_shown_as_of_a_live_one(
    tmp_path: Path, capsys: Capture
) -> None:
    file = saved(
        tmp_path,
        of("b", phase="Running"),
        of("a", phase="Waiting", waitingFor="room", explanation=["no room"]),
        of("c", "other", phase="Stuck"),
    )
    assert main.run(["gangs", "--snapshot", file, "-n", "team"]) == 0
    told = capsys.readouterr()
    _, first, second = told.out.splitlines()
    assert first.split()[:4] == ["team", "a", "1/2", "Waiting"]
    assert second.split()[:4] == ["team", "b", "1/2", "Running"]
    assert told.err == f"next: dragoon explain gang/a -n team --snapshot '{file}'\n"
    assert main.run(["gangs", "--snapshot", file, "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)["items"]
    assert [(one["namespace"], one["name"]) for one in found] == [
        *(("other", "c"), ("team", "a"), ("team", "b"))
    ]
    assert main.run(["gangs", "show", "a", "-n", "team", "--snapshot", file]) == 0
    assert "gang team/a: Waiting, 1/2 ready" in capsys.readouterr().out
    assert main.run(["gangs", "show", "a", "--snapshot", file]) == 2
    assert "gang default/a: not found" in capsys.readouterr().err


def test_what_cannot_be_read_of_a_saved_cluster_is_told_and_costs_no_other_gang(
    tmp_path: Path, capsys: Capture
) -> None:
    broken = {**of("b"), "spec": {"size": "two"}}
    missing = ("gangs: may not\nnext: be \x1b[30mlisted", "pods: may not be listed")
    file = saved(tmp_path, of("a"), broken, missing=missing)
    assert main.run(["gangs", "--snapshot", file]) == 0
    told = capsys.readouterr()
    assert [line.split()[1] for line in told.out.splitlines()[1:]] == ["a"]
    first, second = told.err.splitlines()
    assert first == "note: gangs: may not next: be \ufffd[30mlisted"
    assert second.startswith("note: ")
    assert "size" in second


@pytest.mark.parametrize(
    ("given", "below"),
    [
        (("--kubeconfig", "k"), ("show", "x")),
        (("-n", "team"), ("release", "x")),
        (("-o", "json"), ("make-room", "x")),
    ],
)
def test_an_option_before_a_command_that_would_not_hear_it_is_refused(
    given: tuple[str, ...], below: tuple[str, ...], capsys: Capture
) -> None:
    assert main.run(["gangs", *given, *below]) == 2
    told = capsys.readouterr().err
    assert f"before '{below[0]}', allowed is after it" in told
