"""What the controller counts; see `metrics` for the rules of names and labels."""

from collections.abc import Mapping
from typing import Final

from dragoon.telemetry.metrics import Metrics, Spec, table_lines

SPECS: Final = (
    Spec("dragoon_build_info", "gauge", "Always 1; the version is in the label.", ("version",)),
    Spec("dragoon_leading", "gauge", "1 while this process is the controller that works."),
    Spec("dragoon_gangs", "gauge", "Gangs, by phase.", ("phase",)),
    Spec("dragoon_gangs_reserved", "gauge", "Gangs that wait and for which devices are kept."),
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
        "dragoon_kueue",
        "gauge",
        "1 for the state of Kueue's API: absent, Half (a kind is missing), Version (none that is "
        "known), or the version that is spoken.",
        ("state",),
    ),
    Spec(
        "dragoon_kueue_checks_total",
        "counter",
        "States of Workloads of Kueue that were written: Ready, Retry or Rejected.",
        ("state",),
    ),
    Spec(
        "dragoon_kueue_promises",
        "gauge",
        "Workloads of Kueue that may start and for which devices are kept.",
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

    def reserved(self, count: int) -> None:
        """For how many gangs devices are kept."""
        self._gauges["dragoon_gangs_reserved"].set(count)

    def planned(self, result: str, seconds: float) -> None:
        """The planner answered."""
        self._counters["dragoon_gang_plans_total"].labels(result).inc()
        self._histograms["dragoon_gang_plan_seconds"].observe(seconds)

    def given_twice(self) -> None:
        """A double allocation was seen."""
        self._counters["dragoon_given_twice_total"].inc()

    def checked(self, state: str) -> None:
        """A state of a Workload was written."""
        self._counters["dragoon_kueue_checks_total"].labels(state).inc()

    def promised(self, count: int) -> None:
        """So many Workloads have a promise."""
        self._gauges["dragoon_kueue_promises"].set(count)

    def kueue(self, state: str) -> None:
        """What there is of Kueue; no other state is told any more."""
        gauge = self._gauges["dragoon_kueue"]
        gauge.clear()
        gauge.labels(state).set(1)


def reference() -> str:
    """The controller's part of docs/metrics.md, made from the table."""
    lines = ["", "## Controller", "", "`dragoon controller` serves these:", ""]
    return "\n".join([*lines, *table_lines(SPECS)]) + "\n"
