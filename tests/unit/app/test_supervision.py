import asyncio
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from dragoon.app.supervision import Clock, Part, keep_running
from dragoon.errors import ApiUnavailableError
from dragoon.kube.backoff import Backoff
from dragoon.telemetry.metrics import Metrics


class Enough(BaseException):
    """Ends a supervision that would go on for ever."""


@dataclass
class Scripted:
    """A part with a script of outcomes, and a clock that only its runs and sleeps move."""

    outcomes: list[tuple[float, Exception | None]]
    time: float = 0.0
    slept: list[float] = field(default_factory=list)

    async def run(self) -> None:
        if not self.outcomes:
            raise Enough
        seconds, outcome = self.outcomes.pop(0)
        self.time += seconds
        if outcome is not None:
            raise outcome

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def clock(self) -> Clock:
        return Clock(now=lambda: self.time, sleep=self.sleep)


async def supervise(*outcomes: tuple[float, Exception | None]) -> tuple[Scripted, Metrics]:
    script = Scripted(list(outcomes))
    metrics = Metrics("1")
    with pytest.raises(Enough):
        await keep_running(
            Part("publisher", script.run),
            metrics,
            backoff=Backoff(first=0.5, limit=30, rng=lambda: 1.0),
            clock=script.clock(),
        )
    return script, metrics


async def test_a_part_that_fails_is_started_again_with_growing_waits() -> None:
    failures = [(0.0, ApiUnavailableError("away"))] * 8
    script, metrics = await supervise(*failures)
    assert script.slept == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert b'dragoon_part_restarts_total{part="publisher"} 8.0' in metrics.text()


async def test_the_waits_start_over_after_a_good_while() -> None:
    away = ApiUnavailableError("away")
    script, _ = await supervise((0, away), (0, away), (61, away), (0, away))
    assert script.slept == [0.5, 1, 0.5, 1]


async def test_a_part_that_ends_by_itself_is_started_again() -> None:
    script, _ = await supervise((0, None), (0, None))
    assert script.slept == [0.5, 1]


async def test_an_error_of_ours_is_one_line_and_a_bug_has_its_traceback() -> None:
    with capture_logs() as lines:
        await supervise((0, ApiUnavailableError("away")), (0, ZeroDivisionError("bug")))
    ours, bug = lines
    assert (ours["log_level"], ours["code"]) == ("warning", "ApiUnavailable")
    assert "exc_info" not in ours
    assert (bug["log_level"], bug["exc_info"]) == ("error", True)


async def test_cancellation_ends_a_part() -> None:
    task = asyncio.create_task(keep_running(Part("idle", asyncio.Event().wait), Metrics("1")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
