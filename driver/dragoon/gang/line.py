"""The gangs that wait, in their order: who is woken, who gives way to whom.

Of what was found out about each, nothing is in the API: a new leader asks the planner once for all.
"""

from collections.abc import Callable, Mapping

from dragoon.gang.remembering import Memory, Pace
from dragoon.gang.turns import share_of
from dragoon.gang.waiting.freed import Freed
from dragoon.gang.waiting.ranking import Rank


class Line:
    """Looks into the memories of gangs, by UID, which the looker keeps.

    clock: monotonic seconds.
    """

    def __init__(
        self, memories: Mapping[str, Memory], *, pace: Pace, clock: Callable[[], float]
    ) -> None:
        self._memories = memories
        self._pace = pace
        self._clock = clock

    def room(self, freed: Freed) -> frozenset[str]:
        """Devices or nodes may have become free: gangs that this matters to are to be planned.

        The UIDs of those that have to be looked at for that: not of who was woken before and was not
        planned since. Pods end all the time, and thousands of gangs may wait.
        """
        found: set[str] = set()
        for uid, memory in self._memories.items():
            concerned = freed.matters(memory.concern, never=memory.is_hopeless)
            if not concerned or memory.faulty:
                continue
            memory.room_at = self._clock()
            if not memory.woken:
                memory.woken, memory.woken_at = True, memory.room_at
                if memory.is_refused:
                    found.add(uid)
        return frozenset(found)

    def waits(self, uid: str) -> bool:
        """Whether the gang has no room, and may have some one day without another fleet."""
        memory = self._memories.get(uid)
        return memory is not None and memory.has_no_room and not memory.is_hopeless

    def was_in_vain(self, uid: str) -> bool:
        """Whether a short while ago there was nothing that could be kept for the gang."""
        memory = self._memories.get(uid)
        at = None if memory is None else memory.in_vain_at
        return at is not None and self._clock() < at + self._pace.advice

    def let_reserve(self, uid: str, displaced: frozenset[str]) -> None:
        """Devices may be kept for the gang: its next look chooses them.

        displaced: the UIDs of gangs for which nothing is kept once that is done.
        """
        memory = self._memories[uid]
        memory.displaced = displaced
        memory.woken = True
        memory.pause = 0.0

    def ahead_of(self, memory: Memory, rank: Rank) -> tuple[str, ...]:
        """Who is to be planned before a gang that is to be planned now: better ones, woken too.

        Each of them once, and for a short while again for what becomes free meanwhile: the devices of
        a gang that ends come one by one. Then it is this one's turn. Of equals in another namespace
        one is enough: there may be any number of them.
        """
        now = self._clock()
        memory.rank = rank
        since = memory.woken_at = now if memory.woken_at is None else memory.woken_at
        if now >= since + self._pace.slowest:
            return ()
        if now < since + self._pace.yields:
            since = max(since, memory.room_at)
        better = {
            uid: one.rank
            for uid, one in self._memories.items()
            if one.rank is not None and one.rank < rank
        }
        planned = {uid for uid in better if self._memories[uid].asked_at >= since}
        enough = {share_of(better[uid]) for uid in planned if better[uid].behind == rank.behind} - {
            share_of(rank)
        }
        ahead = [
            uid
            for uid in better.keys() - planned
            if share_of(better[uid]) not in enough and _can_be_planned(self._memories[uid])
        ]
        for uid in ahead:
            self._memories[uid].pause = 0.0
        return tuple(ahead)


def _can_be_planned(memory: Memory) -> bool:
    """Whether a gang that found no room may find some now."""
    return memory.is_refused and memory.woken and not memory.faulty
