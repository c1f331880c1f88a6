"""Whoever waits for the planner: priority first, namespaces alike, nobody for ever."""

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from dragoon.gang.turns import Share, Turns, share_of
from dragoon.gang.waiting.ranking import Rank
from dragoon.prepare.clock import ManualClock

LONGEST = 5
SPACES = ("a", "b", "c")


@dataclass
class Waits:
    """Somebody who waits. passed: who had turns meanwhile."""

    rank: Rank
    task: asyncio.Task[None]
    passed: Counter[str] = field(default_factory=Counter)


class Door:
    """Real turns, and what is seen of them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.turns = Turns(self.clock.now)
        self.waiting: list[Waits] = []
        self.inside: Rank | None = None
        self.go_on = asyncio.Event()
        self.wrong: list[str] = []
        self.seconds: defaultdict[tuple[int, frozenset[str]], Counter[str]] = defaultdict(Counter)

    async def come(self, rank: Rank) -> None:
        there = {one.rank.name for one in self.waiting} | {self.inside and self.inside.name}
        if rank.name not in there:
            task = asyncio.ensure_future(self._live(rank))
            self.waiting.append(Waits(rank, task))
            await settle()
            self._compare()

    async def _live(self, rank: Rank) -> None:
        async with self.turns.turn(rank):
            self._enters(rank)
            await self.go_on.wait()
            self.go_on.clear()
            self.inside = None

    def _enters(self, rank: Rank) -> None:
        if self.inside is not None:
            self.wrong.append("two are inside")
        self.inside = rank
        mine = next(one for one in self.waiting if one.rank == rank)
        self.waiting.remove(mine)
        for one in self.waiting:
            if one.rank.behind < rank.behind:
                self.wrong.append(f"{rank.name} came before {one.rank.name} of higher priority")
            if share_of(one.rank) == share_of(rank):
                one.passed[rank.name] += 1
                if one.passed[rank.name] > 1:
                    self.wrong.append(f"{rank.name} passed {one.rank.name} twice")

    async def end(self, seconds: int) -> None:
        """Whoever is inside leaves after so many seconds."""
        if self.inside is None:
            return
        share = share_of(self.inside)
        for (behind, pair), used in self.seconds.items():
            if behind == share.behind and share.namespace in pair:
                used[share.namespace] += seconds
        self.clock.advance(seconds)
        self.go_on.set()
        await settle()
        assert self.inside is not None or not self.waiting, "somebody waits for nobody"
        self._compare()

    async def again(self, seconds: int) -> None:
        """As `end`, and comes back at once."""
        rank = self.inside
        await self.end(seconds)
        if rank is not None:
            await self.come(rank)

    async def cancel(self, number: int) -> None:
        if self.waiting:
            gone = self.waiting.pop(number % len(self.waiting))
            gone.task.cancel()
            await asyncio.gather(gone.task, return_exceptions=True)
            self._compare()

    def _compare(self) -> None:
        """Of two namespaces that wait all the time neither uses more than the other."""
        assert not self.wrong
        wait = {share_of(one.rank) for one in self.waiting}
        for behind in (-10, 0):
            for pair in combinations(SPACES, 2):
                key = behind, frozenset(pair)
                if not all(Share(behind, space) in wait for space in pair):
                    self.seconds.pop(key, None)
                    continue
                one, other = (self.seconds[key][space] for space in pair)
                assert abs(one - other) <= 2 * LONGEST, "namespaces use it alike"

    async def close(self) -> None:
        while self.inside is not None:
            await self.end(1)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def rank_of(space: str, number: int) -> Rank:
    """Of one gang priority and age are always the same; half of the namespaces have one age."""
    return Rank(0 if number else -10, str(number * (space != "a")), space, f"{space}{number}")


GANGS = st.builds(rank_of, st.sampled_from(SPACES), st.sampled_from((0, 1, 2, 3, 1, 2, 3)))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("come"), GANGS),
        st.tuples(st.just("again"), st.integers(0, LONGEST)),
        st.tuples(st.just("end"), st.integers(0, LONGEST)),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
    ),
    max_size=50,
)


@given(STEPS)
def test_turns_at_the_planner(steps: list[tuple[str, object]]) -> None:
    async def live() -> None:
        door = Door()
        for space in SPACES:
            for number in range(4):
                await door.come(rank_of(space, number))
        for name, what in steps:
            await getattr(door, name)(what)
        await door.close()

    asyncio.run(live())
