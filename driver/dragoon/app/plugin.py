"""The node process: GPUs, slices and the kubelet wired together.

Start: what cannot be served at all ends the process with its reason (settings, no driver, folders
that cannot be written). Then the kubelet is served, whether the API server answers or not, and
everything else runs in parts that are started again one by one (supervision).
Stop: calls in flight end, the kubelet lets go of us, parts end. Slices and prepared claims stay:
the next instance takes them over.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog

from dragoon import __version__
from dragoon.app import config as settings
from dragoon.app import enforcing, preparing, published, publishing
from dragoon.app.afterwards import Afterwards
from dragoon.app.auditing import AuditReporter
from dragoon.app.config import PluginConfig
from dragoon.app.freshness import FreshInventory
from dragoon.app.health import HealthFile, NodeHealth
from dragoon.app.reporting import Audience, Reporter
from dragoon.app.starting import (
    FIRST_LOOK_SECONDS,
    check_kubelet_root,
    look_first,
    waits_for_driver,
)
from dragoon.app.supervision import Part, start
from dragoon.app.telling import Telling
from dragoon.gpu.model import PciAddress
from dragoon.gpu.port import Gpus, MemoryLimits, MigCards, Processes
from dragoon.gpu.watching import InventoryWatch
from dragoon.health.watching import Sources as HealthSources
from dragoon.kube.events import EventRecorder
from dragoon.kube.port import Api
from dragoon.kubelet.serving import KubeletPlugin
from dragoon.prepare.audit.auditing import Audit
from dragoon.prepare.effects import Effects
from dragoon.prepare.enforcement.choosing import Enforcement
from dragoon.prepare.enforcement.probing import Probing
from dragoon.prepare.engine import Engine
from dragoon.prepare.journal import Entry
from dragoon.prepare.settings import PrepareSettings
from dragoon.prepare.threads import Threads
from dragoon.publish.looking import Sources
from dragoon.publish.offering import Offering
from dragoon.publish.own_node import OwnNode
from dragoon.publish.publisher import Publisher
from dragoon.telemetry.endpoint import Endpoint
from dragoon.telemetry.metrics import Metrics

_log = structlog.get_logger(__name__)

COMPONENT: Final = "dragoon-plugin"
# asyncio takes as many as there are CPUs, and four. These wait, for disks and for locks: with two
# CPUs the effects of eight claims would wait for each other.
_THREADS: Final = 32


class Plugin:
    """The parts of one node process. Made from ports, so that tests give their own."""

    def __init__(
        self,
        config: PluginConfig,
        *,
        gpus: Gpus,
        api: Api,
        mig: MigCards | None = None,
        limits: MemoryLimits | None = None,
        processes: Processes | None = None,
        proc_root: Path | None = None,
        effects: Effects | None = None,
        health: HealthSources | None = None,
        first_look: float = FIRST_LOOK_SECONDS,
    ) -> None:
        """The ports: what it is made from; without an optional one what needs it is left out.

        mig: the same cards as they are divided; limits: their memory caps; processes: who uses
        them; health: what they raise and say of themselves. proc_root: where those processes are
        seen, else as the settings say. effects: what prepare does to the node; None:
        `preparing.host_effects`. first_look: how long the start waits for the cards. Raises DragoonError for
        settings that cannot work.
        """
        self._config = settings.check_plugin(config)
        self._first_look = first_look
        self.metrics = Metrics(__version__)
        self._reporter = Reporter(self.metrics)
        self._events = EventRecorder(api, COMPONENT, config.pod_name or config.node_name)
        self._watch = InventoryWatch(gpus, config.inventory_seconds, report=self._reporter.looked)
        self._node = OwnNode(api, config.node_name)
        self._publisher = Publisher(
            api, self._node, driver=config.driver_name, metrics=self.metrics
        )
        self._offering = self._offer(api, mig)
        self._watch.subscribe(self._reporter.found)
        self._watch.subscribe(self._offering.show)
        prepare, fresh = preparing.prepare_settings(config), FreshInventory(self._watch)
        enforcement = enforcing.enforcement_of(config, prepare.paths, limits)
        self._probing = Probing(
            enforcement, fresh, self._offering.enforce, observer=self._reporter.observe
        )
        effects = effects or preparing.host_effects(config, limits, mig)
        self._telling = Telling(
            api,
            prepare,
            effects,
            entry_of=self._prepared_entry,
            recorder=self._events,
            on_refusal=config.on_refusal,
            offering=self._offering,
            mig=mig,
            processes=processes,
            limits=limits,
            observer=self._reporter.observe,
        )
        self._watch.subscribe(self._telling.found)
        everybody = Audience((self._reporter.observe, self._telling.observe))
        self._afterwards = Afterwards(everybody.observe)
        self._engine = self._prepare_claims(api, fresh, effects, prepare, enforcement)
        self._audit = processes and self._compare_use(
            api, effects, prepare, processes=processes, limits=limits, proc_root=proc_root
        )
        self._health = health and self._watch_health(health, HealthFile(effects, prepare.paths))
        self._kubelet = self._serve_kubelet()
        self.endpoint = self._answer_questions()

    async def run(self, stop: asyncio.Event, *, loaded: Callable[[], None] = lambda: None) -> None:
        """Serves until `stop` is set. Raises DragoonError when it cannot start.

        loaded: called when all is there that stays, just before the kubelet is served.
        """
        check_kubelet_root(self._config)
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "blocking"))
        await look_first(self._config, self._watch, self._first_look)
        if self._health:
            await self._health.start()
        await self._engine.start()
        loaded()
        async with self.endpoint, self._kubelet, asyncio.TaskGroup() as group:
            tasks = start(self._parts(), group, self.metrics)
            await stop.wait()
            _log.info("stopping: slices and prepared claims stay")
            await self._kubelet.stop()
            await self._engine.finished()
            self._afterwards.tell()
            for task in tasks:
                task.cancel()

    def not_ready(self) -> Sequence[str]:
        """What is missing for readiness: the kubelet's notification, and slices that stand."""
        missing = []
        if not self._kubelet.registered:
            missing.append(f"not registered with the kubelet: {self._kubelet.registration.reason}")
        if self._publisher.state.generation is None and not waits_for_driver(
            self._config, self._watch
        ):
            error = self._publisher.state.error
            missing.append(f"no slices published yet{f': {error}' if error else ''}")
        return missing

    def state(self) -> Mapping[str, Any]:
        """What /debug/state shows."""
        inventory = self._watch.current
        return {
            "version": __version__,
            "driver": self._config.driver_name,
            "node": self._config.node_name,
            "registered": self._kubelet.registered,
            "registration": self._kubelet.registration.reason or "registered",
            "gpus": len(inventory.gpus) if inventory else None,
            "lost": [str(card.address) for card in inventory.lost] if inventory else None,
            "hardware": str(self._watch.error) if self._watch.error else None,
            **published.shown(self._publisher.state, self._offering),
            "blocked": self._telling.state(),
            "health": self._health.state() if self._health else [],
        }

    def _offer(self, api: Api, mig: MigCards | None) -> Offering:
        return Offering(
            api,
            self._publisher,
            self._node,
            driver=self._config.driver_name,
            recorder=self._events,
            wishes=self._config.wishes,
            sources=Sources(mig, partial(publishing.journal, self._config)),
        )

    def _prepare_claims(
        self,
        api: Api,
        fresh: FreshInventory,
        effects: Effects,
        prepare: PrepareSettings,
        enforcement: Enforcement,
    ) -> Engine:
        return Engine(
            api,
            fresh,
            effects,
            prepare,
            common=preparing.common_edits(self._config),
            enforcement=enforcement,
            forms=lambda: self._offering.wanted.wishes.forms,
            observer=self._afterwards.observe,
            threads=Threads(_THREADS),
        )

    def _compare_use(
        self,
        api: Api,
        effects: Effects,
        prepare: PrepareSettings,
        *,
        processes: Processes,
        limits: MemoryLimits | None,
        proc_root: Path | None,
    ) -> Audit:
        """The audit: what processes use, compared with what their pods were given."""
        reporter = AuditReporter(self.metrics, self._events, self._telling.statuses.observe)
        return Audit(
            api,
            effects,
            prepare,
            cards=self._cards,
            processes=processes,
            report=reporter.report,
            limits=limits,
            proc_root=proc_root or Path(self._config.proc_root),
            observer=self._reporter.observe,
        )

    def _watch_health(self, sources: HealthSources, file: HealthFile) -> NodeHealth:
        return NodeHealth(
            sources,
            file,
            config=self._config,
            inventories=self._watch,
            node=self._node,
            offering=self._offering,
            recorder=self._events,
            metrics=self.metrics,
        )

    def _serve_kubelet(self) -> KubeletPlugin:
        kubelet = KubeletPlugin(
            self._engine,
            driver=self._config.driver_name,
            kubelet_root=Path(self._config.kubelet_root),
            instance_uid=self._config.pod_uid or None,
            health=self._health.board if self._health else None,
        )
        self.metrics.health_streams(lambda: kubelet.health_streams)
        return kubelet

    def _answer_questions(self) -> Endpoint:
        """Metrics, readiness, and /debug/state."""
        host, port = settings.parse_listen(self._config.listen)
        return Endpoint(
            host,
            port,
            metrics=self.metrics,
            not_ready=self.not_ready,
            self_call=self._kubelet.self_call,
            state=self.state,
        )

    def _parts(self) -> tuple[Part, ...]:
        return (
            Part("inventory", self._watch.run),
            Part("enforcement", self._probing.run),
            Part("node", self._node.run),
            Part("offering", self._offering.run),
            Part("publisher", self._publisher.run),
            Part("registration", self._follow_registration),
            Part("prepare", self._engine.run),
            Part("events", self._events.run),
            *([Part("audit", self._audit.run)] if self._audit else []),
            *([self._health.part] if self._health else []),
            *self._telling.parts(),
        )

    def _cards(self) -> tuple[PciAddress, ...]:
        inventory = self._watch.current
        return tuple(one.address for one in inventory.gpus) if inventory else ()

    def _prepared_entry(self, uid: str) -> Entry | None:
        return self._engine.prepared_entry(uid)

    async def _follow_registration(self) -> None:
        async for state in self._kubelet.registration_changes():
            self.metrics.registered(state.registered)
            self._publisher.allow(state.registered)
