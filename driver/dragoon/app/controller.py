"""The controller process: gangs, the arbiter and the nudge wired together.

Several processes may run; a Lease decides which one works. All of them keep their copies of the
cluster current, so that another one takes over in seconds. Stop: the Lease is given back; what is
half done the next leader finds in the API.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import structlog

from dragoon import __version__
from dragoon.allocator.gang.planning import plan as gang_plan
from dragoon.allocator.model import Slice
from dragoon.api.gang import GangObject
from dragoon.app.config import parse_listen
from dragoon.app.controller_config import ControllerConfig
from dragoon.app.gang_reporting import GangReporter, by_phase
from dragoon.app.gate import Gate
from dragoon.app.supervision import Part, start
from dragoon.gang.arbiter.watching import Arbiter
from dragoon.gang.cleaning import Cleaning
from dragoon.gang.controlling import GangController
from dragoon.gang.copies import Copies
from dragoon.gang.kueue.running import Kueue
from dragoon.gang.looking import Looker
from dragoon.gang.planning import Planner
from dragoon.gang.pod_index import FamilyKey
from dragoon.gang.protocol.executing import Executor, Written
from dragoon.gang.protocol.model import Settings
from dragoon.gang.provisioning.asking_for_nodes import Provisioning
from dragoon.gang.queueing import Queue
from dragoon.gang.records import Raw
from dragoon.gang.remembering import Pace
from dragoon.gang.reserving import Reserving
from dragoon.gang.tending import Tending
from dragoon.gang.waiting.freed import FLEET, Freed
from dragoon.gang.world import Listener, World
from dragoon.kube.events import EventRecorder
from dragoon.kube.leading import DEFAULT, Election, Timing
from dragoon.kube.mirror import Change
from dragoon.kube.port import Api
from dragoon.kube.throttling import Throttle, ThrottledApi
from dragoon.telemetry.endpoint import Endpoint
from dragoon.telemetry.gang_metrics import GangMetrics

_log = structlog.get_logger(__name__)

COMPONENT: Final = "dragoon-controller"
_SETTLED_S: Final = 10.0
"""Gangs do not wait any longer for promises: without Kueue's API there are none to be seen."""


