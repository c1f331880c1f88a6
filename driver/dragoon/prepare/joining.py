"""Several callers of one piece of work."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from dragoon.api.claims import ClaimRef
from dragoon.prepare.waiting import Budget

_T = TypeVar("_T")


class Calls(Generic[_T]):
    """The calls in progress, by claim.

    Two pods that share a claim start together and make the kubelet ask twice at once, and a kubelet
    that restarts asks again: the second caller joins.
    Work whose last caller has gone is cancelled; what must not stop half way shields itself.
    """

    def __init__(self) -> None:
        self._running: dict[ClaimRef, _Call[_T]] = {}

    def __len__(self) -> int:
        return len(self._running)

    async def join(
        self,
        claim: ClaimRef,
        budget: Callable[[], Budget],
        work: Callable[[Budget], Coroutine[Any, Any, _T]],
    ) -> _T:
        """The result of the call in progress for this claim, or of new work."""
        call = self._running.get(claim)
        if call is None:
            granted = budget()
            call = _Call(asyncio.create_task(work(granted)), granted)
            self._running[claim] = call
        else:
            call.budget.renew()
        call.callers += 1
        try:
            return await asyncio.shield(call.task)
        finally:
            call.callers -= 1
            if not call.callers:
                # Whoever asks from now on must not join work that is being cancelled.
                del self._running[claim]
                call.task.cancel()


class _Call(Generic[_T]):
    def __init__(self, task: asyncio.Task[_T], budget: Budget) -> None:
        self.task = task
        self.budget = budget
        self.callers = 0
