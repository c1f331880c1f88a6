"""What the controller counts; see `metrics` for the rules of names and labels."""

from collections.abc import Mapping
from typing import Final

from dragoon.telemetry.metrics import Metrics, Spec, table_lines

SPECS: Final = (
    Spec("dragoon_build_info", "gauge", "Always 1; the version is in the label.", ("version",)),
    Spec("dragoon_leading", "gauge", "1 while this process is the controller that works."),
    Spec("dragoon_gangs", "gauge", "Gangs, by phase.", ("phase",)),
    Spec(
        "dragoon_gang_plans_total",
        "counter",
        "Answers of the planner: planned, NoRoom, Never, SearchStopped or Refused.",
        ("result",),
    ),
    Spec("dragoon_gang_plan_seconds", "histogram", "How long the planner took for one gang."),
    Spec(
        "dragoon_given_twice_total",
        "counter",
        "Devices that two claims were seen to hold beyond what there is, by whomever.",
    ),
    Spec(
        "dragoon_api_errors_total", "counter", "Failed calls of the API server, by code.", ("code",)
    ),
    Spec(
        "dragoon_part_restarts_total",
        "counter",
        "Times that a part of the process failed and was started again.",
        ("part",),
    ),
)


class GangMetrics(Metrics):
    """The collectors of the controller."""

    def __init__(self, version: str) -> None:
        super().__init__(version, SPECS)

    def leading(self, *, now: bool) -> None:
        """Whether this process leads now."""
        self._gauges["dragoon_leading"].set(now)

    def gangs(self, by_phase: Mapping[str, int]) -> None:
        """How many gangs there are in each phase; give all phases, zeros too."""
        for phase, count in by_phase.items():
            self._gauges["dragoon_gangs"].labels(phase).set(count)

    def planned(self, result: str, seconds: float) -> None:
        """The planner answered."""
        self._counters["dragoon_gang_plans_total"].labels(result).inc()
        self._histograms["dragoon_gang_plan_seconds"].observe(seconds)

    def given_twice(self) -> None:
        """A double allocation was seen."""
        self._counters["dragoon_given_twice_total"].inc()


def reference() -> str:
    """The controller's part of docs/metrics.md, made from the table."""
    lines = ["", "## Controller", "", "`dragoon controller` serves these:", ""]
    return "\n".join([*lines, *table_lines(SPECS)]) + "\n"