class Controller:
    """The parts of one controller process. Made from ports, so that tests give their own.

    protocol: instead of what follows from the settings. listed: called when all copies are there.
    """

    def __init__(
        self,
        config: ControllerConfig,
        *,
        api: Api,
        planner: Planner = gang_plan,
        pace: Pace | None = None,
        protocol: Settings | None = None,
        timing: Timing = DEFAULT,
        clock: Callable[[], float] = time.monotonic,
        listed: Callable[[], None] = lambda: None,
    ) -> None:
        self._config = config
        self._api = api
        self._listed = listed
        self._clock = clock
        self._pace = pace or Pace()
        self.metrics = GangMetrics(__version__)
        identity = f"{config.pod_name or 'controller'}-{uuid.uuid4().hex[:8]}"
        self._events = EventRecorder(api, COMPONENT, identity)
        self._reporter = GangReporter(self.metrics, self._events)
        self._election = self._candidacy(identity, timing)
        writing = ThrottledApi(api, Throttle(config.kube_api_qps, config.kube_api_burst))
        executor = Executor(writing, writers=config.writers)
        self._copies = Copies(api, pace=self._pace)
        self._queue: Queue[FamilyKey] = Queue(clock)
        self.world = World(self._copies, Listener(self._changed, self._room, self._swept))
        self._cleaning = Cleaning(self.world, executor)
        self._provisioning = self._requests_for_nodes(writing)
        self._looker = self._look_at_gangs(writing, executor, planner, protocol or config.protocol)
        self._gangs = GangController(
            writing, self.world, self._looker, self._queue, teller=self._reporter, clock=clock
        )
        self._reserving = self._reservations(executor)
        self._kueue = self._check_for_kueue(writing)
        self._arbiter = Arbiter(
            self.world,
            executor,
            written=self._written,
            note=self._reporter.alone,
            seen=self._reporter.given_twice,
        )
        self._tending = Tending(
            self.world, executor, driver=config.driver_name, note=self._reporter.alone, clock=clock
        )
        self._follow_copies()
        self._gate = Gate(api, config.pod_namespace, config.proof_class)
        host, port = parse_listen(config.listen)
        self.endpoint = Endpoint(
            host, port, metrics=self.metrics, not_ready=self.not_ready, state=self.state
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set. Raises DragoonError when it cannot start."""
        async with self.endpoint, asyncio.TaskGroup() as group:
            tasks = start(self._parts(), group, self.metrics)
            await stop.wait()
            _log.info("stopping: the lease is given back")
            for task in tasks:
                task.cancel()

    def not_ready(self) -> Sequence[str]:
        """What is missing for readiness: lists, and the gate. A standby is ready too."""
        missing = [f"{text} are not listed yet" for text in self._copies.not_synced]
        return [*missing, *([self._gate.problem] if self._gate.problem else [])]

    def state(self) -> Mapping[str, Any]:
        """What /debug/state shows."""
        return {
            "version": __version__,
            "driver": self._config.driver_name,
            "leading": self._election.is_leading,
            "leader": self._election.leader,
            "gate": self._gate.problem or "proved",
            "finalizerByPolicy": self._gate.proof.finalizer if self._gate.proof else None,
            "gangs": by_phase(self._copies.gangs.values()),
            "waiting": len(self._queue),
            "copies": {
                resource.plural: {
                    "objects": len(informer.items()),
                    "synced": informer.state.synced,
                    "error": str(informer.state.last_error) if informer.state.last_error else None,
                }
                for resource, informer in self._copies.informers.items()
            },
        }

    def _candidacy(self, identity: str, timing: Timing) -> Election:
        # The Lease is written past the limit: a burst of allocations must not cost leadership.
        return Election(
            self._api,
            namespace=self._config.pod_namespace,
            name=self._config.lease_name,
            identity=identity,
            timing=timing,
            clock=self._clock,
        )

    def _requests_for_nodes(self, writing: Api) -> Provisioning:
        return Provisioning(
            writing,
            self.world,
            class_name=self._config.provisioning_class,
            changed=self._changed,
            again=self._pace.served,
        )

    def _look_at_gangs(
        self, writing: Api, executor: Executor, planner: Planner, protocol: Settings
    ) -> Looker:
        return Looker(
            writing,
            self.world,
            planner,
            settings=protocol,
            reporter=self._reporter,
            again=self._again,
            provisioning=self._provisioning,
            executor=executor,
            pace=self._pace,
            clock=self._clock,
        )

    def _reservations(self, executor: Executor) -> Reserving:
        return Reserving(
            self.world,
            self._looker,
            executor,
            settings=self._config.reserving,
            changed=self._changed,
            room=self._room,
            counted=self.metrics.reserved,
            every=self._pace.status,
        )

    def _check_for_kueue(self, writing: Api) -> Kueue:
        return Kueue(
            writing,
            self.world,
            self._looker.planning,
            reporter=self._reporter,
            room=lambda: self._room(FLEET),
            settings=self._config.checking,
            every=self._pace.served,
            replan=self._pace.replan,
        )

    def _follow_copies(self) -> None:
        """What changes in the copies goes to the parts that the world does not tell of it."""
        self._copies.gangs.subscribe(self._gang)
        self._copies.claims.subscribe(self._to_do(self._claim))
        self._copies.pods.subscribe(self._to_do(self._tending.pod_changed))
        self._copies.failures.subscribe(self._to_do(self._tending.event_changed))
        self._copies.jobs.subscribe(self._tending.job_changed)
        self._copies.slices.subscribe(self._to_do(self._slice))

    def _to_do(self, handler: Callable[[Change[Any]], None]) -> Callable[[Change[Any]], None]:
        """Work is for the leader, and whoever begins to lead looks at all that there is.

        A standby that remembered it would remember all that ever came and went.
        """
        return lambda change: handler(change) if self._election.is_leading else None

    def _parts(self) -> tuple[Part, ...]:
        return (
            *(
                Part(f"watch {resource.plural}", informer.run)
                for resource, informer in self._copies.informers.items()
            ),
            Part("groups of others", self._copies.groups.run),
            Part("requests for nodes", self._provisioning.follow),
            Part("events", self._events.run),
            Part("gate", self._prove),
            Part("leading", self._stand),
        )

    def _parts_of_leader(self) -> tuple[Part, ...]:
        return (
            *((Part("kueue", self._kueue.run),) if self._config.kueue == "auto" else ()),
            Part("gangs", self._place),
            Part("reserving", self._reserving.run),
            Part("arbiter", self._arbiter.run),
            Part("sweep", self._cleaning.run),
            Part("tending", self._tending.run),
        )

    async def _stand(self) -> None:
        """Stands for election once the copies are there, and works while elected."""
        await self._copies.synced()
        self._listed()
        await self._election.lead(self._work)

    async def _work(self) -> None:
        self.metrics.leading(now=True)
        try:
            # What another leader wrote last may not have come by the watches yet (case C37).
            await self._copies.refresh()
            await self._provisioning.settled()
            async with asyncio.TaskGroup() as group:
                start(self._parts_of_leader(), group, self.metrics)
        finally:
            self.metrics.leading(now=False)

    async def _place(self) -> None:
        """Gangs; what another leader promised to Workloads of Kueue has to stand again before."""
        if self._config.kueue == "auto":
            await self._kueue.settled(_SETTLED_S)
        await self._gangs.run()

    async def _prove(self) -> None:
        """Proves now and then that pods of gangs are held."""
        while True:
            self.metrics.gangs(by_phase(self._copies.gangs.values()))
            await asyncio.sleep(await self._gate.prove())

    def _claim(self, change: Change[Raw]) -> None:
        self._arbiter.claim_changed(change.old, change.new)
        self._tending.claim_changed(change)

    def _slice(self, change: Change[Slice]) -> None:
        for one in (change.old, change.new):
            if one is not None:
                self._arbiter.pool_changed(one.pool)

    def _gang(self, change: Change[GangObject]) -> None:
        if change.old is not None and change.new is None:
            self._looker.forget(change.old.uid)

    def _written(self, written: Written) -> None:
        self._copies.observe(*written)

    def _again(self, gang: GangObject, tick: float) -> None:
        self._queue.add_at(FamilyKey(gang.namespace, gang.group), tick)

    def _changed(self, key: FamilyKey) -> None:
        if self._election.is_leading:
            self._gangs.changed(key)

    def _room(self, freed: Freed) -> None:
        self._gangs.room(freed)
        self._kueue.room_came_up()
        self._cleaning.changed()

    def _swept(self) -> None:
        self._cleaning.changed()
