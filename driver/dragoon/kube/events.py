"""Events for users: events.k8s.io/v1, repeated ones counted in one object, bounded in number.

An event is a courtesy: emitting never waits, and a write that fails is logged, never raised.
"""

import asyncio
import contextlib
import logging
import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from dragoon.errors import ApiConflictError, ApiNotFoundError, DragoonError
from dragoon.kube.backoff import Backoff
from dragoon.kube.budget import Budget
from dragoon.kube.port import EVENTS, Api, Object

log = logging.getLogger(__name__)

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

# Per object as in client-go's spam filter: a burst of 25, then one in five minutes.
_BURST = 25
_REFILL_S = 300.0
# A repetition within this time belongs to the same event: client-go's series.
_SERIES_S = 360.0
_KNOWN = 1000
_TRIES = 5
_NOTE_LIMIT = 1024
_NAME_LIMIT = 200


class _Key(NamedTuple):
    uid: str
    type: str
    reason: str
    action: str
    note: str


@dataclass(slots=True)
class _Series:
    """One event and how often it happened."""

    regarding: Object
    first: datetime
    last: datetime
    last_tick: float
    name: str
    count: int = 1
    written: int = 0


class EventRecorder:
    """Records events. component: the reporting controller; instance: this process (pod or node).

    run() writes what emit() was given, until cancelled.
    """

    def __init__(
        self,
        api: Api,
        component: str,
        instance: str,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._component = component
        self._instance = instance[:128]
        self._now = now
        self._clock = clock
        self._sleep = sleep
        self._series: OrderedDict[_Key, _Series] = OrderedDict()
        self._budgets: OrderedDict[str, Budget] = OrderedDict()
        self._waiting: OrderedDict[_Key, None] = OrderedDict()
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def emit(
        self, regarding: Object, *, reason: str, note: str, action: str, type_: str = NORMAL
    ) -> None:
        """Notes that something happened to the raw object `regarding`.

        reason: why, CamelCase, for machines. action: what was being done. note: for people.
        """
        ref = _reference(regarding)
        key = _Key(str(ref.get("uid") or ref["name"]), type_, reason, action, note[:_NOTE_LIMIT])
        tick = self._clock()
        known = self._series.get(key)
        if known is not None and tick - known.last_tick < _SERIES_S:
            known.count += 1
            known.last, known.last_tick = self._now(), tick
        else:
            now = self._now()
            self._series[key] = _Series(ref, now, now, tick, _name(ref))
        self._series.move_to_end(key)
        while len(self._series) > _KNOWN:
            self._waiting.pop(self._series.popitem(last=False)[0], None)
        self._waiting[key] = None
        self._idle.clear()
        self._work.set()

    async def flush(self) -> None:
        """Waits until run() has written, or given up on, everything emitted so far."""
        await self._idle.wait()

    async def run(self) -> None:
        """Writes events until cancelled."""
        while True:
            await self._work.wait()
            while self._waiting:
                key, _ = self._waiting.popitem(last=False)
                await self._deliver(key)
            self._work.clear()
            self._idle.set()

    async def _deliver(self, key: _Key) -> None:
        series = self._series.get(key)
        if series is None or not self._allowed(key.uid):
            return
        backoff = Backoff(first=1.0, limit=10.0)
        while True:
            try:
                await self._write(key, series)
            except DragoonError as error:
                if error.retryable and backoff.failures < _TRIES - 1:
                    await self._sleep(backoff.next())
                    continue
                log.warning("event %s on %s is lost: %s", key.reason, _shown(series), error)
            return

    async def _write(self, key: _Key, series: _Series) -> None:
        count = series.count
        if series.written:
            observed = {"count": count, "lastObservedTime": _micro(series.last)}
            namespace = _namespace(series.regarding)
            try:
                await self._api.patch(
                    EVENTS, series.name, {"series": observed}, namespace=namespace
                )
            except ApiNotFoundError:
                # Events expire in the API server (after an hour by default): start another one.
                series.count = count = max(1, count - series.written)
                series.first, series.name = series.last, _name(series.regarding)
                series.written = 0
        if not series.written:
            await self._create(key, series)
        series.written = count

    async def _create(self, key: _Key, series: _Series) -> None:
        event: Object = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": series.name, "namespace": _namespace(series.regarding)},
            "eventTime": _micro(series.first),
            "reportingController": self._component,
            "reportingInstance": self._instance,
            "action": key.action,
            "reason": key.reason,
            "type": key.type,
            "note": key.note,
            "regarding": series.regarding,
        }
        if series.count > 1:
            event["series"] = {"count": series.count, "lastObservedTime": _micro(series.last)}
        # The name is ours alone: a conflict means that an earlier try did arrive.
        with contextlib.suppress(ApiConflictError):
            await self._api.create(EVENTS, event)

    def _allowed(self, uid: str) -> bool:
        budget, now = self._budgets.setdefault(uid, Budget(_BURST, _REFILL_S)), self._clock()
        self._budgets.move_to_end(uid)
        while len(self._budgets) > _KNOWN:
            self._budgets.popitem(last=False)
        if budget.wait(now):
            return False
        budget.take(now)
        return True


def _reference(found: Object) -> Object:
    meta = found["metadata"]
    ref = {
        "apiVersion": found.get("apiVersion"),
        "kind": found.get("kind"),
        "name": meta["name"],
        "namespace": meta.get("namespace"),
        "uid": meta.get("uid"),
    }
    return {name: value for name, value in ref.items() if value}


def _namespace(ref: Object) -> str:
    """Events about cluster-scoped objects live in "default": the API server demands it."""
    return str(ref.get("namespace") or "default")


def _name(ref: Object) -> str:
    return f"{ref['name'][:_NAME_LIMIT].rstrip('-.')}.{uuid.uuid4().hex[:16]}"


def _shown(series: _Series) -> str:
    ref = series.regarding
    return f"{ref.get('kind')} {ref.get('namespace', '')}/{ref['name']}"


def _micro(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
