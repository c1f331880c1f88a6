"""What the watch remembers over restarts: written before anybody is told, and never lost by a bad disk."""

import asyncio
import threading
from collections.abc import Callable

from dragoon.errors import StateError
from dragoon.health.port import FakeMemory
from dragoon.health.remembering import encode
from dragoon.health.verdict import Kind
from tests.unit.health.bench import Bench, running, said, until
from tests.unit.health.cards import TWO, Node, at, found, gpu, lost, says, xid


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
        await until(lambda: said(watch, 1) == [(Kind.XID, "62")])
        (verdict,) = watch.health[at(0)].verdicts
        assert verdict.ailing


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


async def test_without_a_disk_the_verdict_is_told_all_the_same_and_written_later() -> None:
    bench = Bench()
    async with bench.watching() as watch:
        bench.memory.error = StateError("no space left")
        bench.events.raise_(xid(79))
        await until(lambda: said(watch, 0) == [(Kind.XID, "79")])
        await until(lambda: ("memory", True) in bench.troubles())
        bench.memory.error = None
        # Told after the write: the disk's thread is done before the loop hears of it.
        await until(lambda: bench.troubles() == [("memory", True), ("memory", False)])
    assert bench.memory.data == encode(watch.health, "boot-1")


async def test_what_cannot_be_read_yet_is_not_written_over_and_counts_when_it_can() -> None:
    bench = Bench(memory=FakeMemory(encode(Node().judge(xid(79)), "boot-1")))
    bench.memory.error = StateError("input/output error")
    async with bench.watching() as watch:
        bench.events.raise_(xid(62, card=1))
        await until(lambda: said(watch, 1) == [(Kind.XID, "62")])
        assert bench.memory.writes == 0
        bench.memory.error = None
        await until(lambda: said(watch, 0) == [(Kind.XID, "79")])
        await until(lambda: bench.memory.writes == 1)
    assert bench.memory.data == encode(watch.health, "boot-1")


async def test_a_broken_file_is_told_and_replaced_when_there_is_something_to_say() -> None:
    bench = Bench(memory=FakeMemory(b"{"))
    async with bench.watching() as watch:
        await until(lambda: ("memory", True) in bench.troubles())
        assert bench.memory.data == b"{"
        bench.events.raise_(xid(79))
        await until(lambda: bench.memory.data == encode(watch.health, "boot-1"))
