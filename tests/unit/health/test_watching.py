"""The watch over the cards of a node: in which order things happen, and what goes wrong."""

import asyncio
import threading
from dataclasses import replace

import pytest

from dragoon.errors import HardwareError
from dragoon.gpu.condition import Condition, EventKind, GpuEvent, Polled
from dragoon.gpu.mig import MigCard
from dragoon.gpu.mig_memory import MemoryCard, MemoryMigCards
from dragoon.gpu.model import PciAddress, Placement
from dragoon.gpu.naming import mig_name
from dragoon.health.observing import Raised
from dragoon.health.port import FakeMemory
from dragoon.health.remembering import encode
from dragoon.health.settings import HealthSettings
from dragoon.health.verdict import Kind
from dragoon.health.watching import HealthWatch, Pace, Sources
from tests.reachable import reachable
from tests.unit.health.bench import FAST, Bench, running, said, until
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


async def test_an_event_is_a_verdict_is_remembered_and_asks_for_a_look() -> None:
    bench = Bench()
    async with bench.watching() as watch:
        bench.events.raise_(xid(79))
        await until(lambda: said(watch, 0) == [(Kind.XID, "79")])
    assert bench.looks == 1
    assert bench.memory.data == encode(watch.health, "boot-1")
    (raised,) = [event for event in bench.told if isinstance(event, Raised)]
    assert (raised.event, raised.known) == (xid(79), True)
    (change,) = bench.changes()
    assert (change.address, [verdict.value for verdict in change.came]) == (at(0), ["79"])


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
        await until(lambda: said(watch, 0) == [])


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
        await until(lambda: said(watch, 0) == [])
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
        await until(lambda: said(watch, 0) == [(Kind.XID, "79")])


async def test_a_new_opening_of_the_library_asks_the_cards_anew() -> None:
    bench = Bench()
    async with bench.watching() as watch:
        bench.conditions.cards[at(1)] = NEEDS_RESET
        bench.events.renew()
        await until(lambda: said(watch, 1) == [(Kind.RECOVERY, "GPU reset")])


async def test_a_lost_card_that_the_driver_does_not_name_is_looked_for() -> None:
    bench = Bench()
    async with bench.watching():
        bench.events.lost = True
        await until(lambda: bench.looks > 0)


async def test_a_card_that_is_known_to_be_lost_is_not_looked_for_in_a_loop() -> None:
    bench = Bench()
    async with bench.watching(found(lost(0), gpu(1))) as watch:
        bench.events.lost = True
        polled = bench.events.polled
        await until(lambda: bench.events.polled > polled + 5)
        assert bench.looks == 0
        watch.show(TWO)
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
        await until(lambda: said(watch, 0) == [(Kind.LOST, "no answer")])
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
        await until(lambda: said(watch, 0) == [(Kind.LOST, "no answer")])
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
        await until(lambda: ("conditions", True) in bench.troubles() and bench.events.polled > 0)
        bench.events.raise_(xid(79))
        await until(lambda: said(watch, 0) == [(Kind.XID, "79")])
        # On a busy machine an answer that does come can be late as well, and is told.
        await until(lambda: not watch.blind)
        assert ("conditions", False) not in bench.troubles()
        go.set()
        await until(lambda: said(watch, 1) == [(Kind.RECOVERY, "GPU reset")])
    assert ("conditions", False) in bench.troubles()


async def test_what_a_card_said_before_it_was_lost_does_not_recover_it() -> None:
    """Its answer waited for one of another card, and comes when it is back."""
    bench, asked, go, ended = Bench(), threading.Semaphore(0), threading.Event(), threading.Event()

    def slow() -> dict[PciAddress, Condition]:
        first = not go.is_set()
        asked.release()
        (go if first else ended).wait()
        return {at(0): WELL} if first else {}

    watch = HealthWatch(Sources(bench.events, slow), bench.memory, pace=FAST)
    async with running(watch):
        watch.show(TWO)
        await asyncio.to_thread(asked.acquire)
        await until(lambda: bench.events.polled > 0)
        bench.events.raise_(xid(79))
        await until(lambda: said(watch, 0) == [(Kind.XID, "79")])
        watch.show(found(lost(0), gpu(1)))
        watch.show(TWO)
        go.set()
        await asyncio.to_thread(asked.acquire)
        bench.events.raise_(xid(62, card=1))
        await until(lambda: said(watch, 1) == [(Kind.XID, "62")])
        assert said(watch, 0) == [(Kind.XID, "79")]
        ended.set()


