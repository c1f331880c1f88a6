"""The watch over the cards of a node: in which order things happen, and what goes wrong."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from dragoon.errors import HardwareError, StateError
from dragoon.gpu.condition import Condition, EventKind, GpuEvent, Polled
from dragoon.gpu.condition_memory import MemoryConditions, MemoryEvents
from dragoon.gpu.mig_memory import MemoryMigCards
from dragoon.gpu.model import Inventory, PciAddress, Placement
from dragoon.gpu.naming import mig_name
from dragoon.gpu.port import GpuEvents
from dragoon.health.observing import Changed, Event, Raised, Trouble
from dragoon.health.port import FakeMemory
from dragoon.health.remembering import encode
from dragoon.health.settings import HealthSettings
from dragoon.health.verdict import Kind
from dragoon.health.watching import HealthWatch, Pace, Sources
from tests.unit.health.cards import (
    ALL,
    HALF,
    NEEDS_RESET,
    SMALL,
    TWO,
    WELL,
    Node,
    at,
    found,
    gpu,
    lost,
    mig_card,
    says,
    xid,
)

FAST = Pace(events=0.002, conditions=3600, retry=0.005)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


@dataclass
class Bench:
    """A watch with everything around it faked."""

    events: MemoryEvents = field(default_factory=MemoryEvents)
    conditions: MemoryConditions = field(default_factory=MemoryConditions)
    memory: FakeMemory = field(default_factory=FakeMemory)
    mig: MemoryMigCards | None = None
    told: list[Event] = field(default_factory=list)
    looks: int = 0

    def watch(self, events: GpuEvents | None = None, pace: Pace = FAST) -> HealthWatch:
        def look() -> None:
            self.looks += 1

        return HealthWatch(
            Sources(events or self.events, self.conditions, self.mig),
            self.memory,
            look=look,
            observer=self.told.append,
            pace=pace,
            now=lambda: 1000.0,
        )

    @contextlib.asynccontextmanager
    async def watching(self, inventory: Inventory | None = TWO) -> AsyncIterator[HealthWatch]:
        watch = self.watch()
        async with running(watch):
            if inventory is not None:
                watch.show(inventory)
                cards = {card.address for card in inventory.cards}
                await until(lambda: cards <= set(watch.health) and self.events.polled > 0)
            yield watch

    def changes(self) -> list[Changed]:
        return [event for event in self.told if isinstance(event, Changed)]

    def troubles(self) -> list[tuple[str, bool]]:
        return [
            (event.what, event.error is not None)
            for event in self.told
            if isinstance(event, Trouble)
        ]


@contextlib.asynccontextmanager
async def running(watch: HealthWatch) -> AsyncIterator[None]:
    task = asyncio.create_task(watch.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled(), task.exception()


async def test_an_event_is_a_verdict_is_remembered_and_asks_for_a_look() -> None:
    bench = Bench()
    async with bench.watching() as watch:
        bench.events.raise_(xid(79))
        await until(lambda: says(watch.health[at(0)]) == [(Kind.XID, "79")])
    assert bench.looks == 1
    assert bench.memory.data == encode(watch.health, "boot-1")
    (raised,) = [event for event in bench.told if isinstance(event, Raised)]
    assert (raised.event, raised.known) == (xid(79), True)
    (change,) = bench.changes()
    assert (change.address, [verdict.value for verdict in change.came]) == (at(0), ["79"])


async def test_what_lasts_is_remembered_before_anybody_is_told() -> None:
    bench, stored = Bench(), []
    async with bench.watching() as watch:
        watch.subscribe(lambda: stored.append(bench.memory.data))
        bench.events.raise_(xid(79))
        await until(lambda: bool(stored))
    assert stored == [encode(watch.health, "boot-1")]


async def test_a_fatal_xid_survives_a_restart_of_the_process() -> None:
    bench = Bench()
    async with bench.watching():
        bench.events.raise_(xid(79))
        await until(lambda: bench.memory.writes == 1)
    again = Bench(memory=bench.memory)
    async with again.watching() as watch:
        assert says(watch.health[at(0)]) == [(Kind.XID, "79")]
    assert bench.memory.writes == 1


async def test_what_lasts_is_known_before_anything_runs() -> None:
    bench = Bench(memory=FakeMemory(encode(Node().judge(xid(79)), "boot-1")))
    watch, told = bench.watch(), list[list[tuple[Kind, str]]]()
    watch.subscribe(lambda: told.append(says(watch.health[at(0)])))
    watch.show(TWO)
    await watch.start()
    assert told
    assert all(one == [(Kind.XID, "79")] for one in told)


async def test_what_lasts_is_told_also_where_a_look_adds_nothing_to_it() -> None:
    """A node with one card of which there is nothing else to say."""
    bench = Bench(memory=FakeMemory(encode(Node().judge(xid(79)), "boot-1")))
    watch, calls = bench.watch(), list[int]()
    watch.subscribe(lambda: calls.append(len(watch.health[at(0)].verdicts)))
    watch.show(found(gpu(0)))
    await watch.start()
    assert calls[-1] == 1


class Handing(FakeMemory):
    """A disk on which something happens while it is asked."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.meanwhile: Callable[[], None] | None = None

    def boot_id(self) -> str:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().boot_id()


