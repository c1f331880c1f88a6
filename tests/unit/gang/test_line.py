"""Who gives way to whom when something becomes free."""

from dragoon.gang.line import Line
from dragoon.gang.protocol.model import Proposal
from dragoon.gang.remembering import Memory, Pace
from dragoon.gang.waiting.freed import FLEET
from dragoon.gang.waiting.ranking import Rank
from dragoon.prepare.clock import ManualClock

LOW = Rank(0, "2026-01-01T00:00:00Z", "team", "low")
HIGH = Rank(-10, "2026-01-01T00:00:01Z", "team", "high")


class Scene:
    """Two gangs that were found to have no room at tick 0."""

    def __init__(self) -> None:
        self.clock = ManualClock(100.0)
        refused = Proposal(frozenset(), refusal="no room")
        self.low = Memory(proposal=refused, rank=LOW)
        self.high = Memory(proposal=refused, rank=HIGH)
        memories = {"low": self.low, "high": self.high}
        self.line = Line(memories, pace=Pace(yields=3.0, slowest=15.0), clock=self.clock.now)

    def ahead(self) -> tuple[str, ...]:
        return self.line.ahead_of(self.low, LOW)

    def high_is_planned_in_vain(self) -> None:
        """As the planner's door does it."""
        self.high.woken, self.high.woken_at = False, None
        self.high.asked_at = self.clock.now()


def test_who_is_woken_is_looked_at_once_until_it_has_been_planned() -> None:
    scene = Scene()
    assert scene.line.room(FLEET) == {"low", "high"}
    assert scene.line.room(FLEET) == frozenset()
    scene.high_is_planned_in_vain()
    assert scene.line.room(FLEET) == {"high"}
    # While the planner thinks, its answer is waited for: whoever asked it asks again by itself.
    scene.low.woken, scene.low.proposal = False, None
    assert scene.line.room(FLEET) == frozenset()
    assert scene.low.woken


def test_the_better_one_is_planned_first() -> None:
    scene = Scene()
    scene.line.room(FLEET)
    assert scene.ahead() == ("high",)
    scene.clock.advance(0.1)
    scene.high_is_planned_in_vain()
    assert scene.ahead() == ()


def test_devices_that_come_one_by_one_are_the_better_ones_too() -> None:
    scene = Scene()
    scene.line.room(FLEET)
    scene.clock.advance(0.1)
    scene.high_is_planned_in_vain()
    scene.clock.advance(0.1)
    scene.line.room(FLEET)
    assert scene.ahead() == ("high",)


def test_a_stream_of_devices_holds_nobody_back_for_long() -> None:
    scene = Scene()
    scene.line.room(FLEET)
    for _ in range(31):
        scene.high_is_planned_in_vain()
        scene.clock.advance(0.1)
        scene.line.room(FLEET)
    assert scene.ahead() == ()


def test_of_another_namespace_with_very_many_one_is_enough() -> None:
    refused = Proposal(frozenset(), refusal="no room")
    ranks = [Rank(0, "2026-01-01T00:00:00Z", "many", f"g{number}") for number in range(500)]
    memories = {one.name: Memory(proposal=refused, rank=one, woken=True) for one in ranks}
    memories["urgent"] = Memory(proposal=refused, rank=Rank(-1, "", "many", "urgent"), woken=True)
    mine = Rank(0, "2026-01-02T00:00:00Z", "one", "easy")
    memory = memories["easy"] = Memory(rank=mine)
    clock = ManualClock(100.0)
    line = Line(memories, pace=Pace(yields=3.0, slowest=15.0), clock=clock.now)
    assert len(line.ahead_of(memory, mine)) == 501
    memories["g7"].woken, memories["g7"].asked_at = False, clock.now()
    assert line.ahead_of(memory, mine) == ("urgent",)
    memories["urgent"].woken, memories["urgent"].asked_at = False, clock.now()
    assert line.ahead_of(memory, mine) == ()
    assert len(line.ahead_of(Memory(), mine._replace(namespace="many"))) == 499
