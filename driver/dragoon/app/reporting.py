"""What happens in the node process, told to metrics and logs. Some calls come from threads."""

from collections.abc import Sequence

import structlog

from dragoon.errors import DragoonError
from dragoon.gpu.model import Inventory
from dragoon.prepare.observing import (
    Counted,
    Event,
    Finished,
    Ignored,
    Observer,
    Repaired,
    Reported,
    StatusWritten,
    Swept,
    Waiting,
)
from dragoon.telemetry.metrics import OK, Metrics

_log = structlog.get_logger(__name__)


class Reporter:
    """Callbacks for the parts that report without knowing to whom."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def observe(self, event: Event) -> None:
        """An event of prepare."""
        match event:
            case Finished():
                self._finished(event)
            case Waiting(claim, reason):
                self._metrics.prepare_waited(reason.code)
                _log.info("waiting", claim=str(claim), code=reason.code, reason=str(reason))
            case Repaired(uid, what):
                self._metrics.node_repaired()
                _log.warning("repaired", claim_uid=uid, what=what)
            case Reported(uid, problem):
                self._metrics.node_problem()
                _log.error("problem on this node", claim_uid=uid, problem=problem)
            case Ignored(claim, what):
                _log.warning("no effect", claim=str(claim), what=what)
            case StatusWritten(claim, error):
                self._metrics.claim_status_written(error.code if error else OK)
                if error is not None:
                    level = _log.info if error.retryable else _log.warning
                    level("status of a claim not written", claim=str(claim), error=str(error))
            case Swept(seconds):
                self._metrics.swept(seconds)
            case Counted(prepared):
                self._metrics.claims_prepared(prepared)

    def found(self, inventory: Inventory) -> None:
        """The hardware is not what it was before."""
        self._metrics.gpus(working=len(inventory.gpus), lost=len(inventory.lost))
        _log.info(
            "GPUs found",
            working=len(inventory.gpus),
            lost=[f"{card.address}: {card.reason}" for card in inventory.lost],
            driver_version=inventory.driver_version,
            simulated=inventory.simulated,
        )

    def looked(self, error: DragoonError | None) -> None:
        """Looks at the hardware began to fail, fail in another way, or work again."""
        if error is None:
            _log.info("the GPU driver answers again")
        else:
            _log.error("looking at the GPUs failed", code=error.code, error=str(error))

    def _finished(self, event: Finished) -> None:
        result = event.error.code if event.error else OK
        counted = {
            "prepare": self._metrics.prepared,
            "unprepare": self._metrics.unprepared,
        }
        counted[event.operation](result, event.seconds)
        spans = {f"{name}_s": round(seconds, 6) for name, seconds in event.spans.items()}
        fields = {"claim": str(event.claim), "seconds": round(event.seconds, 6), **spans}
        if event.error is None:
            _log.info(f"{event.operation}d", **fields)
        else:
            _log.warning(f"{event.operation} failed", code=result, error=str(event.error), **fields)


class Audience:
    """Several observers of prepare that look like one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def observe(self, event: Event) -> None:
        """Tells each of them."""
        for one in self._observers:
            one(event)
