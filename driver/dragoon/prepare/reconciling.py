"""Keeping the journal as the API server says: each entry is compared at start and every minute."""

import asyncio
import enum
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from dragoon.api import claims
from dragoon.errors import ApiNotFoundError, DragoonError
from dragoon.kube.port import CLAIMS, Api
from dragoon.prepare.executing import Executor
from dragoon.prepare.journal import Entry
from dragoon.prepare.observing import Compared, Complaints, Observer
from dragoon.prepare.settings import PrepareSettings


class Verdict(enum.Enum):
    """What becomes of a journal entry."""

    KEEP = "keep"
    RELEASE = "release"
    REPORT = "report"


def judge(entry: Entry, claim: Mapping[str, Any] | None, *, driver: str, boot_id: str) -> Verdict:
    """Decides about an entry, given its claim now (None: it does not exist).

    A claim that is gone, is another one by now, or has no device of ours any more, is normally
    taken back by the kubelet, at latest a minute after it started. Where that never comes, because
    the kubelet lost its own record, the entry is released only if no container can live with it:
    it was never answered, or it is of an earlier boot. Otherwise it is reported and keeps its
    devices from others: an idle GPU is better than one with two owners.
    """
    if claim is not None and claims.claim_ref(claim).uid == entry.uid:
        allocation = claims.allocation(claim)
        held = {(held.pool, held.device) for held in entry.devices}
        given = allocation.devices if allocation else ()
        if any(one.driver == driver and (one.pool, one.device) in held for one in given):
            return Verdict.KEEP
    return Verdict.REPORT if entry.answered_in(boot_id) else Verdict.RELEASE


class Reconciler:
    """Applies the verdicts. `release` takes a claim back if its entry is still the given one.

    One that cannot be taken back, or whose card hangs, keeps no other from it.
    """

    def __init__(
        self,
        api: Api,
        executor: Executor,
        settings: PrepareSettings,
        *,
        observer: Observer,
        release: Callable[[Entry], Coroutine[Any, Any, None]],
    ) -> None:
        self._api = api
        self._executor = executor
        self._settings = settings
        self._release = release
        self._observer = observer
        self._complaints = Complaints(observer)
        self._suspects: frozenset[str] = frozenset()
        self._releasing: dict[str, asyncio.Task[None]] = {}

    async def reconcile(self) -> None:
        """Compares every entry with its claim. An API server that is away changes nothing.

        An entry is reported only if it was the same a pass before: for a few seconds every
        force-deleted pod looks like that.
        """
        gone: list[Entry] = []
        try:
            overdue = await self._overdue(gone)
        except (DragoonError, TimeoutError) as error:
            problems = {"": f"the journal cannot be compared with the API: {error}"}
        else:
            problems = {uid: text for uid, text in overdue.items() if uid in self._suspects}
            self._suspects = frozenset(overdue)
        self._complaints.are(problems | await self._release_all(gone))

    async def _overdue(self, gone: list[Entry]) -> dict[str, str]:
        """What the kubelet should have taken back, by claim UID. gone: gets what we take back."""
        contents = await asyncio.to_thread(self._executor.journal.contents)
        boot_id = await asyncio.to_thread(self._executor.effects.boot_id)
        overdue: dict[str, str] = {}
        for entry in contents.entries:
            claim = await self._claim_of(entry)
            match judge(entry, claim, driver=self._settings.driver, boot_id=boot_id):
                case Verdict.RELEASE:
                    gone.append(entry)
                case Verdict.REPORT:
                    overdue[entry.uid] = _complaint(entry)
                case Verdict.KEEP if claim is not None and entry.answered_in(boot_id):
                    self._observer(Compared(entry, claim))
        return overdue

    async def _release_all(self, gone: Iterable[Entry]) -> dict[str, str]:
        """Takes claims back one after the other, and says what kept one from it, by claim UID.

        One that takes long, for its card hangs, is not waited for again, nor begun anew before it
        has ended.
        """
        for entry in gone:
            if entry.uid not in self._releasing:
                begun = asyncio.create_task(self._release(entry))
                self._releasing[entry.uid] = begun
                await asyncio.wait({begun}, timeout=self._settings.cards_s)
        tasks = dict(self._releasing)
        for uid, task in tasks.items():
            if task.done():
                del self._releasing[uid]
        return {uid: text for uid, task in tasks.items() if (text := _failure(task))}

    async def _claim_of(self, entry: Entry) -> Mapping[str, Any] | None:
        try:
            async with asyncio.timeout(self._settings.api_patience_s):
                return await self._api.get(CLAIMS, entry.name, namespace=entry.namespace)
        except ApiNotFoundError:
            return None


def _failure(release: asyncio.Task[None]) -> str:
    """Why a claim that has gone is not released; empty when it is. Raises what is no DragoonError."""
    try:
        if release.done():
            release.result()
            return ""
        why: object = "its GPU does not answer"
    except DragoonError as error:
        why = error
    return f"its claim has gone, and it cannot be taken back: {why}"


def _complaint(entry: Entry) -> str:
    return (
        f"claim {entry.claim} is prepared here but does not exist any more, or has other devices: "
        "its GPUs stay reserved until the kubelet takes it back; if no container uses them, "
        "reboot the node"
    )
