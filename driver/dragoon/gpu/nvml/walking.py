"""One question to every card, one card after the other: one that hangs costs only itself.

Each question has a thread of its own, on which it may hang for ever; no card is asked again before
that. But the driver has locks of its own: what one card holds may keep all of them from answering,
and then nothing is known of any. So a card counts as silent only while another one answers what it
was asked after that. Where none does, the walk goes on until one answers: it is the driver that
hangs, and whoever waits for the walk says so.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Generic, TypeVar

from dragoon.gpu.model import PciAddress
from dragoon.gpu.nvml.library import Library

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds. card: for one card; one that nobody keeps awake sets itself up first.

    grace: for a card that is late, since the driver was seen to work: what it had to wait for may
    just have been let go. Together less than commands wait for the driver, and than the watch of a
    plugin waits before it tells that all of it hangs.
    """

    card: float = 12.0
    grace: float = 3.0


@dataclass(frozen=True, slots=True)
class Standing:
    """How it stands with a card that was asked. hangs: it has not answered yet.

    well: what it answered proves that the driver works. stalls: how many calls of this walk were
    late when this one began.
    """

    hangs: bool
    well: bool
    stalls: int


@dataclass(frozen=True, slots=True)
class Ask:
    """The next card, by its number."""

    index: int


class Wait:
    """Nobody is left who could be asked: the driver hangs."""


class Done:
    """Who hangs now hangs by itself."""


def decide(cards: Iterable[int], asked: Mapping[int, Standing], stalls: int) -> Ask | Wait | Done:
    """What a walk over the cards does next. asked: in this walk, and whoever hangs since before."""
    well = [index for index, one in asked.items() if one.well and not one.hangs]
    unclear = any(one.hangs for one in asked.values()) and not any(
        asked[index].stalls == stalls for index in well
    )
    if unclear and well:
        return Ask(well[0])  # once more, before others follow into what may be a lock
    missing = next((index for index in cards if index not in asked), None)
    if missing is not None:
        return Ask(missing)
    return Wait() if unclear else Done()


@dataclass(frozen=True, slots=True)
class Walked(Generic[_T]):
    """Answers in the order of the cards, and where those are that have not answered in time.

    None stands for a silent card that answered nobody since the library was opened.
    """

    answers: tuple[_T, ...]
    silent: tuple[PciAddress | None, ...]


class _Call(Generic[_T]):
    """A question to one card in one walk. The lock of the walk guards it."""

    def __init__(self, lap: int, stalls: int) -> None:
        self.lap = lap
        self.stalls = stalls
        self.ended = False
        self.answer: _T | None = None
        self.error: Exception | None = None


class Walk(Generic[_T]):
    """Asks all cards the same, again and again. Thread-safe; callers take turns.

    ask: puts the question to the card with that NVML index; None: it said nothing. place: where a
    card is whose answer shows that it and the driver work, None for other answers.
    """

    def __init__(
        self,
        library: Library,
        ask: Callable[[int], _T | None],
        place: Callable[[_T], PciAddress | None],
        patience: Patience,
    ) -> None:
        self._library = library
        self._ask = ask
        self._place = place
        self._patience = patience
        self._turn = threading.Lock()
        self._changed = threading.Condition()
        self._calls: dict[int, _Call[_T]] = {}
        self._lap = 0

    @property
    def hangs(self) -> bool:
        """Whether a card still has not answered."""
        with self._changed:
            return bool(self._hanging())

    @property
    def why_silent(self) -> str:
        """For messages; always the same, so that a card that stays silent is no news."""
        return f"has not answered for {self._patience.card:g} s"

    def __call__(self, count: int) -> Walked[_T]:
        """Asks that many cards; only while the library is held. Raises what `ask` raises."""
        with self._turn, self._changed:
            self._begin()
            stalls = 0
            while True:
                step = decide(range(count), self._standings(), stalls)
                if isinstance(step, Ask):
                    stalls += not self._in_time(step.index, stalls)
                    continue
                grace = self._patience.grace if stalls else 0.0
                if not self._has_one_come_back(None if isinstance(step, Wait) else grace):
                    return self._walked()

    def _begin(self) -> None:
        """A call that hangs keeps the library open: until then numbers mean the same cards."""
        self._lap += 1
        self._calls = {index: self._calls[index] for index in self._hanging()}

    def _hanging(self) -> tuple[int, ...]:
        return tuple(index for index, call in self._calls.items() if not call.ended)

    def _standings(self) -> dict[int, Standing]:
        """A late answer to an earlier walk is none: it is about a moment that has passed."""
        return {
            index: Standing(not call.ended, self._place_of(call) is not None, call.stalls)
            for index, call in self._calls.items()
            if call.lap == self._lap or not call.ended
        }

    def _place_of(self, call: _Call[_T]) -> PciAddress | None:
        return None if call.answer is None else self._place(call.answer)

    def _has_one_come_back(self, seconds: float | None) -> bool:
        """Waits for one of those that hang."""
        hanging = self._hanging()
        return bool(hanging) and self._changed.wait_for(lambda: self._hanging() != hanging, seconds)

    def _in_time(self, index: int, stalls: int) -> bool:
        call = _Call[_T](self._lap, stalls)
        thread = threading.Thread(
            target=self._run, args=(index, call), name="gpu-card", daemon=True
        )
        thread.start()
        self._calls[index] = call
        return self._changed.wait_for(lambda: call.ended, self._patience.card)

    def _run(self, index: int, call: _Call[_T]) -> None:
        """Holds the library by itself: nobody may shut it under a call, however long that takes."""
        with ExitStack() as leaving:
            leaving.enter_context(self._library.held())
            answer, failure = None, None
            try:
                answer = self._ask(index)
            except Exception as error:  # noqa: BLE001 - handed over, whatever it is
                failure = error
            with self._changed:
                leaving.close()  # who hears that it ended may count on that
                call.answer, call.error, call.ended = answer, failure, True
                self._changed.notify_all()

    def _walked(self) -> Walked[_T]:
        places = self._library.places
        ended = {index: call for index, call in sorted(self._calls.items()) if call.ended}
        for index, call in ended.items():
            if call.error is not None:
                raise call.error
            if place := self._place_of(call):
                places[index] = place
        answers = (call.answer for call in ended.values())
        return Walked(
            tuple(answer for answer in answers if answer is not None),
            tuple(map(places.get, sorted(self._hanging()))),
        )
