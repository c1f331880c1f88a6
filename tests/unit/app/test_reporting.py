from structlog.testing import capture_logs

from dragoon.api.claims import ClaimRef
from dragoon.app.reporting import Reporter
from dragoon.errors import (
    ApiForbiddenError,
    ApiUnavailableError,
    DeviceBusyError,
    HardwareError,
)
from dragoon.gpu.model import Inventory, LostGpu, PciAddress
from dragoon.prepare.observing import (
    Counted,
    Event,
    Finished,
    Repaired,
    Reported,
    StatusWritten,
    Swept,
    Waiting,
)
from dragoon.telemetry.metrics import Metrics

CLAIM = ClaimRef("default", "a", "u1")


def told(*events: Event) -> tuple[list[dict[str, object]], str]:
    """The log lines and the metrics after these events."""
    metrics = Metrics("1")
    reporter = Reporter(metrics)
    with capture_logs() as lines:
        for event in events:
            reporter.observe(event)
    return [dict(line) for line in lines], metrics.text().decode()


def test_a_finished_call_is_logged_with_its_parts_and_counted() -> None:
    (line,), metrics = told(Finished("prepare", CLAIM, 0.5, None, {"api": 0.2, "effects": 0.1}))
    assert (line["event"], line["log_level"]) == ("prepared", "info")
    assert line["claim"] == "default/a (u1)"
    assert (line["seconds"], line["api_s"], line["effects_s"]) == (0.5, 0.2, 0.1)
    assert 'dragoon_prepare_total{result="ok"} 1.0' in metrics


def test_a_failed_call_is_logged_and_counted_by_its_code() -> None:
    (line,), metrics = told(Finished("unprepare", CLAIM, 1.0, DeviceBusyError("held", hint="")))
    assert (line["event"], line["log_level"]) == ("unprepare failed", "warning")
    assert (line["code"], line["error"]) == ("DeviceBusy", "held")
    assert 'dragoon_unprepare_total{result="DeviceBusy"} 1.0' in metrics


def test_waits_repairs_problems_and_counts_show_in_their_metrics() -> None:
    lines, metrics = told(
        Waiting(CLAIM, DeviceBusyError("held by b")),
        Repaired("u1", "spec"),
        Reported("u2", "why"),
        Swept(0.5),
        Counted(3),
    )
    assert [line["log_level"] for line in lines] == ["info", "warning", "error"]
    assert 'dragoon_prepare_waits_total{code="DeviceBusy"} 1.0' in metrics
    assert "dragoon_node_repairs_total 1.0" in metrics
    assert "dragoon_node_problems_total 1.0" in metrics
    assert "dragoon_claims_prepared 3.0" in metrics
    assert "dragoon_sweep_seconds_count 1.0" in metrics


def test_writes_of_status_are_counted_and_failures_are_logged_by_whether_they_may_pass() -> None:
    away, no_right = ApiUnavailableError("away"), ApiForbiddenError("no right")
    lines, metrics = told(*(StatusWritten(CLAIM, one) for one in (None, away, no_right)))
    assert [line["log_level"] for line in lines] == ["info", "warning"]
    assert "check the ServiceAccount" in str(lines[1]["error"])
    for result in ("ok", "ApiUnavailable", "ApiForbidden"):
        assert f'dragoon_claim_status_writes_total{{result="{result}"}} 1.0' in metrics


def test_hardware_is_told_with_the_reasons_of_lost_cards() -> None:
    metrics = Metrics("1")
    reporter = Reporter(metrics)
    lost = LostGpu(PciAddress.parse("0000:65:00.0"), "fell off the bus")
    with capture_logs() as lines:
        reporter.found(Inventory(lost=(lost,)))
        reporter.looked(HardwareError("no answer"))
        reporter.looked(None)
    assert lines[0]["lost"] == ["0000:65:00.0: fell off the bus"]
    assert [line["log_level"] for line in lines] == ["info", "error", "info"]
    assert 'dragoon_gpus{state="lost"} 1.0' in metrics.text().decode()