@pytest.mark.parametrize(
    ("then", "kinds"),
    [
        (Condition(silent="has not answered"), [Kind.RECOVERY, Kind.UNWATCHED]),
        (WELL, []),
    ],
)
async def test_what_a_card_said_stands_while_it_does_not_answer(
    then: Condition, kinds: list[Kind]
) -> None:
    bench = Bench()
    bench.conditions.cards[at(0)] = NEEDS_RESET
    async with bench.watching() as watch:
        await until(lambda: said(watch, 0) == [(Kind.RECOVERY, "GPU reset")])
        bench.conditions.cards[at(0)] = then
        bench.events.renew()
        await until(lambda: [kind for kind, _ in said(watch, 0) or []] == kinds)


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
        await until(lambda: bool(said(watch, 0)))
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
        await until(lambda: bool(said(watch, 0)))
        (verdict,) = watch.health[at(0)].verdicts
    assert verdict.spared == frozenset()


class Surprising(MemoryMigCards):
    """Fails once in a way that nobody expects."""

    surprises = 1

    def card(self, address: PciAddress) -> MigCard | None:
        if self.surprises:
            self.surprises -= 1
            raise KeyError(address)
        return super().card(address)


async def test_an_event_that_a_surprise_kept_from_being_judged_is_judged_by_the_next_run() -> None:
    cards = Surprising(divided().cards)
    bench = Bench(mig=cards)
    watch = bench.watch()
    watch.show(TWO)
    life = asyncio.create_task(watch.run())
    await until(lambda: bench.events.polled > 0)
    bench.events.raise_(xid(48, gpu_instance=cards.instances(at(0))[0].identity))
    with pytest.raises(ExceptionGroup):
        await life
    async with running(watch):
        await until(lambda: bool(said(watch, 0)))


class Stuck(MemoryMigCards):
    """Hangs from some time on; counts the calls that do."""

    def __init__(self, cards: dict[PciAddress, MemoryCard]) -> None:
        super().__init__(cards)
        self.go = threading.Event()
        self.hanging = 0

    def card(self, address: PciAddress) -> MigCard | None:
        self.hanging += 1
        self.go.wait()
        return super().card(address)


async def test_a_card_that_hangs_and_raises_errors_on_is_asked_once() -> None:
    cards = Stuck(divided().cards)
    bench = Bench(mig=cards)
    try:
        async with bench.watching() as watch:
            for instance in range(4):
                bench.events.raise_(xid(48, gpu_instance=instance), xid(200 + instance))
                await has_verdict(watch, str(200 + instance))
            assert cards.hanging == 1
    finally:
        cards.go.set()


async def has_verdict(watch: HealthWatch, value: str) -> None:
    """Waits until the first card has a verdict about that."""
    await until(lambda: value in {about for _, about in said(watch, 0) or ()})


async def test_errors_without_end_that_cannot_be_judged_yet_keep_those_of_no_other_card() -> None:
    bench = Bench()
    async with bench.watching(None) as watch:
        await until(lambda: bench.events.polled > 0)
        for first in range(0, 20_000, 1000):
            bench.events.raise_(*(xid(1000 + first + one) for one in range(1000)))
            await all_heard(bench)
        bench.events.raise_(xid(79, card=1))
        await all_heard(bench)
        assert sum(isinstance(one, GpuEvent) for one in reachable(watch)) < 2000
        watch.show(TWO)
        await until(lambda: said(watch, 1) == [(Kind.XID, "79")])
        await has_verdict(watch, "1000")


async def all_heard(bench: Bench) -> None:
    """Waits until the watch has taken what was raised; the bench forgets what it was told."""
    polled = bench.events.polled
    await until(lambda: bench.events.polled > polled + 1)
    bench.told.clear()


async def test_a_card_that_raises_errors_in_a_loop_is_not_asked_in_a_loop() -> None:
    bench, now = Bench(), asyncio.get_running_loop().time
    watch = bench.watch(pace=replace(FAST, pause=0.05))
    watch.show(TWO)
    began = now()
    async with running(watch):
        while bench.conditions.asked < 5:
            bench.events.raise_(xid(94))
            await asyncio.sleep(0.001)
    assert now() - began >= 4 * 0.05


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
        await until(lambda: bool(said(watch, 1)))
        assert says(watch.health[at(0)]) == []
