"""The health of this node's cards: from the driver to taints, kubelet, metrics, logs, events."""

import structlog

from dragoon.app.config import PluginConfig
from dragoon.app.supervision import Part
from dragoon.gpu.condition import EventKind
from dragoon.gpu.watching import InventoryWatch
from dragoon.health.observing import Changed, Event, Raised, Trouble
from dragoon.health.reports import Board, report
from dragoon.health.verdict import TAINT_KEYS, Health, Kind
from dragoon.health.watching import HealthWatch, Sources
from dragoon.kube.events import NORMAL, WARNING, EventRecorder
from dragoon.prepare.effects import Effects
from dragoon.prepare.paths import Paths
from dragoon.prepare.storing import replace_file
from dragoon.publish.blaming import Blame, Blames
from dragoon.publish.device import Taint
from dragoon.publish.offering import Offering
from dragoon.publish.own_node import OwnNode
from dragoon.publish.slices import Pool
from dragoon.telemetry.metrics import Metrics

_log = structlog.get_logger(__name__)

_MODE = 0o600
_LOCK_KEY = "health"
_LOCK_SECONDS = 5.0
_MOST_UNKNOWN = 16
"""Different events of unknown GPUs that are logged, each once: a sick driver may deliver any number."""


class HealthFile:
    """Implements `health.port.Memory` with the effects of prepare: one file, as a journal entry.

    patience: seconds to wait for another plugin that writes it.
    """

    def __init__(self, effects: Effects, paths: Paths, *, patience: float = _LOCK_SECONDS) -> None:
        self._effects = effects
        self._paths = paths
        self._patience = patience
        self._file = paths.state_folder / "health.json"

    def read(self) -> bytes | None:
        return self._effects.read(self._file)

    def write(self, data: bytes) -> None:
        """Under a lock: in a rolling update two plugins have the same news."""
        with self._effects.lock(self._paths.lock, [_LOCK_KEY], self._patience):
            replace_file(self._effects, self._file, data, _MODE, durable=True)
            self._effects.sync_folder(self._file.parent)

    def boot_id(self) -> str:
        return self._effects.boot_id()


class NodeHealth:
    """Listens to the cards and passes on what it makes of them.

    To the offering: taints. To `board`, which the kubelet follows: every device that is offered.
    """

    def __init__(
        self,
        sources: Sources,
        memory: HealthFile,
        *,
        config: PluginConfig,
        inventories: InventoryWatch,
        node: OwnNode,
        offering: Offering,
        recorder: EventRecorder,
        metrics: Metrics,
    ) -> None:
        self._pool = Pool(config.driver_name, config.node_name).name
        self._node = node
        self._offering = offering
        self._recorder = recorder
        self._metrics = metrics
        self._watch = HealthWatch(
            sources,
            memory,
            settings=config.health,
            look=inventories.want_look,
            observer=self._observe,
        )
        self._unknown: set[str] = set()
        self.board = Board(lambda: self._watch.checked)
        self._watch.subscribe(self._judged)
        inventories.subscribe(self._watch.show)
        offering.follow(lambda _: self._tell())
        self._count()

    async def start(self) -> None:
        """Call it before anything is offered: a sick card must not be offered well for a moment."""
        await self._watch.start()

    @property
    def part(self) -> Part:
        """What has to run."""
        return Part("health", self._watch.run)

    def state(self) -> list[dict[str, object]]:
        """What is wrong with which card, for /debug/state."""
        return [
            {
                "card": str(address),
                "kind": verdict.kind,
                "what": verdict.message,
                "effect": verdict.effect,
                "since": verdict.since,
            }
            for address, card in self._watch.health.items()
            for verdict in card.verdicts
        ]

    def _tell(self) -> None:
        """Puts on the board what is known now of the devices that are offered."""
        watch = self._watch
        self.board.show(report(self._pool, self._offering.devices, watch.health, watch.blind))

    def _judged(self) -> None:
        self._offering.blame(blames(self._watch.health))
        self._tell()

    def _observe(self, event: Event) -> None:
        match event:
            case Raised():
                self._raised(event)
            case Changed():
                self._changed(event)
            case Trouble(what, None):
                _log.info("health: works again", what=what)
            case Trouble(what, error):
                _log.error("health: does not work", what=what, error=str(error))

    def _raised(self, raised: Raised) -> None:
        event = raised.event
        if not raised.known:
            self._metrics.gpu_event_unknown(raised.times)
            if str(event) not in self._unknown and len(self._unknown) < _MOST_UNKNOWN:
                self._unknown.add(str(event))
                _log.warning("event of an unknown GPU", gpu=str(event.address), what=str(event))
            return
        self._metrics.gpu_event(
            "xid" if event.kind is EventKind.XID else event.kind.name.lower(),
            event.number,
            raised.times,
        )
        _log.warning(
            "event of a GPU",
            gpu=str(event.address),
            what=str(event),
            meaning=raised.meaning,
            times=raised.times,
            gpu_instance=event.gpu_instance,
        )

    def _changed(self, change: Changed) -> None:
        self._count()
        for verdict in change.came:
            _log.warning("GPU is not well", gpu=str(change.address), what=verdict.message)
        for verdict in change.went:
            _log.info("GPU has recovered", gpu=str(change.address), what=verdict.message)
        grave = [verdict.message for verdict in change.came if verdict.taints]
        if grave:
            note = f"GPU {change.address}: {'; '.join(grave)}. New claims do not get it."
            self._emit("GpuUnhealthy", note, WARNING)
        elif any(verdict.taints for verdict in change.went) and not any(
            verdict.taints for verdict in change.health[change.address].verdicts
        ):
            self._emit("GpuRecovered", f"GPU {change.address} is well again.", NORMAL)

    def _emit(self, reason: str, note: str, type_: str) -> None:
        node = self._node.current
        if node is not None:
            self._recorder.emit(node, reason=reason, note=note, action="Watch", type_=type_)

    def _count(self) -> None:
        cards = self._watch.health.values()
        kinds = [{verdict.kind for verdict in card.verdicts} for card in cards]
        self._metrics.gpu_verdicts({kind: sum(kind in found for found in kinds) for kind in Kind})


def blames(health: Health) -> Blames:
    """The taints of cards that are not well."""
    return {
        address: [
            Blame(
                Taint.because(TAINT_KEYS[verdict.kind], verdict.value, verdict.effect),
                verdict.spared,
            )
            for verdict in card.verdicts
            if verdict.taints
        ]
        for address, card in health.items()
        if any(verdict.taints for verdict in card.verdicts)
    }
