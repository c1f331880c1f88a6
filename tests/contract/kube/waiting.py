"""Waiting for what an API server does a moment after a write, and that it announces to nobody.

Its authorizer, its admission policies and its list of APIs come from informers of its own: some
milliseconds later, or seconds on a busy machine. The account of a new namespace is made by others.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from testbed.waiting import PATIENCE

_LOOK_SECONDS = 0.05


async def becomes(what: str, look: Callable[[], Awaitable[Any]]) -> None:
    """Returns as soon as `look` answers with something true; fails with `what` in the end."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not await look():  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE:g} s: {what}") from None
