"""`pytest --late SECONDS`: finds tests that ask too early.

What a thread did can be seen before the loop hears that it is done. A test that waits for the first
and then asserts the second passes nearly always. Here every answer of a thread reaches its loop this
much later, and tests that wait for a condition look in every turn of the loop: such a test then fails
every time.
"""

import asyncio
import sys
from asyncio import Handle
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable
from contextvars import Context
from pathlib import Path
from typing import Any

_TESTS = str(Path(__file__).parent)
_LOOKS = 0.1
"""Seconds: what tests sleep at most between two looks."""


def install(seconds: float) -> None:
    """For the rest of the process."""
    _answer_late(seconds)
    _look_at_once()


def _answer_late(seconds: float) -> None:
    at_once = BaseEventLoop.call_soon_threadsafe

    def late(
        loop: BaseEventLoop,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Handle:
        if asyncio._get_running_loop() is loop:
            return at_once(loop, callback, *args, context=context)

        def later() -> None:
            loop.call_later(seconds, callback, *args, context=context)

        return at_once(loop, later)

    BaseEventLoop.call_soon_threadsafe = late  # type: ignore[assignment,method-assign]


def _look_at_once() -> None:
    sleep = asyncio.sleep

    async def soon(delay: float, result: object = None) -> object:
        waiting = sys._getframe(1).f_code.co_filename.startswith(_TESTS)
        return await sleep(0 if waiting and delay <= _LOOKS else delay, result)

    asyncio.sleep = soon  # type: ignore[assignment]
