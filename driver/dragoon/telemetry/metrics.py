"""What is counted: one table, from which the collectors and docs/metrics.md are made.

Labels are codes and verbs from fixed sets, never names of pods or claims: the number of series
must not grow with the cluster.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

OK: Final = "ok"
"""The result label of a success; a failure has the error's code."""

# NVIDIA's catalogue of XIDs ends at 172; a sick driver may deliver any number of 64 bits.
_LAST_XID: Final = 255

# Prepare is milliseconds, or a wait of up to 45 s for another claim (the kubelet's deadline).
_CALL_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 45.0)


@dataclass(frozen=True, slots=True)
class Spec:
    """One metric: its name as scraped, what it means, and its labels."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    text: str
    labels: tuple[str, ...] = ()


SPECS: Final = (
    Spec("dragoon_build_info", "gauge", "Always 1; the version is in the label.", ("version",)),
    Spec("dragoon_prepare_total", "counter", "Claims prepared, by result code.", ("result",)),
    Spec(
        "dragoon_prepare_seconds", "histogram", "How long a claim's prepare took, waits included."
    ),
    Spec("dragoon_unprepare_total", "counter", "Claims unprepared, by result code.", ("result",)),
    Spec("dragoon_unprepare_seconds", "histogram", "How long a claim's unprepare took."),
    Spec(
        "dragoon_prepare_waits_total",
        "counter",
        "Times that a prepare waited inside its call, by the code of the reason: DeviceBusy is "
        "another claim that still holds the GPU, others are failures that may pass.",
        ("code",),
    ),
    Spec(
        "dragoon_sweep_seconds",
        "histogram",
        "How long comparing journal, node and API server took; once a minute. What it found is in "
        "dragoon_node_repairs_total and dragoon_node_problems_total.",
    ),
    Spec(
        "dragoon_node_repairs_total",
        "counter",
        "Things on the node that were not as the journal says and were put right.",
    ),
    Spec(
        "dragoon_node_problems_total",
        "counter",
        "Things on the node that are wrong and are left for a person; the log says which.",
    ),
    Spec(
        "dragoon_audit_findings_total",
        "counter",
        "Containers and host processes found on GPUs as no claim allows, by cause.",
        ("cause",),
    ),
    Spec("dragoon_audit_standing", "gauge", "Findings of the audit now, by cause.", ("cause",)),
    Spec(
        "dragoon_claim_status_writes_total",
        "counter",
        "Writes of claims' status, by result code; those that fail are tried again.",
        ("result",),
    ),
    Spec("dragoon_claims_prepared", "gauge", "Claims whose devices are in use on this node now."),
    Spec("dragoon_slices_published", "gauge", "ResourceSlices this node has in the API server."),
    Spec("dragoon_slice_writes_total", "counter", "Writes of ResourceSlices, by verb.", ("verb",)),
    Spec(
        "dragoon_slice_repairs_total",
        "counter",
        "Times that slices changed by others were put back.",
    ),
    Spec(
        "dragoon_api_errors_total", "counter", "Failed calls of the API server, by code.", ("code",)
    ),
    Spec("dragoon_registered", "gauge", "1 while the kubelet has this process registered."),
    Spec("dragoon_gpus", "gauge", "GPUs of this node, by state (working, lost).", ("state",)),
    Spec(
        "dragoon_gpu_events_total",
        "counter",
        "Events that GPUs raised, by kind; of XIDs also the number (`other` above 255), else 0.",
        ("kind", "number"),
    ),
    Spec(
        "dragoon_gpu_events_unknown_total",
        "counter",
        "Events of GPUs that this node does not know.",
    ),
    Spec(
        "dragoon_gpu_verdicts",
        "gauge",
        "GPUs of which this is said now, by kind; docs/health.md says which kinds taint.",
        ("kind",),
    ),
    Spec(
        "dragoon_health_streams",
        "gauge",
        "Open streams on which the kubelet follows the health of devices.",
    ),
    Spec(
        "dragoon_part_restarts_total",
        "counter",
        "Times that a part of the process failed and was started again.",
        ("part",),
    ),
)


class Metrics:
    """The collectors of one process, in a registry of its own. Safe to use from any thread."""

    def __init__(self, version: str, specs: Sequence[Spec] = SPECS) -> None:
        self.registry = CollectorRegistry()
        made = {spec.name: self._make(spec) for spec in specs}
        self._counters = {name: m for name, m in made.items() if isinstance(m, Counter)}
        self._gauges = {name: m for name, m in made.items() if isinstance(m, Gauge)}
        self._histograms = {name: m for name, m in made.items() if isinstance(m, Histogram)}
        self._gauges["dragoon_build_info"].labels(version).set(1)

    def prepared(self, result: str, seconds: float) -> None:
        """One claim's prepare ended; result is `ok` or an error code."""
        self._counters["dragoon_prepare_total"].labels(result).inc()
        self._histograms["dragoon_prepare_seconds"].observe(seconds)

    def unprepared(self, result: str, seconds: float) -> None:
        """One claim's unprepare ended; result is `ok` or an error code."""
        self._counters["dragoon_unprepare_total"].labels(result).inc()
        self._histograms["dragoon_unprepare_seconds"].observe(seconds)

    def prepare_waited(self, code: str) -> None:
        """A prepare waits inside its call; code is the reason's."""
        self._counters["dragoon_prepare_waits_total"].labels(code).inc()

    def swept(self, seconds: float) -> None:
        """Journal, node and API server were compared once."""
        self._histograms["dragoon_sweep_seconds"].observe(seconds)

    def node_repaired(self) -> None:
        """Something on the node was not as the journal says and was put right."""
        self._counters["dragoon_node_repairs_total"].inc()

    def node_problem(self) -> None:
        """Something on the node is wrong and is left for a person."""
        self._counters["dragoon_node_problems_total"].inc()

    def audit_found(self, cause: str) -> None:
        """The audit found something that it had not found before."""
        self._counters["dragoon_audit_findings_total"].labels(cause).inc()

    def audit_stands(self, counts: Mapping[str, int]) -> None:
        """What the audit finds now: a number for every cause, 0 included."""
        for cause, count in counts.items():
            self._gauges["dragoon_audit_standing"].labels(cause).set(count)

    def claim_status_written(self, result: str) -> None:
        """One write of a claim's status ended; result is `ok` or an error code."""
        self._counters["dragoon_claim_status_writes_total"].labels(result).inc()

    def claims_prepared(self, count: int) -> None:
        """How many claims hold devices on this node now."""
        self._gauges["dragoon_claims_prepared"].set(count)

    def slices_published(self, count: int) -> None:
        """How many ResourceSlices of this node stand in the API server."""
        self._gauges["dragoon_slices_published"].set(count)

    def slice_written(self, verb: str) -> None:
        """One ResourceSlice was written: create, update or delete."""
        self._counters["dragoon_slice_writes_total"].labels(verb).inc()

    def slices_repaired(self) -> None:
        """Slices that somebody else changed or deleted were put back."""
        self._counters["dragoon_slice_repairs_total"].inc()

    def api_failed(self, code: str) -> None:
        """A call of the API server failed with this error code."""
        self._counters["dragoon_api_errors_total"].labels(code).inc()

    def registered(self, now: bool) -> None:  # noqa: FBT001 - reads as registered(True)
        """Whether the kubelet has this process registered now."""
        self._gauges["dragoon_registered"].set(now)

    def gpus(self, *, working: int, lost: int) -> None:
        """What the last look at the hardware found."""
        self._gauges["dragoon_gpus"].labels("working").set(working)
        self._gauges["dragoon_gpus"].labels("lost").set(lost)

    def gpu_event(self, kind: str, number: int, times: int) -> None:
        """A GPU raised an event; number is that of an XID, else 0."""
        label = str(number) if 0 <= number <= _LAST_XID else "other"
        self._counters["dragoon_gpu_events_total"].labels(kind, label).inc(times)

    def gpu_event_unknown(self, times: int) -> None:
        """An event of a GPU that nobody knows."""
        self._counters["dragoon_gpu_events_unknown_total"].inc(times)

    def gpu_verdicts(self, counts: Mapping[str, int]) -> None:
        """How many GPUs have a verdict now: a number for every kind, 0 included."""
        for kind, count in counts.items():
            self._gauges["dragoon_gpu_verdicts"].labels(kind).set(count)

    def health_streams(self, count: Callable[[], int]) -> None:
        """How many streams are open, asked for at each scrape."""
        self._gauges["dragoon_health_streams"].set_function(count)

    def part_restarted(self, part: str) -> None:
        """A part of the process failed and is started again."""
        self._counters["dragoon_part_restarts_total"].labels(part).inc()

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return prometheus_client.generate_latest(self.registry)

    def _make(self, spec: Spec) -> Counter | Gauge | Histogram:
        if spec.kind == "counter":
            return Counter(spec.name, spec.text, spec.labels, registry=self.registry)
        if spec.kind == "gauge":
            return Gauge(spec.name, spec.text, spec.labels, registry=self.registry)
        return Histogram(
            spec.name, spec.text, spec.labels, registry=self.registry, buckets=_CALL_SECONDS
        )


def table_lines(specs: Sequence[Spec]) -> list[str]:
    """Metrics as a Markdown table."""
    return [
        "| metric | type | labels | meaning |",
        "|---|---|---|---|",
        *(
            f"| `{spec.name}` | {spec.kind} | "
            f"{', '.join(f'`{name}`' for name in spec.labels) or 'none'} | {spec.text} |"
            for spec in specs
        ),
    ]


def reference(specs: Sequence[Spec] = SPECS) -> str:
    """The plugin's part of docs/metrics.md, made from the table."""
    lines = [
        "# Metrics",
        "",
        "`dragoon plugin` serves these at `/metrics` (see `listen` in configuration.md).",
        "Labels are codes from fixed sets. No metric names a pod or a claim: the number of series",
        "does not grow with the cluster. Which claim has which device is in the API",
        "(`kubectl get resourceclaims`) and in the logs.",
        "",
        *table_lines(specs),
    ]
    return "\n".join(lines) + "\n"
