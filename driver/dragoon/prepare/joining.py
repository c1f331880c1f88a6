"""Several callers of one piece of work."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dragoon.api.claims import ClaimRef
from dragoon.prepare.waiting import Budget

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Returned(Generic[_T]):
    value: _T


@dataclass(frozen=True, slots=True)
class _Raised:
    error: Exception


@dataclass(eq=False, slots=True)
class _Call(Generic[_T]):
    """Work of one caller. ending: None when it has ended because that caller has gone."""

    budget: Budget
    ending: _Returned[_T] | _Raised | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Calls(Generic[_T]):
    """The calls in progress, by claim.

    Two pods that share a claim start together and make the kubelet ask twice at once, and a kubelet
    that restarts asks again: the second caller waits for what comes of the first one's call. The
    first does the work itself: a task of its own would be two more turns of the loop before the
    answer. Where it is cancelled its work is too, and one of those who wait begins anew; what must
    not stop half way shields itself.
    """

    def __init__(self) -> None:
        self._running: dict[ClaimRef, _Call[_T]] = {}

    def __len__(self) -> int:
        return len(self._running)

    async def join(self, claim: ClaimRef, budget: Budget, work: Callable[[], Awaitable[_T]]) -> _T:
        """The result of the call in progress for this claim, or of this caller's work.

        budget: how long that work may wait; a call that is joined may then wait as long.
        """
        while (running := self._running.get(claim)) is not None:
            running.budget.last_as_long_as(budget)
            await running.ended.wait()
            match running.ending:
                case _Returned(value):
                    return value
                case _Raised(error):
                    raise error
        return await self._do(claim, budget, work)

    async def _do(self, claim: ClaimRef, budget: Budget, work: Callable[[], Awaitable[_T]]) -> _T:
        call: _Call[_T] = _Call(budget)
        self._running[claim] = call
        try:
            result = await work()
            call.ending = _Returned(result)
        except Exception as error:
            call.ending = _Raised(error)
            raise
        finally:
            del self._running[claim]
            call.ended.set()
        return result
