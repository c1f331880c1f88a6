"""Looking again and again, until the answer will do or the time is over."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from dragoon.prepare.clock import Clock

_T = TypeVar("_T")

PAUSE_SECONDS: Final = 2.0


async def until(
    look: Callable[[], Awaitable[_T]],
    will_do: Callable[[_T], bool],
    seconds: float,
    clock: Clock,
    tell: Callable[[_T], None],
) -> _T:
    """The first answer that will do, or the last one. Looks at least once, and once at the end.

    tell: hears of every answer after which it is looked again. Raises what look raises.
    """
    end = clock.now() + seconds
    while True:
        found = await look()
        left = end - clock.now()
        if left <= 0 or will_do(found):
            return found
        tell(found)
        await clock.sleep(min(PAUSE_SECONDS, left))
