"""Backfill on a simulated timeline: it never delays the gang for which devices are kept."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import event, given, settings
from hypothesis import strategies as st

from dragoon.gang.records import PodRecord, pod_record
from dragoon.gang.waiting.backfilling import MARGIN, end_if_started, may_use
from dragoon.gang.waiting.durations import ANNOTATION_DURATION, ends, latest

START = datetime(2026, 1, 1, tzinfo=UTC)
_SLOWEST = int(MARGIN.total_seconds())


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


@dataclass
class Small:
    """A pod with some devices. arrives, delay, works: seconds; said: what it says, 0 for nothing.

    delay: from its plan until it has started. It works no longer than it said.
    """

    name: str
    devices: int
    arrives: int
    said: int
    works: int
    delay: int
    planned: int | None = None

    @property
    def is_over_at(self) -> int:
        assert self.planned is not None
        return self.planned + self.delay + self.works

    def record(self, now: int) -> PodRecord:
        started = self.planned is not None and now >= self.planned + self.delay
        meta: dict[str, object] = {"name": self.name, "namespace": "team", "uid": self.name}
        if self.said:
            meta["annotations"] = {ANNOTATION_DURATION: str(self.said)}
        status = {"phase": "Running"} if started else {"phase": "Pending"}
        if started and self.planned is not None:
            status["startTime"] = at(self.planned + self.delay).isoformat()
        spec = {"containers": [], "resourceClaims": [{"name": "gpu"}]}
        return pod_record({"metadata": meta, "spec": spec, "status": status})


@dataclass
class Timeline:
    """Devices that are all kept for one gang; who holds some of them goes on until it ends."""

    devices: int
    holders: list[Small]
    queue: list[Small]
    backfilled: list[Small] = field(default_factory=list)

    def estimate(self, now: int) -> datetime | None:
        held = (ends(one.record(now), {}, at(now)) for one in self.holders)
        return latest(held)

    def moments(self) -> list[int]:
        """When anything can happen: arrivals, starts and ends."""
        found = {one.arrives for one in self.queue}
        for one in self.holders:
            if one.planned is not None:
                found |= {one.planned + one.delay, one.is_over_at}
        return sorted(found)

    def served_at(self, *, backfill: bool) -> int:
        """When nobody holds anything any more: the gang starts."""
        now = 0
        while True:
            self.holders = [one for one in self.holders if one.is_over_at > now]
            if not self.holders:
                return now
            if backfill:
                self._backfill(now)
            now = next(moment for moment in self.moments() if moment > now)

    def _backfill(self, now: int) -> None:
        for one in [each for each in self.queue if each.arrives <= now]:
            free = self.devices - sum(each.devices for each in self.holders)
            end = end_if_started([one.record(now)], {}, at(now))
            if one.devices <= free and may_use(end, self.estimate(now)):
                one.planned = now
                self.queue.remove(one)
                self.holders.append(one)
                self.backfilled.append(one)


@st.composite
def timelines(draw: st.DrawFn, *, exact: bool) -> Timeline:
    seconds = st.integers(1, 2000)

    def small(name: str, most: int, *, running: bool) -> Small:
        said = draw(seconds if running else st.one_of(st.just(0), seconds))
        works = said if exact and said else draw(st.integers(1, said or 2000))
        size, delay = draw(st.integers(1, most)), draw(st.integers(0, _SLOWEST))
        arrives = 0 if running else draw(st.integers(0, 2000))
        planned = -delay if running else None
        return Small(name, size, arrives, said, works, delay, planned)

    devices = draw(st.integers(2, 8))
    holders: list[Small] = []
    while not holders or (sum(one.devices for one in holders) < devices and draw(st.booleans())):
        left = devices - sum(one.devices for one in holders)
        holders.append(small(f"h{len(holders)}", left, running=True))
    queue = [small(f"q{index}", devices, running=False) for index in range(draw(st.integers(0, 8)))]
    return Timeline(devices, holders, queue)


@settings(max_examples=150, deadline=None)
@given(timelines(exact=False))
def test_the_gang_starts_no_later_than_was_estimated_when_its_devices_were_kept(
    line: Timeline,
) -> None:
    estimate = line.estimate(0)
    assert estimate is not None
    served = line.served_at(backfill=True)
    event(f"backfilled: {bool(line.backfilled)}")
    assert at(served) <= estimate


@settings(max_examples=100, deadline=None)
@given(timelines(exact=True))
def test_where_pods_work_as_long_as_they_said_backfill_costs_the_gang_nothing(
    line: Timeline,
) -> None:
    without = Timeline(line.devices, list(line.holders), []).served_at(backfill=False)
    assert line.served_at(backfill=True) == without


def test_the_timeline_notices_a_rule_that_lets_in_too_much() -> None:
    """Without the margin for the start a pod ends too late here: the check can fail."""
    holder = Small("h", 1, 0, said=1000, works=1000, delay=0, planned=0)
    late = Small("q", 1, 0, said=990, works=990, delay=_SLOWEST, planned=None)
    line = Timeline(2, [holder], [late])
    assert end_if_started([late.record(0)], {}, at(0)) == at(990) + MARGIN
    late.planned = 0
    line.holders.append(late)
    assert line.served_at(backfill=False) == 990 + _SLOWEST > 1000


def test_something_is_backfilled_at_all() -> None:
    holder = Small("h", 1, 0, said=1000, works=1000, delay=0, planned=0)
    short = Small("q", 1, 0, said=900, works=900, delay=_SLOWEST, planned=None)
    silent = Small("s", 1, 0, said=0, works=10, delay=0, planned=None)
    line = Timeline(3, [holder], [silent, short])
    assert line.served_at(backfill=True) == 1000
    assert [one.name for one in line.backfilled] == ["q"]
