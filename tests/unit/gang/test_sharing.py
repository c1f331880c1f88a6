import asyncio

import pytest

from dragoon.gang.sharing import Shared


class Work:
    """Runs that end when they are told to."""

    def __init__(self) -> None:
        self.begun = 0
        self.gate = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> None:
        self.begun += 1
        await self.gate.wait()
        if self.error is not None:
            raise self.error


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_callers_of_one_moment_share_a_run() -> None:
    work = Work()
    shared = Shared(work)
    calls = [asyncio.ensure_future(shared()) for _ in range(3)]
    await turn()
    work.gate.set()
    await asyncio.gather(*calls)
    assert work.begun == 1


async def test_who_calls_during_a_run_gets_one_that_begins_afterwards() -> None:
    work = Work()
    shared = Shared(work)
    first = asyncio.ensure_future(shared())
    await turn()
    late = [asyncio.ensure_future(shared()) for _ in range(2)]
    await turn()
    assert work.begun == 1
    work.gate.set()
    await asyncio.gather(first, *late)
    assert work.begun == 2


async def test_a_caller_that_is_cancelled_does_not_take_the_run_with_it() -> None:
    work = Work()
    shared = Shared(work)
    gone, stays = asyncio.ensure_future(shared()), asyncio.ensure_future(shared())
    await turn()
    gone.cancel()
    await turn()
    work.gate.set()
    await stays
    assert work.begun == 1


async def test_a_run_that_fails_fails_its_callers_and_not_the_next() -> None:
    work = Work()
    work.error = ValueError("no")
    work.gate.set()
    shared = Shared(work)
    with pytest.raises(ValueError, match="no"):
        await shared()
    work.error = None
    await shared()
    assert work.begun == 2
