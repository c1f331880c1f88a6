"""What the audit of a node finds, told to users: conditions of claims, events, metrics, logs."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import structlog

from dragoon.api.claims import ClaimRef
from dragoon.api.device_status import ENFORCED
from dragoon.kube.events import WARNING, EventRecorder
from dragoon.kube.port import CLAIMS, PODS, Object, Resource
from dragoon.prepare.audit.judging import Cause, Finding
from dragoon.prepare.status.outcome import Mark, Marked
from dragoon.telemetry.metrics import Metrics

_log = structlog.get_logger(__name__)

_HINTS: Final = {
    Cause.WITHOUT_CLAIM: "give its container a ResourceClaim, or forbid the pod to see all GPUs",
    Cause.OTHERS_DEVICE: "end it: the claim's own processes share the GPU with it",
    Cause.NOT_LIMITED: "restart the pod; if it happens again, its image cannot be limited",
    Cause.OVER_LIMIT: "it uses memory in a way that its tier does not count: end it, or choose mig",
    Cause.OUTSIDE_PODS: "move it to another node, or keep its GPU from being published",
}


class AuditReporter:
    """Tells each finding once, and claims which of them concern them.

    mark is told the conditions that a claim has from now on.
    """

    def __init__(
        self, metrics: Metrics, recorder: EventRecorder, mark: Callable[[Marked], None]
    ) -> None:
        self._metrics = metrics
        self._recorder = recorder
        self._mark = mark
        self._told: frozenset[object] = frozenset()
        self._marked: dict[ClaimRef, tuple[Mark, ...]] = {}
        self._count(())

    def report(self, findings: tuple[Finding, ...]) -> None:
        """The findings that stand now (`prepare.audit.auditing.Report`)."""
        for one in findings:
            if one.key not in self._told:
                self._tell(one)
        self._told = frozenset(one.key for one in findings)
        self._count(findings)
        marks = _marks(findings)
        for claim in {**self._marked, **marks}:
            self._mark(Marked(claim, ENFORCED, marks.get(claim, ())))
        self._marked = marks

    def _tell(self, one: Finding) -> None:
        self._metrics.audit_found(one.cause)
        fields = {"cause": one.cause, "gpu": str(one.card), "pid": one.pid, "what": one.message}
        if one.cause is Cause.OUTSIDE_PODS:
            _log.info("a process of the host uses a GPU", **fields)
            return
        _log.warning("a process uses a GPU as no claim allows", pod=str(one.pod), **fields)
        regarding = _regarding(one)
        if regarding is not None:
            note = f"{one.message} ({_HINTS[one.cause]})"
            self._recorder.emit(
                regarding, reason=one.cause, note=note, action="Audit", type_=WARNING
            )

    def _count(self, findings: Iterable[Finding]) -> None:
        counts = Counter(one.cause for one in findings)
        self._metrics.audit_stands({cause: counts[cause] for cause in Cause})


def _marks(findings: Iterable[Finding]) -> dict[ClaimRef, tuple[Mark, ...]]:
    """The conditions by claim: of each card the first finding, for a condition has one reason."""
    found: dict[ClaimRef, dict[object, Mark]] = {}
    for one in findings:
        message = f"{one.message} ({_HINTS[one.cause]})"
        mark = Mark(ENFORCED, is_true=False, reason=one.cause, message=message, card=one.card)
        for claim in one.claims:
            found.setdefault(claim, {}).setdefault(one.card, mark)
    return {claim: tuple(by_card.values()) for claim, by_card in found.items()}


def _regarding(one: Finding) -> Object | None:
    """The pod that is at fault; without one that the API server knows, the first claim."""
    if one.pod is not None:
        return _object(PODS, one.pod.namespace, one.pod.name, one.pod.uid)
    if one.claims:
        claim = one.claims[0]
        return _object(CLAIMS, claim.namespace, claim.name, claim.uid)
    return None


def _object(resource: Resource, namespace: str, name: str, uid: str) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
    }
