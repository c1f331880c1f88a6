"""Collects what a maintainer needs of a node and a cluster: tasks that fail one by one.

Reads only. What the tasks give is redacted (`diagnose.redacting`) before it is anywhere.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoon.app import cdi_view, mig_view, node_claims, status_view, usage_view
from dragoon.app.config import PluginConfig
from dragoon.app.evidence import cluster, node
from dragoon.app.patience import DRIVER_SECONDS
from dragoon.diagnose import saving
from dragoon.diagnose.archive import CLUSTER, NODE
from dragoon.diagnose.checking import OF_NODE, Evidence, run
from dragoon.diagnose.gathering import Told, gather_in_time
from dragoon.diagnose.snapshot import PARTS
from dragoon.errors import ApiUnavailableError, DragoonError
from dragoon.gpu.aside import aside
from dragoon.kube.port import EVENTS, Api, Object

Files = Mapping[str, Any]
"""JSON data by the name of the file in the dump."""
TASK_SECONDS: Final = 60.0
_OURS: Final = "dragoon"


@dataclass(frozen=True, slots=True)
class Got:
    """What a task collected. missing: what did not come, and why, while the rest did."""

    files: Files
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """Something to collect, and how. server: the API server that it asks, empty for none.

    patient: it ends in time by itself, with what came until then.
    """

    name: str
    collect: Callable[[], Awaitable[Got]]
    server: str = ""
    patient: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """What a task gave. error: why it gave nothing or not all, empty if it did.

    answered: what it asked gave an answer, be it an error.
    """

    name: str
    files: Files
    seconds: float
    error: str = ""
    answered: bool = True

    def data(self) -> dict[str, Any]:
        """For the table of contents."""
        return {
            "name": self.name,
            "ok": not self.error,
            "seconds": round(self.seconds, 3),
            "error": self.error,
            "files": sorted(self.files),
        }


async def collect(tasks: Sequence[Task], *, seconds: float = TASK_SECONDS) -> tuple[Done, ...]:
    """Runs the tasks one by one, each for at most so long; one that fails costs no other.

    A server that gave no task an answer so far is not waited for again.
    """
    done: list[Done] = []
    answers: dict[str, bool] = {}
    for task in tasks:
        if not answers.get(task.server, True):
            done.append(Done(task.name, {}, 0.0, f"not asked: {task.server} gave no answer before"))
            continue
        done.append(await _done(task, seconds))
        if task.server:
            answers[task.server] = done[-1].answered or answers.get(task.server, False)
    return tuple(done)


async def _done(task: Task, seconds: float) -> Done:
    start = time.monotonic()
    got = Got({})
    error, answered = "", True
    try:
        async with asyncio.timeout(None if task.patient else seconds):
            got = await task.collect()
        error = "; ".join(got.missing)
    except TimeoutError:
        error, answered = f"not done within {seconds:g} s", False
    except DragoonError as raised:
        error = str(raised)
        answered = not isinstance(raised, ApiUnavailableError) or bool(raised.status)
    except Exception as raised:  # noqa: BLE001 - the rest of the dump tells more about it
        error = f"internal fault: {type(raised).__name__}: {raised}"
    return Done(task.name, got.files, time.monotonic() - start, error, answered)


def cluster_tasks(
    api: Api, source: str, config: PluginConfig, *, seconds: float = TASK_SECONDS
) -> tuple[Task, ...]:
    """What an API server tells. seconds: for each answer of the tasks that ask for many."""

    async def objects() -> Got:
        told = await gather_in_time(api, source=source, patience=seconds)
        # A snapshot that cannot answer must not look like one: what came is there, without header.
        found = (
            saving.contents(told.found)
            if told.is_enough
            else saving.lists(told.found, [part for part in PARTS if part not in told.refusals])
        )
        return Got({f"{CLUSTER}{name}": data for name, data in found.items()}, _not_collected(told))

    async def events() -> Got:
        listing = await api.list(EVENTS)
        ours = [_event(one) for one in listing.items if _is_ours(one)]
        return Got({"cluster-events.json": ours})

    async def checks() -> Got:
        seen = await cluster.gather(_evidence(config), api, source=source, patience=seconds)
        report = run(seen, ("api", "gang"))
        return Got({"cluster-checks.json": [one.data() for one in report.results]})

    return (
        Task("cluster", objects, source, patient=True),
        Task("events", events, source),
        Task("cluster-checks", checks, source, patient=True),
    )


def node_tasks(
    config: PluginConfig, runtime: Path | None, *, seconds: float = TASK_SECONDS
) -> tuple[Task, ...]:
    """What this node tells. seconds: for each task; a driver that hangs leaves time for the files."""

    async def checks() -> Got:
        patience = min(DRIVER_SECONDS, seconds / 2)
        seen = await node.gather(_evidence(config), config, runtime, patience=patience)
        report = run(seen, OF_NODE)
        return Got({f"{NODE}checks.json": [one.data() for one in report.results]})

    def standing() -> Files:
        found = saving.contents(status_view.look(config))
        return {f"{NODE}snapshot/{name}": data for name, data in found.items()}

    def journal() -> Files:
        found = node_claims.contents(config)
        return {
            f"{NODE}journal.json": {
                "entries": [msgspec.to_builtins(one, str_keys=True) for one in found.held],
                "problems": list(node_claims.problems(found)),
            }
        }

    def specs() -> Files:
        found = cdi_view.specs(config, None)
        return {
            f"{NODE}cdi.json": [
                {
                    "claim": str(one.claim),
                    "file": str(one.file),
                    "state": one.state.value,
                    "spec": without_values(msgspec.to_builtins(one.spec)),
                }
                for one in found.written
            ]
        }

    return (
        Task("node-checks", checks),
        _blocking("node", standing),
        _blocking("journal", journal),
        _blocking("cdi", specs),
        _blocking("mig", lambda: _mig(config)),
        _blocking("usage", lambda: _usage(config)),
        _blocking("settings", lambda: {f"{NODE}settings.json": msgspec.to_builtins(config)}),
    )


def without_values(spec: Any) -> Any:
    """A CDI spec without values of variables and arguments of hooks."""
    if isinstance(spec, list | tuple):
        return [without_values(one) for one in spec]
    if not isinstance(spec, Mapping):
        return spec
    kept = {key: without_values(value) for key, value in spec.items() if key != "args"}
    if "env" in spec:
        kept["env"] = [str(one).partition("=")[0] for one in spec["env"]]
    return kept


def _blocking(name: str, look: Callable[[], Files]) -> Task:
    """A task that waits for files or for the driver, which may hang."""

    async def collect_aside() -> Got:
        return Got(await aside(look))

    return Task(name, collect_aside)


def _evidence(config: PluginConfig) -> Evidence:
    return Evidence(driver_name=config.driver_name)


def _mig(config: PluginConfig) -> Files:
    division = mig_view.look(config)
    cards = [
        {
            "gpu": str(card.card.address),
            "enabled": card.card.mode.enabled,
            "profiles": [one.name for one in card.card.profiles],
            "instances": [
                {
                    "profile": one.profile.name,
                    "placement": str(one.placement),
                    "uuid": one.uuid or "",
                    "claim": card.owner(one),
                }
                for one in card.instances
            ],
        }
        for card in division.cards
    ]
    return {f"{NODE}mig.json": {"cards": cards, "problems": list(division.problems)}}


def _usage(config: PluginConfig) -> Files:
    found = usage_view.look_at_usage(config)
    return {f"{NODE}usage.json": msgspec.to_builtins(found, str_keys=True)}


def _not_collected(told: Told) -> tuple[str, ...]:
    """The lists that a later dump may have, and those without which there is no snapshot.

    What may not be read or is not served is in the snapshot's header alone: some of it is normal.
    """
    return tuple(
        f"{PARTS[part].plural}: {refusal.message}"
        for part, refusal in told.refusals.items()
        if not told.is_enough or isinstance(refusal, ApiUnavailableError)
    )


def _is_ours(event: Object) -> bool:
    return str(event.get("reportingController") or "").startswith(_OURS)


def _event(event: Object) -> Object:
    regarding = event.get("regarding") or {}
    kept = {
        name: event.get(name)
        for name in (
            "eventTime",
            "type",
            "reason",
            "action",
            "note",
            "reportingController",
            "series",
        )
    }
    return {
        **kept,
        "regarding": {name: regarding.get(name) for name in ("kind", "namespace", "name", "uid")},
    }
