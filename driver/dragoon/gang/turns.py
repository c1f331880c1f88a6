"""One planner at a time, and who is next: nobody waits for ever for others of its priority."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import NamedTuple

from dragoon.gang.waiting.ranking import Rank


class Waiter(NamedTuple):
    """Somebody who waits. came: the number of its coming; those of turns are counted with them."""

    rank: Rank
    came: int


class Share(NamedTuple):
    """Whose time is counted together: of one namespace, those of one priority."""

    behind: int
    namespace: str


def share_of(rank: Rank) -> Share:
    """Where the time of a turn is counted."""
    return Share(rank.behind, rank.namespace)


def first(
    waiting: Collection[Waiter], used: Callable[[Share], float], turns: Mapping[Rank, int]
) -> Waiter:
    """Who is next of those that wait, at least one.

    The higher priority first; of equal ones the namespace that has used the planner least; in a
    namespace the older, but not again before one that waited already when it had its last turn.
    used: seconds. turns: the numbers of last turns.
    """
    top = min(one.rank.behind for one in waiting)
    equals = [one for one in waiting if one.rank.behind == top]
    longest: dict[str, int] = {}
    for one in equals:
        longest[one.rank.namespace] = min(one.came, longest.get(one.rank.namespace, one.came))

    def place(one: Waiter) -> tuple[float, bool, str, int]:
        had = turns.get(one.rank, 0) > longest[one.rank.namespace]
        return used(share_of(one.rank)), had, one.rank.created, one.came

    return min(equals, key=place)


class Turns:
    """A lock whose waiters come as `first` has it. Belongs to one event loop.

    A namespace that did not wait has no time to make up for: it starts with what the one that is
    served has used. clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[Waiter, asyncio.Future[None]] = {}
        self._busy = False
        self._count = 0
        self._used: dict[Share, float] = {}
        self._least: dict[int, float] = {}
        self._turns: dict[Rank, int] = {}

    @contextlib.asynccontextmanager
    async def turn(self, rank: Rank) -> AsyncIterator[None]:
        """Waits for a turn."""
        await self._enter(rank)
        started = self._clock()
        try:
            yield
        finally:
            self._used[share_of(rank)] += self._clock() - started
            self._leave()

    async def _enter(self, rank: Rank) -> None:
        if not self._busy:
            self._begin(rank)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = Waiter(rank, self._counted())
        self._waiting[waiter] = turn
        try:
            await turn
        except asyncio.CancelledError:
            self._waiting.pop(waiter, None)
            if turn.done() and not turn.cancelled():
                self._leave()  # It was given just before: pass it on.
            raise

    def _begin(self, rank: Rank) -> None:
        share = share_of(rank)
        self._busy = True
        self._used[share] = self._least[share.behind] = self._used_by(share)
        self._turns[rank] = self._counted()

    def _leave(self) -> None:
        self._waiting = {one: turn for one, turn in self._waiting.items() if not turn.done()}
        self._forget()
        if not self._waiting:
            self._busy = False
            return
        waiter = first(self._waiting, self._used_by, self._turns)
        turn = self._waiting.pop(waiter)
        self._begin(waiter.rank)
        turn.set_result(None)

    def _used_by(self, share: Share) -> float:
        return max(self._used.get(share, 0.0), self._least.get(share.behind, 0.0))

    def _forget(self) -> None:
        """What says nothing about those that wait."""
        priorities = {one.rank.behind for one in self._waiting}
        longest = min((one.came for one in self._waiting), default=self._count)
        self._least = {one: least for one, least in self._least.items() if one in priorities}
        self._used = {
            share: used
            for share, used in self._used.items()
            if used > self._least.get(share.behind, used)
        }
        self._turns = {rank: turn for rank, turn in self._turns.items() if turn > longest}

    def _counted(self) -> int:
        self._count += 1
        return self._count
