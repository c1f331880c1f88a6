"""Writes what became of claims into their status, and tells it once in an event.

An observer of prepare: what it is told is put aside at once, and written later by `run`, which is
woken only for what is due before it would wake by itself: each answer to the kubelet would wait for
that. What could not be written is tried again with growing pauses; what is newer replaces what
waits. Each write starts from the claim as it is now and holds only if nobody wrote in between (409
otherwise).
"""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from dragoon.api import claims
from dragoon.api.claims import ClaimRef
from dragoon.api.device_status import REPORT
from dragoon.errors import ApiNotFoundError, ApiUnavailableError, DragoonError
from dragoon.kube.backoff import Backoff
from dragoon.kube.budget import Budget
from dragoon.kube.events import WARNING, EventRecorder
from dragoon.kube.port import CLAIMS, Api, Object
from dragoon.prepare.clock import Clock, LoopClock
from dragoon.prepare.journal import Entry
from dragoon.prepare.observing import (
    Compared,
    Event,
    Finished,
    Ignored,
    Observer,
    StatusWritten,
    ignore,
)
from dragoon.prepare.settings import PrepareSettings
from dragoon.prepare.status.describing import devices_after, is_news
from dragoon.prepare.status.outcome import Mark, Marked, Outcome, Prepared, Refused, Released
from dragoon.prepare.waiting import Changes

_log = structlog.get_logger(__name__)

_AT_ONCE: Final = 8
_KNOWN: Final = 1000
_NEVER: Final = 3600.0
CONFIG_IGNORED: Final = "ConfigIgnored"
"""Reason of the event about a config block that has no effect."""


@dataclass(frozen=True, slots=True)
class Pace:
    """When claims are written, in seconds.

    prepared_s: after a success, so that a burst of pods is answered first. released_s: after an
    unprepare; most claims are deallocated by then, and the API server has removed the entries.
    retry_s, refused_s: the longest pause after a failure that may pass, and after one that will
    not. burst, rest_s: so many marks of a claim are written as they come, then one each rest_s.
    """

    prepared_s: float = 0.2
    released_s: float = 30.0
    retry_s: float = 60.0
    refused_s: float = 600.0
    burst: int = 10
    rest_s: float = 60.0


@dataclass(slots=True)
class _Page:
    """What is known of one claim, and when it is written next (None: nothing to write)."""

    ref: ClaimRef
    backoff: Backoff
    budget: Budget
    refused: Refused | None = None
    released: bool = False
    marks: dict[str, tuple[Mark, ...]] = field(default_factory=dict)
    ignored: dict[str, bool] = field(default_factory=dict)
    """Texts, and whether each was told."""
    announced: tuple[str, str] = ("", "")
    """The code that was told, and the UID of the pod or claim that it was told about."""
    due: float | None = None