async def test_a_look_while_an_event_is_being_remembered_is_not_forgotten() -> None:
    memory = Handing(encode(Node().judge(xid(79)), "boot-1"))
    bench = Bench(memory=memory)
    loop, shown = asyncio.get_running_loop(), threading.Event()
    async with bench.watching() as watch:

        def fall_off_and_back() -> None:
            watch.show(found(lost(0), gpu(1)))
            watch.show(TWO)
            shown.set()

        def meanwhile() -> None:
            loop.call_soon_threadsafe(fall_off_and_back)
            shown.wait()

        memory.meanwhile = meanwhile
        bench.events.raise_(xid(62, card=1))
        await until(lambda: says(watch.health[at(1)]) == [(Kind.XID, "62")])
        (verdict,) = watch.health[at(0)].verdicts
        assert verdict.ailing


async def test_a_new_look_is_judged_at_once() -> None:
    watch = Bench().watch()
    await watch.start()
    watch.show(found(lost(0), gpu(1)))
    assert says(watch.health[at(0)]) == [(Kind.LOST, "no answer")]
    watch.show(TWO)
    assert says(watch.health[at(0)]) == []


async def test_a_card_that_is_back_has_recovered_only_when_it_was_asked_again() -> None:
    bench = Bench(memory=FakeMemory(encode(Node().judge(xid(79)), "boot-1")))
    bench.conditions.cards[at(0)] = WELL
    async with bench.watching() as watch:
        await until(lambda: bench.conditions.asked > 0)
        watch.show(found(lost(0), gpu(1)))
        watch.show(TWO)
        assert says(watch.health[at(0)]) == [(Kind.XID, "79")]
        await until(lambda: says(watch.health[at(0)]) == [])


async def test_what_cannot_be_read_at_the_start_holds_nothing_up() -> None:
    bench = Bench()
    bench.memory.error = StateError("input/output error")
    watch = bench.watch()
    watch.show(TWO)
    await watch.start()
    assert bench.troubles() == [("memory", True)]
    async with running(watch):
        await until(lambda: bool(watch.health))


async def test_c20_a_reboot_ends_it_and_the_file_says_so() -> None:
    bench = Bench(memory=FakeMemory(encode(Node().judge(xid(79)), "boot-0")))
    async with bench.watching() as watch:
        await until(lambda: bench.memory.writes == 1)
        assert says(watch.health[at(0)]) == []
    assert bench.memory.data == encode({}, "boot-1")


async def test_an_application_that_crashes_in_a_loop_is_counted_and_costs_nothing() -> None:
    bench = Bench()
    async with bench.watching() as watch:
        asked = bench.conditions.asked
        for _ in range(3):
            bench.told.clear()
            bench.events.raise_(*[xid(31)] * 100)
            await until(lambda: any(isinstance(event, Raised) for event in bench.told))
            (raised,) = (event for event in bench.told if isinstance(event, Raised))
            assert (raised.event, raised.times) == (xid(31), 100)
        watch.show(found(gpu(0), gpu(1), gpu(2)))
        await until(lambda: at(2) in watch.health)
        assert says(watch.health[at(0)]) == []
    assert (bench.looks, bench.memory.writes) == (0, 0)
    assert bench.conditions.asked <= asked + 1  # for the new card


