"""Telling what the audit finds: each finding once, each claim what concerns it."""

import asyncio
from datetime import UTC, datetime

from dragoon.api.claims import ClaimRef
from dragoon.app.auditing import AuditReporter
from dragoon.gpu.model import PciAddress
from dragoon.kube.events import EventRecorder
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import EVENTS
from dragoon.prepare.audit.judging import Cause, Finding
from dragoon.prepare.audit.pods import PodRef
from dragoon.prepare.status.outcome import Marked
from dragoon.telemetry.metrics import Metrics

CARD = PciAddress(0, 0x10, 0)
OTHER = PciAddress(0, 0x11, 0)
CLAIM = ClaimRef("team-a", "c", "c-uid")
POD = PodRef("team-a", "p", "p-uid")


class Desk:
    def __init__(self) -> None:
        self.api = MemoryApi()
        self.metrics = Metrics("1")
        self.marks: list[Marked] = []
        self.recorder = EventRecorder(
            self.api, "test", "node", now=lambda: datetime(2026, 1, 1, tzinfo=UTC)
        )
        self.reporter = AuditReporter(self.metrics, self.recorder, self.marks.append)

    async def events(self) -> list[tuple[str, str]]:
        """(kind, reason) of what has been written."""
        writing = asyncio.create_task(self.recorder.run())
        await self.recorder.flush()
        writing.cancel()
        found = (await self.api.list(EVENTS)).items
        return [(one["regarding"]["kind"], one["reason"]) for one in found]

    def metric(self, name: str, cause: Cause) -> float | None:
        return self.metrics.registry.get_sample_value(name, {"cause": cause})


def finding(cause: Cause = Cause.OVER_LIMIT, card: PciAddress = CARD, **fields: object) -> Finding:
    values = {"pod_uid": "p-uid", "claims": (CLAIM,), "pod": POD, "message": "too much"}
    return Finding(cause, card, **(values | fields))  # type: ignore[arg-type]


async def test_a_finding_is_told_once_while_it_stands_and_again_when_it_comes_back() -> None:
    desk = Desk()
    for _ in range(3):
        desk.reporter.report((finding(),))
    assert await desk.events() == [("Pod", "MemoryOverLimit")]
    assert desk.metric("dragoon_audit_findings_total", Cause.OVER_LIMIT) == 1
    assert desk.metric("dragoon_audit_standing", Cause.OVER_LIMIT) == 1
    desk.reporter.report(())
    assert desk.metric("dragoon_audit_standing", Cause.OVER_LIMIT) == 0
    desk.reporter.report((finding(),))
    assert desk.metric("dragoon_audit_findings_total", Cause.OVER_LIMIT) == 2


def test_a_claim_is_marked_while_something_concerns_it_and_then_no_more() -> None:
    desk = Desk()
    desk.reporter.report((finding(), finding(Cause.NOT_LIMITED), finding(card=OTHER)))
    (marked,) = desk.marks
    assert (marked.claim, marked.type) == (CLAIM, "Enforced")
    assert [(one.card, one.reason, one.is_true) for one in marked.marks] == [
        (CARD, "MemoryOverLimit", False),
        (OTHER, "MemoryOverLimit", False),
    ]
    assert marked.marks[0].message.startswith("too much (")
    desk.reporter.report(())
    assert desk.marks[1] == Marked(CLAIM, "Enforced", ())
    desk.reporter.report(())
    assert len(desk.marks) == 2


async def test_what_concerns_nobody_s_claim_is_told_of_its_pod_alone() -> None:
    desk = Desk()
    desk.reporter.report((finding(Cause.WITHOUT_CLAIM, claims=()),))
    assert desk.marks == []
    assert await desk.events() == [("Pod", "ProcessWithoutClaim")]


async def test_a_pod_that_nobody_knows_is_told_of_the_claim() -> None:
    desk = Desk()
    desk.reporter.report((finding(Cause.OTHERS_DEVICE, pod=None),))
    assert await desk.events() == [("ResourceClaim", "ProcessOnOthersDevice")]


async def test_processes_of_the_host_are_counted_and_make_no_event() -> None:
    desk = Desk()
    host = finding(Cause.OUTSIDE_PODS, pod_uid="", pod=None, claims=(), pid=7, started=1)
    desk.reporter.report((host,))
    desk.reporter.report((host, finding(Cause.WITHOUT_CLAIM, claims=(), pod=None)))
    assert await desk.events() == []
    assert desk.metric("dragoon_audit_findings_total", Cause.OUTSIDE_PODS) == 1


def test_every_cause_has_a_number_from_the_start() -> None:
    desk = Desk()
    assert [desk.metric("dragoon_audit_standing", cause) for cause in Cause] == [0] * len(Cause)
