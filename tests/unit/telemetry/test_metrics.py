from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from dragoon.telemetry import gang_metrics, metrics
from dragoon.telemetry.metrics import OK, SPECS, Metrics

DOCS = Path(__file__).parents[3] / "docs"


def scraped(found: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(found.text().decode())
        for sample in family.samples
    }


def test_each_event_shows_in_its_metric() -> None:
    found = Metrics("1.2.3")
    found.prepared(OK, 0.003)
    found.prepared("DeviceBusy", 41.0)
    found.unprepared(OK, 0.001)
    found.prepare_waited("DeviceBusy")
    found.node_repaired()
    found.node_problem()
    found.claims_prepared(4)
    found.slices_published(1)
    found.slice_written("create")
    found.slices_repaired()
    found.api_failed("ApiConflict")
    found.registered(True)
    found.gpus(working=7, lost=1)
    found.part_restarted("publisher")

    values = scraped(found)
    assert values["dragoon_build_info", (("version", "1.2.3"),)] == 1
    assert values["dragoon_prepare_total", (("result", "ok"),)] == 1
    assert values["dragoon_prepare_total", (("result", "DeviceBusy"),)] == 1
    assert values["dragoon_prepare_seconds_count", ()] == 2
    assert values["dragoon_prepare_seconds_bucket", (("le", "0.005"),)] == 1
    assert values["dragoon_unprepare_total", (("result", "ok"),)] == 1
    assert values["dragoon_unprepare_seconds_count", ()] == 1
    assert values["dragoon_prepare_waits_total", (("code", "DeviceBusy"),)] == 1
    assert values["dragoon_node_repairs_total", ()] == 1
    assert values["dragoon_node_problems_total", ()] == 1
    assert values["dragoon_claims_prepared", ()] == 4
    assert values["dragoon_slices_published", ()] == 1
    assert values["dragoon_slice_writes_total", (("verb", "create"),)] == 1
    assert values["dragoon_slice_repairs_total", ()] == 1
    assert values["dragoon_api_errors_total", (("code", "ApiConflict"),)] == 1
    assert values["dragoon_registered", ()] == 1
    assert values["dragoon_gpus", (("state", "working"),)] == 7
    assert values["dragoon_gpus", (("state", "lost"),)] == 1
    assert values["dragoon_part_restarts_total", (("part", "publisher"),)] == 1


def test_xids_that_cannot_be_are_counted_under_one_name() -> None:
    found = Metrics("1")
    for number in (0, 79, 255, 256, 1 << 40, (1 << 64) - 1):
        found.gpu_event("xid", number, 2)
    counted = {
        dict(labels)["number"]: value
        for (name, labels), value in scraped(found).items()
        if name == "dragoon_gpu_events_total"
    }
    assert counted == {"0": 2, "79": 2, "255": 2, "other": 6}


def test_two_processes_in_one_do_not_share_counts() -> None:
    one, other = Metrics("1"), Metrics("1")
    one.prepared(OK, 0.1)
    assert ("dragoon_prepare_total", (("result", "ok"),)) not in scraped(other)


def test_every_metric_of_the_table_is_scraped_under_its_name() -> None:
    text = Metrics("1").text().decode()
    for spec in SPECS:
        assert f"# TYPE {spec.name} {spec.kind}" in text


def test_the_documentation_lists_exactly_these_metrics() -> None:
    wanted = metrics.reference() + gang_metrics.reference()
    assert (DOCS / "metrics.md").read_text() == wanted, (
        "run: dragoon reference metrics > docs/metrics.md"
    )
