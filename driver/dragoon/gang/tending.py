"""Looks after pods whose claims are not prepared: wakes their kubelets, evicts where wanted.

Runs whether or not there are gangs. What is decided is in `nudging` and `refused`.
"""

import time
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

import structlog

from dragoon.api.device_status import wants_eviction
from dragoon.gang.nudging import Later, NudgeSettings, nudge
from dragoon.gang.protocol.actions import Action, Evict, Note, Nudge, WaitUntil
from dragoon.gang.protocol.executing import Executor
from dragoon.gang.queueing import Queue
from dragoon.gang.records import JobRecord, PodRecord, Raw
from dragoon.gang.refused import Evictions, EvictionSettings, refused
from dragoon.gang.stranded import stranded
from dragoon.gang.world import World
from dragoon.kube.mirror import Change

_log = structlog.get_logger(__name__)

_AGAIN_S: Final = 60.0
"""A claim that is refused is looked at again: its pod may have been seen late."""
_FAILED_S: Final = 5.0


class _Key(NamedTuple):
    kind: Literal["event", "claim"]
    namespace: str
    name: str


class Tending:
    """Tends pods until cancelled. note: tells people what nobody can do for them."""

    def __init__(
        self,
        world: World,
        executor: Executor,
        *,
        driver: str,
        note: Callable[[Note], None],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._world = world
        self._executor = executor
        self._driver = driver
        self._note = note
        self._clock = clock
        self._now = now
        self._queue: Queue[_Key] = Queue(clock)
        self._evictions = Evictions()
        self._nudges = NudgeSettings()
        self._pauses = EvictionSettings()

    def event_changed(self, change: Change[Raw]) -> None:
        """A kubelet said that it could not prepare a pod's claims."""
        if change.new is not None:
            self._queue.add(_Key("event", *change.key))

    def claim_changed(self, change: Change[Raw]) -> None:
        """A claim may be refused for good now, or reserved for a pod whose kubelet has given up."""
        if change.new is not None and wants_eviction(change.new, self._driver) is not None:
            self._queue.add(_Key("claim", *change.key))
        if change.new is not None and _consumers(change.new) != _consumers(change.old):
            self._look_at_failures({pod.uid for pod in self._world.users(*change.key)})

    def pod_changed(self, change: Change[PodRecord]) -> None:
        """A pod is seen on its node: its kubelet may have given up before that."""
        old, new = change.old, change.new
        if new is not None and new.node and not (old is not None and old.node):
            self._look_at_failures({new.uid})

    def _look_at_failures(self, pods: Collection[str]) -> None:
        """What kubelets said of pods with these UIDs counts now, if it did not before."""
        for key, event in self._world.copies.failures.items():
            if (event.get("regarding") or {}).get("uid") in pods:
                self._queue.add(_Key("event", *key))

    def job_changed(self, change: Change[JobRecord]) -> None:
        """A Job is gone: how often its pods were evicted counts for nobody any more."""
        if change.old is not None and change.new is None:
            self._evictions.forget(change.old.uid)

    async def run(self) -> None:
        """Looks at all that there is, then at what changed, one after the other."""
        for key in (*self._refused_claims(), *self._events()):
            self._queue.add(key)
        while True:
            key = await self._queue.take()
            try:
                about = self._about_event if key.kind == "event" else self._about_claim
                await self._act(key, about(key))
            except Exception:  # noqa: BLE001 - one pod must not cost the others
                self._queue.add_at(key, self._clock() + _AGAIN_S)
                _log.exception("tending failed unexpectedly", about="/".join(key))
            finally:
                self._queue.done(key)

    def _refused_claims(self) -> Iterator[_Key]:
        for key, claim in self._world.copies.claims.items():
            if wants_eviction(claim, self._driver) is not None:
                yield _Key("claim", *key)

    def _events(self) -> Iterator[_Key]:
        return (_Key("event", *key) for key, _ in self._world.copies.failures.items())

    def _about_event(self, key: _Key) -> tuple[Action, ...]:
        event = self._world.copies.failures.get(key.name, key.namespace)
        if event is None:
            return ()
        regarding = event.get("regarding") or {}
        pod = self._world.copies.pods.get(
            str(regarding.get("name") or ""), str(regarding.get("namespace") or "")
        )
        told = None if pod is None else stranded(pod, self._world.claim, self._is_ours)
        if told is not None:
            return (told,)
        found = nudge(
            event,
            pod,
            self._world.claim,
            driver=self._driver,
            now=self._now(),
            settings=self._nudges,
        )
        match found:
            case Nudge():
                return (found,)
            case Later(seconds):
                return (WaitUntil(self._clock() + seconds),)
        return ()

    def _about_claim(self, key: _Key) -> tuple[Action, ...]:
        claim = self._world.claim(key.namespace, key.name)
        if claim is None or wants_eviction(claim, self._driver) is None:
            return ()
        self._queue.add_at(key, self._clock() + _AGAIN_S)
        return refused(
            claim,
            self._world.users(key.namespace, key.name),
            self._evictions.by_owner,
            driver=self._driver,
            tick=self._clock(),
            settings=self._pauses,
        )

    async def _act(self, key: _Key, actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, WaitUntil):
                self._queue.add_at(key, action.tick)
            elif isinstance(action, Note):
                self._note(action)
        # Asked before: an evicted pod may be gone when the answer comes.
        owners = [owner for one in actions if isinstance(one, Evict) if (owner := self._owner(one))]
        outcome = await self._executor.execute(actions)
        for written in outcome.written:
            self._world.copies.observe(*written)
        for error in outcome.errors:
            _log.warning("tending failed", code=error.code, error=str(error))
        if outcome.errors or outcome.conflicts:
            self._queue.add_at(key, self._clock() + _FAILED_S)
            return
        for owner in owners:
            self._evictions.add(owner, self._clock())

    def _is_ours(self, class_name: str) -> bool:
        """Whether a DeviceClass is about our driver, as far as its selectors say."""
        found = self._world.copies.classes.get(class_name)
        selectors = ((found or {}).get("spec") or {}).get("selectors") or ()
        texts = ((one.get("cel") or {}).get("expression") or "" for one in selectors)
        return any(self._driver in text for text in texts)

    def _owner(self, action: Evict) -> str:
        pod = self._world.copies.pods.get(action.pod.name, action.pod.namespace)
        return "" if pod is None or pod.owner is None else pod.owner.uid


def _consumers(claim: Raw | None) -> object:
    return ((claim or {}).get("status") or {}).get("reservedFor") or []
