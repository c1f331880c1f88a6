"""The loops over Workloads: one that waits for the planner keeps no other waiting."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dragoon.gang.kueue.answering import Answer, Verdict
from dragoon.gang.kueue.apis import LATEST
from dragoon.gang.kueue.checking import Checker
from dragoon.gang.kueue.deciding import Settings
from dragoon.gang.kueue.model import Workload
from dragoon.gang.kueue.probing import Asked
from dragoon.gang.kueue.promising import PodsOfWorkloads, Rooms
from dragoon.gang.protocol.model import Ref
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import Resource
from tests.unit.gang.kueue.workloads import check, podset, workload


class Prober:
    """Answers that Workloads fit; for `slow` only when it is told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.reached = asyncio.Event()
        self.answered = asyncio.Event()
        self.asked: list[str] = []

    async def ask(self, one: Workload, *, hold: bool) -> Asked:
        del hold
        self.asked.append(one.ref.name)
        if one.ref.name == "slow":
            self.reached.set()
            await self.go_on.wait()
        self.answered.set()
        return Asked(Answer(Verdict.FITS, "1 pod can be placed now"))

    def drop(self, uid: str) -> None:
        """Nothing was promised."""


class Reporter:
    """Tells when a state was written."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}
        self.written = asyncio.Event()

    def checked(self, one: Ref, state: str, message: str) -> None:
        del message
        self.states[one.name] = state
        self.written.set()

    def promises(self, count: int) -> None:
        """How many there are does not matter here."""

    def kueue(self, state: str) -> None:
        """Kueue is there."""


def _sent_back(name: str = "slow") -> dict[str, Any]:
    later = datetime.now(UTC) + timedelta(hours=1)
    times: Any = {"requeueAt": later.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return workload(name, podset(1), true=(), evicted="AdmissionCheck", requeueState=times)


def checker_of(api: MemoryApi, prober: Prober, reporter: Reporter) -> Checker:
    return Checker(
        api,
        LATEST,
        prober,  # type: ignore[arg-type]
        rooms=Rooms(),
        pods=PodsOfWorkloads(lambda _pod: False),
        room=lambda: None,
        reporter=reporter,
        settings=Settings(),
    )


async def store(api: MemoryApi, resource: Resource, raw: dict[str, Any]) -> None:
    meta = {key: value for key, value in raw["metadata"].items() if key != "resourceVersion"}
    await api.create(resource, {**raw, "metadata": meta})
    status = {"status": raw.get("status") or {}}
    space = meta.get("namespace")
    await api.patch(resource, meta["name"], status, namespace=space, subresource="status")


@pytest.mark.parametrize(
    "slow", [workload("slow", podset(1)), _sent_back()], ids=["pending", "sent back"]
)
async def test_a_workload_that_waits_for_its_turn_keeps_no_other_waiting(
    slow: dict[str, Any],
) -> None:
    api, prober, reporter = MemoryApi(), Prober(), Reporter()
    checker = checker_of(api, prober, reporter)
    for resource, raw in ((LATEST.checks, check()), (LATEST.workloads, slow)):
        await store(api, resource, raw)
    running = asyncio.create_task(checker.run())
    checker.room_came_up()
    await asyncio.wait_for(prober.reached.wait(), 60)
    await store(api, LATEST.workloads, workload("quick", podset(1)))
    await asyncio.wait_for(reporter.written.wait(), 60)
    assert reporter.states == {"quick": "Ready"}
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_second_try_that_takes_long_holds_up_no_other() -> None:
    api, prober = MemoryApi(), Prober()
    checker = checker_of(api, prober, Reporter())
    await store(api, LATEST.checks, check())
    for name in ("slow", "zebra"):
        await store(api, LATEST.workloads, _sent_back(name))
    running = asyncio.create_task(checker.run())
    checker.room_came_up()
    await asyncio.wait_for(prober.reached.wait(), 60)
    await asyncio.wait_for(prober.answered.wait(), 60)
    assert prober.asked == ["slow", "zebra"]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