class StatusWriter:
    """Keeps `status.devices` of this node's claims as prepare says; `observe` is for any thread.

    entry_of reads a claim's entry in the journal, None where it is not prepared in this boot; it
    blocks. on_refusal: what the administrator wants done about pods that are refused for good.
    """

    def __init__(
        self,
        api: Api,
        settings: PrepareSettings,
        entry_of: Callable[[str], Entry | None],
        recorder: EventRecorder,
        *,
        on_refusal: str = REPORT,
        pace: Pace | None = None,
        clock: Clock | None = None,
        observer: Observer = ignore,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api = api
        self._settings = settings
        self._entry_of = entry_of
        self._recorder = recorder
        self._on_refusal = on_refusal
        self._pace = pace or Pace()
        self._clock = clock or LoopClock()
        self._now = now
        self._observer = observer
        self._inbox: deque[Event | Marked] = deque()
        self._pages: OrderedDict[str, _Page] = OrderedDict()
        self._changes = Changes(self._clock)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._sleeps_until: float | None = None
        self._rest = asyncio.Event()
        self._kept = True

    def __repr__(self) -> str:
        return f"<StatusWriter claims={len(self._pages)}>"

    def observe(self, event: Event | Marked) -> None:
        """An event of prepare, or marks for a claim. Returns at once."""
        if isinstance(event, Finished | Compared | Ignored | Marked):
            self._inbox.append(event)
            self._rest.clear()
            if self._loop is None:
                return
            if threading.get_ident() == self._loop_thread:
                self._look_in()
            else:
                self._loop.call_soon_threadsafe(self._look_in)

    async def run(self) -> None:
        """Writes for ever."""
        self._loop_thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        while True:
            seen = self._changes.count
            self._read_inbox()
            await asyncio.gather(*map(self._serve, self._due()))
            pause = self._pause()
            if pause and not self._inbox:
                self._rest.set()
                self._sleeps_until = self._clock.now() + pause
                await self._changes.beyond(seen, pause)
                self._sleeps_until = None

    async def flush(self) -> None:
        """Waits until run() has written what it was told so far, or has put it off."""
        await self._rest.wait()

    def _look_in(self) -> None:
        """Wakes `run` for what is due before it would wake; while it writes it is let be."""
        until = self._sleeps_until
        if until is None:
            return
        self._read_inbox()
        if any(page.due is not None and page.due < until for page in self._pages.values()):
            self._changes.announce()
        else:
            self._rest.set()

    def _read_inbox(self) -> None:
        while self._inbox:
            self._take(self._inbox.popleft())

    def _take(self, event: Event | Marked) -> None:
        match event:
            case Finished("prepare", claim, _, error):
                refused = Refused.by(error, on_refusal=self._on_refusal) if error else None
                if error is None or refused is not None:
                    page = self._page(claim)
                    page.refused, page.released = refused, False
                    self._plan(page, 0.0 if refused else self._pace.prepared_s)
            case Finished("unprepare", claim, _, None) if claim.uid in self._pages:
                page = self._page(claim)
                page.refused, page.released, page.marks = None, True, {}
                self._plan(page, self._pace.released_s)
            case Compared(entry, claim):
                self._compare(self._page(entry.claim), entry, claim)
            case Ignored(claim, what):
                page = self._page(claim)
                if page.ignored.setdefault(what, False) is False:
                    self._plan(page, self._pace.prepared_s)
            case Marked(claim, type_, marks):
                page = self._page(claim)
                if page.marks.get(type_, ()) != marks:
                    page.marks[type_] = marks
                    self._plan_marks(page)

    def _page(self, claim: ClaimRef) -> _Page:
        page = self._pages.get(claim.uid)
        if page is None:
            pace = self._pace
            budget = Budget(pace.burst, pace.rest_s)
            page = _Page(claim, Backoff(first=0.1, limit=pace.retry_s), budget)
            self._pages[claim.uid] = page
        self._pages.move_to_end(claim.uid)
        while len(self._pages) > _KNOWN:
            self._pages.popitem(last=False)
        return page

    def _plan(self, page: _Page, seconds: float) -> None:
        """Something new: it is not kept waiting by earlier failures."""
        page.backoff.reset()
        page.due = self._clock.now() + seconds

    def _plan_marks(self, page: _Page) -> None:
        """As soon as the budget allows; what is due before that is not put off."""
        now = self._clock.now()
        wait = page.budget.wait(now)
        self._plan(page, wait if page.due is None else min(wait, page.due - now))

    def _compare(self, page: _Page, entry: Entry, claim: Mapping[str, Any]) -> None:
        """The claim as it is read each minute anyway: whatever is missing there is written."""
        if page.due is None and page.refused is None and not page.released and self._kept:
            found = Prepared(entry)
            if devices_after(claim, self._settings.driver, found, _marks(page), now="") is not None:
                self._plan(page, 0.0)

    def _due(self) -> list[_Page]:
        now = self._clock.now()
        due = [page for page in self._pages.values() if page.due is not None and page.due <= now]
        return due[:_AT_ONCE]

    def _pause(self) -> float:
        moments = [page.due for page in self._pages.values() if page.due is not None]
        return max(0.0, min(moments) - self._clock.now()) if moments else _NEVER

    async def _serve(self, page: _Page) -> None:
        page.due = None
        try:
            async with asyncio.timeout(2 * self._settings.api_patience_s):
                await self._tell(page)
        except (DragoonError, TimeoutError) as error:
            failure = error if isinstance(error, DragoonError) else ApiUnavailableError("no answer")
            pause = page.backoff.next() if failure.retryable else self._pace.refused_s
            page.due = self._clock.now() + pause
            self._observer(StatusWritten(page.ref, failure))
        else:
            page.backoff.reset()
            if page.released:
                self._pages.pop(page.ref.uid, None)

    async def _tell(self, page: _Page) -> None:
        outcome = await self._outcome(page)
        if outcome is None and not page.ignored:
            return
        claim = await self._read(page.ref)
        if claim is None:
            page.released = True
            return
        self._tell_ignored(page, claim)
        if isinstance(outcome, Refused):
            self._announce(page, claim, outcome)
        if outcome is not None and self._kept:
            await self._write(page, claim, outcome)

    async def _outcome(self, page: _Page) -> Outcome | None:
        """None where there is nothing to say: never prepared, or no device of ours."""
        if page.refused is not None:
            return page.refused
        entry = await asyncio.to_thread(self._entry_of, page.ref.uid)
        if entry is None:
            return Released() if page.released else None
        page.released = False
        return Prepared(entry)

    async def _read(self, ref: ClaimRef) -> Object | None:
        try:
            claim = await self._api.get(CLAIMS, ref.name, namespace=ref.namespace)
        except ApiNotFoundError:
            return None
        return claim if claims.claim_ref(claim).uid == ref.uid else None

    async def _write(self, page: _Page, claim: Object, outcome: Outcome) -> None:
        driver = self._settings.driver
        now = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        devices = devices_after(claim, driver, outcome, _marks(page), now=now)
        if devices is None:
            return
        page.budget.take(self._clock.now())
        patch = {
            "metadata": {"resourceVersion": claim["metadata"]["resourceVersion"]},
            "status": {"devices": devices or None},
        }
        answer = await self._api.patch(
            CLAIMS,
            page.ref.name,
            patch,
            namespace=page.ref.namespace,
            subresource="status",
        )
        self._observer(StatusWritten(page.ref))
        stored = (answer.get("status") or {}).get("devices") or ()
        if any(one["driver"] == driver for one in devices) and not stored:
            # DRAResourceClaimDeviceStatus is off there: another write would be dropped, too.
            self._kept = False
            _log.warning("this API server drops status.devices: claims show no conditions")

    def _announce(self, page: _Page, claim: Object, refused: Refused) -> None:
        """Told once to each pod, though the kubelet asks again every minute or two.

        The status remembers it for the process that comes after this one.
        """
        regarding = _regarding(claim)
        news = (refused.code, str(regarding["metadata"]["uid"]))
        if page.announced != news and is_news(claim, self._settings.driver, refused):
            self._emit(regarding, refused.code, refused.message)
        page.announced = news

    def _tell_ignored(self, page: _Page, claim: Object) -> None:
        for what, told in page.ignored.items():
            if not told:
                self._emit(_regarding(claim), CONFIG_IGNORED, f"claim {page.ref.name}: {what}")
                page.ignored[what] = True

    def _emit(self, regarding: Object, reason: str, note: str) -> None:
        self._recorder.emit(regarding, reason=reason, note=note, action="Prepare", type_=WARNING)


def _marks(page: _Page) -> tuple[Mark, ...]:
    return tuple(mark for type_ in sorted(page.marks) for mark in page.marks[type_])


def _regarding(claim: Object) -> Object:
    """Whom an event is about: the one pod that uses the claim, the claim for none or several."""
    owner = claims.owner_pod(claim)
    pods = {*claims.reserved_pods(claim), *([owner] if owner else [])}
    if len(pods) != 1:
        return claim
    ((name, uid),) = pods
    meta = {"name": name, "namespace": claim["metadata"].get("namespace"), "uid": uid}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
