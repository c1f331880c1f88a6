"""`dragoon gangs`: lists, details and giving up, live over HTTP."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

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
