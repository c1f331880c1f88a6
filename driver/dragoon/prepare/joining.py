"""Several callers of one piece of work."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
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


class _CutOff:
    """The caller that did the work has gone."""


_Ending = _Returned[_T] | _Raised | _CutOff


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

    async def join(
        self,
        claim: ClaimRef,
        budget: Callable[[], Budget],
        work: Callable[[Budget], Awaitable[_T]],
    ) -> _T:
        """The result of the call in progress for this claim, or of new work."""
        granted = budget()
        while (running := self._running.get(claim)) is not None:
            running.budget.last_as_long_as(granted)
            match await running.ending():
                case _Returned(value):
                    return value
                case _Raised(error):
                    raise error
        return await self._do(claim, granted, work)

    async def _do(
        self, claim: ClaimRef, budget: Budget, work: Callable[[Budget], Awaitable[_T]]
    ) -> _T:
        call = self._running[claim] = _Call[_T](budget)
        ending: _Ending[_T] = _CutOff()
        try:
            result = await work(budget)
            ending = _Returned(result)
        except Exception as error:
            ending = _Raised(error)
            raise
        finally:
            del self._running[claim]
            call.end(ending)
        return result


class _Call(Generic[_T]):
    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._waiting: list[asyncio.Future[_Ending[_T]]] = []

    def ending(self) -> asyncio.Future[_Ending[_T]]:
        """How it ends, once it does."""
        waiter: asyncio.Future[_Ending[_T]] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    def end(self, ending: _Ending[_T]) -> None:
        for waiter in self._waiting:
            if not waiter.done():  # whoever was cancelled waits no more
                waiter.set_result(ending)