async def test_recovery_is_told_and_forgotten() -> None:
    bench = Bench()
    async with bench.watching() as watch:
        bench.conditions.cards[at(0)] = NEEDS_RESET
        bench.events.raise_(xid(79))
        await until(
            lambda: [kind for kind, _ in says(watch.health[at(0)])] == [Kind.XID, Kind.RECOVERY]
        )
        bench.conditions.cards[at(0)] = WELL
        bench.events.renew()
        await until(lambda: says(watch.health[at(0)]) == [])
    assert {verdict.value for verdict in bench.changes()[-1].went} == {"79", "GPU reset"}
    assert bench.memory.data == encode({}, "boot-1")


async def test_what_is_heard_before_the_first_look_is_judged_with_it() -> None:
    bench = Bench()
    async with bench.watching(None) as watch:
        await until(lambda: bench.events.polled > 0)
        bench.events.raise_(xid(79))
        await until(lambda: bench.looks == 1)
        watch.show(TWO)
        await until(lambda: at(0) in watch.health)
        await until(lambda: says(watch.health[at(0)]) == [(Kind.XID, "79")])


async def test_a_new_opening_of_the_library_asks_the_cards_anew() -> None:
    bench = Bench()
    async with bench.watching() as watch:
        bench.conditions.cards[at(1)] = NEEDS_RESET
        bench.events.renew()
        await until(lambda: says(watch.health[at(1)]) == [(Kind.RECOVERY, "GPU reset")])


async def test_a_lost_card_that_the_driver_does_not_name_is_looked_for() -> None:
    bench = Bench()
    async with bench.watching():
        bench.events.lost = True
        await until(lambda: bench.looks > 0)


async def test_an_event_of_an_unknown_card_is_told_as_such() -> None:
    bench = Bench()
    async with bench.watching() as watch:
        bench.events.raise_(GpuEvent(EventKind.XID, None, 79), xid(79, card=9))
        await until(lambda: sum(isinstance(event, Raised) for event in bench.told) == 2)
        assert not [e for e in bench.told if isinstance(e, Raised) and e.known]
        assert says(watch.health[at(0)]) == []


async def test_a_driver_that_fails_makes_it_blind_until_it_works_again() -> None:
    bench, calls = Bench(), []
    async with bench.watching() as watch:
        watch.subscribe(lambda: calls.append(watch.blind))
        bench.events.error = bench.conditions.error = HardwareError("NVML is broken")
        await until(lambda: [call[:14] for call in calls] == ["NVML is broken"])
        watch.show(found(lost(0), gpu(1)))
        await until(lambda: says(watch.health[at(0)]) == [(Kind.LOST, "no answer")])
        bench.events.error = bench.conditions.error = None
        await until(lambda: calls[-1] == "")
    assert ("events", True) in bench.troubles()
    assert ("events", False) in bench.troubles()


