"""Asking the driver from a command: a driver that hangs must not keep the command from ending."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from dragoon.errors import HardwareError
from dragoon.gpu.aside import aside

_T = TypeVar("_T")

DRIVER_SECONDS: Final = 20.0
"""How long a driver may take where nobody says otherwise: many times what a full machine needs."""


async def in_time(look: Callable[[], _T], seconds: float = DRIVER_SECONDS) -> _T:
    """What look answers, which blocks.

    Raises HardwareError after that time, and what look raises.
    """
    try:
        async with asyncio.timeout(seconds):
            return await aside(look)
    except TimeoutError:
        raise HardwareError(f"no answer within {seconds:g} s: the driver hangs") from None


async def with_or_without(look: Callable[[str], _T], seconds: float = DRIVER_SECONDS) -> _T:
    """look(""), or look(why) where the driver does not answer in time: that must not ask it."""
    try:
        return await in_time(lambda: look(""), seconds)
    except HardwareError as error:
        return await asyncio.to_thread(look, error.message)
