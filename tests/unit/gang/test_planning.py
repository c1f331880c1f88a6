"""The planner's door: one at a time, off the loop, and never two beside each other."""

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from dragoon.allocator.gang.model import Budget, GangAsk, NoRoom, Outcome, PlacementSnapshot
from dragoon.gang.copies import Copies
from dragoon.gang.discovering.checking import Fault
from dragoon.gang.planning import Planning
from dragoon.gang.protocol.actions import RequestPlan
from dragoon.gang.remembering import Case, Memory, Pace
from dragoon.gang.world import Listener, World
from dragoon.kube.memory import MemoryApi
from tests.unit.gang.records_for_tests import gang, pod

NOW = datetime(2026, 11, 29, tzinfo=UTC)


class Planner:
    """Answers when it is told to; notes how many ran at once."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.running = self.most = self.calls = 0
        self.threads: set[int] = set()

    def __call__(self, _snapshot: PlacementSnapshot, _ask: GangAsk, _budget: Budget) -> Outcome:
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        self.threads.add(threading.get_ident())
        self.go.wait(30)
        self.running -= 1
        return NoRoom("full", never=False, fitting=0, wanted=1)


class Silent:
    def __getattr__(self, _name: str) -> Any:
        return lambda *_arguments: None


def bench(planner: Planner) -> Planning:
    world = World(
        Copies(MemoryApi()), Listener(lambda _key: None, lambda _freed: None, lambda: None)
    )
    return Planning(world, planner, Silent(), pace=Pace())


async def ask(planning: Planning, memory: Memory) -> None:
    own, member = gang(), pod("a")
    await asked(planning, Case(own, (member,)), memory)


async def asked(planning: Planning, case: Case, memory: Memory) -> None:
    """The planner's answer for all pods of a case."""
    request = RequestPlan(tuple(one.uid for one in case.pods))
    await planning.plan(case, request, memory, members=(), now=NOW, gives_way=lambda: False)


async def until_called(planner: Planner, times: int) -> None:
    async with asyncio.timeout(60):
        while planner.calls < times:  # noqa: ASYNC110 - a thread tells nobody
            await asyncio.sleep(0)


async def test_the_planner_runs_in_another_thread_and_its_answer_is_remembered() -> None:
    planner, memory = Planner(), Memory()
    planner.go.set()
    await ask(bench(planner), memory)
    assert threading.get_ident() not in planner.threads
    assert memory.proposal is not None
    assert memory.proposal.refusal == "full"
    assert isinstance(memory.outcome, NoRoom)


async def test_a_plan_that_is_cancelled_lets_no_other_run_beside_it() -> None:
    planner = Planner()
    planning = bench(planner)
    first = asyncio.ensure_future(ask(planning, Memory()))
    await until_called(planner, 1)
    first.cancel()
    second = asyncio.ensure_future(ask(planning, Memory()))
    for _ in range(10):
        await asyncio.sleep(0)
    assert planner.calls == 1
    planner.go.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    await second
    assert (planner.calls, planner.most) == (2, 1)


async def test_a_refusal_is_asked_again_only_when_room_came_up_and_not_all_the_time() -> None:
    planner, memory = Planner(), Memory()
    planner.go.set()
    world = World(
        Copies(MemoryApi()), Listener(lambda _key: None, lambda _freed: None, lambda: None)
    )
    pace = Pace(replan=1.0, slowest=3.0)
    planning = Planning(world, planner, Silent(), pace=pace, clock=lambda: 100.0)
    pauses = []
    for _ in range(6):
        await ask(planning, memory)
        assert planning.due(memory) is None
        memory.woken = True
        due = planning.due(memory)
        assert due is not None
        pauses.append(due - 100.0)
    assert 0.5 <= pauses[0] <= 1.0
    assert 1.0 <= pauses[1] <= 2.0
    assert all(1.5 <= pause <= 3.0 for pause in pauses[2:])


async def test_room_that_comes_up_while_the_planner_thinks_is_a_reason_to_ask_again() -> None:
    planner, memory = Planner(), Memory()
    planning = bench(planner)
    asking = asyncio.ensure_future(ask(planning, memory))
    await until_called(planner, 1)
    memory.woken = True
    planner.go.set()
    await asking
    assert planning.due(memory) is not None


async def test_a_gang_with_a_fault_is_not_planned_and_not_looked_at_again_for_nothing() -> None:
    planner, memory = Planner(), Memory()
    planning = bench(planner)
    memory.woken = True
    own, member = gang(), pod("a")
    case = Case(own, (member,), faults=(Fault("TwoSizes", "size: found 2 and 3"),))
    await asked(planning, case, memory)
    assert planner.calls == 0
    assert memory.proposal is not None
    assert memory.proposal.refusal == "size: found 2 and 3"
    assert planning.due(memory) is None


async def test_a_node_that_may_be_used_again_is_a_reason_to_ask_again() -> None:
    planner, memory = Planner(), Memory()
    planner.go.set()
    world = World(
        Copies(MemoryApi()), Listener(lambda _key: None, lambda _freed: None, lambda: None)
    )
    planning = Planning(world, planner, Silent(), pace=Pace(), clock=lambda: 100.0)
    avoided = [
        {"node": "gone", "until": "2026-11-28T23:00:00Z"},
        {"node": "a", "until": "2026-11-29T00:10:00Z"},
        {"node": "b", "until": "2026-11-29T00:05:00Z"},
    ]
    own, member = gang(status={"avoided": avoided}), pod("a")
    await asked(planning, Case(own, (member,)), memory)
    assert planning.due(memory) == 100.0 + 5 * 60 + 1.0