class Hanging:
    """A driver whose answer comes when it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def poll(self) -> Polled:
        self.go.wait()
        return Polled()


async def test_a_driver_that_hangs_is_told_and_costs_nothing_else() -> None:
    bench, hanging = Bench(), Hanging()
    watch = bench.watch(hanging, Pace(events=0.002, conditions=3600, patience=0.01))
    async with running(watch):
        watch.show(found(lost(0), gpu(1)))
        await until(lambda: "has not answered" in watch.blind)
        await until(lambda: says(watch.health[at(0)]) == [(Kind.LOST, "no answer")])
        hanging.go.set()
        await until(lambda: not watch.blind)


async def test_cards_that_hang_when_they_are_asked_are_told_and_events_go_on() -> None:
    bench, go = Bench(), threading.Event()

    def hang() -> dict[PciAddress, Condition]:
        go.wait()
        return {at(1): NEEDS_RESET}

    watch = HealthWatch(
        Sources(bench.events, hang),
        bench.memory,
        observer=bench.told.append,
        pace=Pace(events=0.002, conditions=3600, patience=0.01),
    )
    async with running(watch):
        watch.show(TWO)
        await until(lambda: ("conditions", True) in bench.troubles())
        bench.events.raise_(xid(79))
        await until(lambda: says(watch.health[at(0)]) == [(Kind.XID, "79")])
        assert not watch.blind
        go.set()
        await until(lambda: says(watch.health[at(1)]) == [(Kind.RECOVERY, "GPU reset")])
    assert bench.troubles() == [("conditions", True), ("conditions", False)]


async def test_without_a_disk_the_verdict_is_told_all_the_same_and_written_later() -> None:
    bench = Bench()
    async with bench.watching() as watch:
        bench.memory.error = StateError("no space left")
        bench.events.raise_(xid(79))
        await until(lambda: says(watch.health[at(0)]) == [(Kind.XID, "79")])
        await until(lambda: ("memory", True) in bench.troubles())
        bench.memory.error = None
        await until(lambda: bench.memory.data == encode(watch.health, "boot-1"))
    assert bench.troubles() == [("memory", True), ("memory", False)]


async def test_what_cannot_be_read_yet_is_not_written_over_and_counts_when_it_can() -> None:
    bench = Bench(memory=FakeMemory(encode(Node().judge(xid(79)), "boot-1")))
    bench.memory.error = StateError("input/output error")
    async with bench.watching() as watch:
        bench.events.raise_(xid(62, card=1))
        await until(lambda: says(watch.health[at(1)]) == [(Kind.XID, "62")])
        assert bench.memory.writes == 0
        bench.memory.error = None
        await until(lambda: says(watch.health[at(0)]) == [(Kind.XID, "79")])
        await until(lambda: bench.memory.writes == 1)
    assert bench.memory.data == encode(watch.health, "boot-1")


async def test_a_broken_file_is_told_and_replaced_when_there_is_something_to_say() -> None:
    bench = Bench(memory=FakeMemory(b"{"))
    async with bench.watching() as watch:
        await until(lambda: ("memory", True) in bench.troubles())
        assert bench.memory.data == b"{"
        bench.events.raise_(xid(79))
        await until(lambda: bench.memory.data == encode(watch.health, "boot-1"))


def divided() -> MemoryMigCards:
    cards = MemoryMigCards.of([mig_card()])
    cards.set_mode(at(0), enabled=True)
    for start in (0, 4):
        cards.create(at(0), SMALL.name, Placement(start, 1))
    return cards


async def test_an_event_about_an_instance_spares_what_shares_nothing_with_it() -> None:
    cards = divided()
    first, _ = cards.instances(at(0))
    bench = Bench(mig=cards)
    async with bench.watching() as watch:
        bench.events.raise_(xid(48, gpu_instance=first.identity))
        await until(lambda: bool(says(watch.health[at(0)])))
        (verdict,) = watch.health[at(0)].verdicts
    assert mig_name(at(0), SMALL, 4) in verdict.spared
    assert not {mig_name(at(0), p, 0) for p in (SMALL, HALF, ALL)} & verdict.spared
    assert str(first) in verdict.message


@pytest.mark.parametrize("is_lost", [True, False], ids=["card lost", "instance gone"])
async def test_an_instance_that_nobody_can_name_costs_the_whole_card(*, is_lost: bool) -> None:
    cards = divided()
    cards.cards[at(0)].is_lost = is_lost
    bench = Bench(mig=cards)
    async with bench.watching() as watch:
        bench.events.raise_(xid(48, gpu_instance=99))
        await until(lambda: bool(says(watch.health[at(0)])))
        (verdict,) = watch.health[at(0)].verdicts
    assert verdict.spared == frozenset()


async def test_settings_decide_what_an_event_means() -> None:
    bench = Bench()
    watch = HealthWatch(
        Sources(bench.events, bench.conditions),
        bench.memory,
        settings=HealthSettings(harmless=frozenset({79})),
        observer=bench.told.append,
        pace=FAST,
    )
    async with running(watch):
        watch.show(TWO)
        await until(lambda: bool(watch.health) and bench.events.polled > 0)
        bench.events.raise_(xid(79), xid(62, card=1))
        await until(lambda: bool(says(watch.health[at(1)])))
        assert says(watch.health[at(0)]) == []
