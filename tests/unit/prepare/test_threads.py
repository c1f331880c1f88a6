"""The threads of effects: what comes back, how many there are, and what the ends of either side do."""

import asyncio
import contextlib
import contextvars
import threading
import time
import weakref

import pytest

from dragoon.errors import HardwareError
from dragoon.prepare.threads import Overseer, Threads, run_somewhere

_WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


@pytest.mark.parametrize("somewhere", [True, False])
async def test_a_result_and_an_error_come_back_from_another_thread(*, somewhere: bool) -> None:
    run = run_somewhere if somewhere else Threads(1).run
    assert await run(threading.get_ident) != threading.get_ident()

    def fail() -> None:
        raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        await run(fail)
    assert await run(lambda: "still there") == "still there"


async def test_the_context_of_the_caller_goes_with_the_work() -> None:
    _WHO.set("claim")
    assert await Threads(1).run(_WHO.get) == "claim"


async def test_work_waits_side_by_side_up_to_the_limit_and_no_further() -> None:
    threads = Threads(2)
    together, release = threading.Barrier(3), threading.Event()

    def wait() -> int:
        together.wait(30)
        release.wait(30)
        return threading.get_ident()

    two = [threads.run(wait) for _ in range(2)]
    await asyncio.to_thread(together.wait, 30)
    third = threads.run(threading.get_ident)
    await asyncio.sleep(0)
    assert not third.done()
    release.set()
    assert await third in await asyncio.gather(*two)


async def test_one_thread_is_enough_for_work_that_comes_one_by_one() -> None:
    threads = Threads(8)
    assert len({await threads.run(threading.get_ident) for _ in range(20)}) == 1


@pytest.mark.parametrize("somewhere", [True, False])
async def test_work_that_nobody_waits_for_goes_on_and_says_when_it_has_ended(
    *, somewhere: bool
) -> None:
    run = run_somewhere if somewhere else Threads(1).run
    begun, release, done = threading.Event(), threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        release.wait(30)
        done.set()

    ended = asyncio.Event()
    task = run(wait, ended.set)
    await asyncio.to_thread(begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ended.is_set()
    release.set()
    async with asyncio.timeout(30):
        await ended.wait()
    assert done.is_set()
    assert await run(lambda: "next", ended.set) == "next"


def test_a_loop_that_ended_meanwhile_costs_no_thread() -> None:
    threads = Threads(1)
    begun, release = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        release.wait(30)

    async def leave() -> None:
        task = threads.run(wait)
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()

    asyncio.run(leave())
    release.set()

    async def ask() -> str:
        return await threads.run(lambda: "from the next loop")

    assert asyncio.run(ask()) == "from the next loop"


class Died(BaseException):
    """What no `except Exception` catches."""


def test_overseen_work_answers_raises_and_sees_the_callers_context() -> None:
    overseer = Overseer(60)
    _WHO.set("mine")

    def die() -> None:
        raise Died

    assert overseer.oversee("a", _WHO.get) == "mine"
    with pytest.raises(Died):
        overseer.oversee("a", die)
    assert overseer.oversee("a", lambda: 1) == 1


def test_overseen_work_that_hangs_is_begun_once_until_it_has_ended() -> None:
    overseer = Overseer(0.01)
    go, begun = threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        go.wait()

    for _ in range(3):
        with pytest.raises(HardwareError, match=r"has not answered for 0\.01 s") as caught:
            overseer.oversee("stuck", hang)
        assert caught.value.retryable
    begun.acquire()
    assert not begun.acquire(blocking=False)

    for key in ("other", "stuck"):
        while True:  # a busy machine may be late, too
            with contextlib.suppress(HardwareError):
                assert overseer.oversee(key, lambda: 2) == 2
                break
        go.set()


def test_overseen_work_that_ends_late_leaves_nothing_behind() -> None:
    class Answer:
        pass

    overseer = Overseer(0.01)
    go, made = threading.Event(), list[weakref.ref[Answer]]()

    def hang() -> Answer:
        go.wait()
        answer = Answer()
        made.append(weakref.ref(answer))
        return answer

    with pytest.raises(HardwareError):
        overseer.oversee("claim that goes", hang)
    go.set()
    deadline = time.monotonic() + 60
    while not made or made[0]() is not None:
        assert time.monotonic() < deadline
        with contextlib.suppress(HardwareError):  # a busy machine may be late
            overseer.oversee("other", lambda: None)
