"""What happens in the controller, told to events, metrics and logs."""

from collections.abc import Iterable
from typing import Any, Final

import structlog

from dragoon.allocator.contention import Contention
from dragoon.allocator.gang.model import GangPlan, NoRoom, Outcome
from dragoon.api import gang
from dragoon.api.gang import GangObject, Phase
from dragoon.errors import DragoonError
from dragoon.gang.discovering.checking import Fault
from dragoon.gang.kueue.apis import LATEST
from dragoon.gang.kueue.model import State
from dragoon.gang.protocol.actions import Note
from dragoon.gang.protocol.model import Ref
from dragoon.gang.records import PodRecord
from dragoon.kube.events import WARNING, EventRecorder
from dragoon.kube.port import Object
from dragoon.telemetry.gang_metrics import GangMetrics

_log = structlog.get_logger(__name__)

_ACTION: Final = "Placing"
_REMEMBERED: Final = 10_000


def by_phase(gangs: Iterable[GangObject]) -> dict[str, int]:
    """How many gangs are in each phase."""
    counts = dict.fromkeys(map(str, Phase), 0)
    for one in gangs:
        if one.status.phase is not None:
            counts[one.status.phase] += 1
    return counts


class GangReporter:
    """Callbacks for the parts of the controller."""

    def __init__(self, metrics: GangMetrics, events: EventRecorder) -> None:
        self._metrics = metrics
        self._events = events
        self._told: dict[tuple[str, str, str], None] = {}

    def planned(self, outcome: Outcome, seconds: float) -> None:
        """The planner answered."""
        self._metrics.planned(_result(outcome), seconds)

    def noted(self, gang_: GangObject, note: Note) -> None:
        """The protocol has something new to say of a gang."""
        self._emit(_reference(gang_), note.reason, note.message)

    def alone(self, note: Note) -> None:
        """There is something to say of a pod, or of no object: gang or not."""
        pod = note.pod
        if pod is None:
            _log.warning("note", reason=note.reason, message=note.message)
            return
        meta = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
        self._emit({"apiVersion": "v1", "kind": "Pod", "metadata": meta}, note.reason, note.message)

    def failed(self, error: DragoonError) -> None:
        """A write failed."""
        self._metrics.api_failed(error.code)

    def fault(self, fault: Fault) -> None:
        """Something is wrong with pods; said once for each pod and text."""
        for pod in fault.pods:
            self._emit(_pod(pod), fault.reason, fault.message)

    def checked(self, workload: Ref, state: str, message: str) -> None:
        """A state of a Workload of Kueue was written; why it is not Ready is told to people."""
        self._metrics.checked(state)
        if state != State.READY:
            meta = {"name": workload.name, "namespace": workload.namespace, "uid": workload.uid}
            regarding = {"apiVersion": LATEST.workloads.api_version, "kind": "Workload"}
            self._emit({**regarding, "metadata": meta}, f"NotPlaceable{state}", message)

    def promises(self, count: int) -> None:
        """So many Workloads are promised devices now."""
        self._metrics.promised(count)

    def kueue(self, state: str) -> None:
        """Whether Kueue is there, and the version that is spoken with it."""
        self._metrics.kueue(state)

    def given_twice(self, _found: Contention) -> None:
        """A double allocation was seen; the arbiter logs it."""
        self._metrics.given_twice()

    def _emit(self, regarding: Object, reason: str, message: str) -> None:
        key = (str(regarding["metadata"].get("uid")), reason, message)
        if key in self._told:
            return
        self._told[key] = None
        while len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
        self._events.emit(regarding, reason=reason, note=message, action=_ACTION, type_=WARNING)
        meta = regarding["metadata"]
        name = f"{meta.get('namespace')}/{meta['name']}"
        _log.warning("told", kind=regarding["kind"], name=name, reason=reason, message=message)


def _result(outcome: Outcome) -> str:
    match outcome:
        case GangPlan():
            return "planned"
        case NoRoom(never=True):
            return "Never"
    return type(outcome).__name__


def _reference(gang_: GangObject) -> dict[str, Any]:
    meta = {"name": gang_.name, "namespace": gang_.namespace, "uid": gang_.uid}
    return {"apiVersion": gang.API_VERSION, "kind": gang.KIND, "metadata": meta}


def _pod(pod: PodRecord) -> dict[str, Any]:
    meta = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
