"""What is done about a Workload, or about an AdmissionCheck, from what is seen of it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from dragoon.api.gang_plan import stamp
from dragoon.gang.kueue.actions import Action, Again, Ask, Drop, Say, SetConditions, Wake
from dragoon.gang.kueue.answering import Answer, Verdict
from dragoon.gang.kueue.apis import CONTROLLER
from dragoon.gang.kueue.members import podset_updates
from dragoon.gang.kueue.model import ADMISSION_CHECK, Check, CheckState, Raw, State, Workload

_DOUBLINGS: Final = 10
_KEPT: Final = ("name", "retryCount")
"""Of an entry whose state becomes another one."""
_NO_CLAIMS: Final = "no pod of it names a resource claim: nothing to be placed by this check"


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds. promise: how long devices are kept for a Workload that is Ready.

    first_retry, last_retry: until Kueue tries again, the first time and at most. reject_after: how
    long `never` has to be the answer before a Workload is rejected, as nodes may be coming up.
    remind: between two writes in which only the reason differs.
    """

    promise: float = 300.0
    first_retry: int = 5
    last_retry: int = 60
    reject_after: float = 600.0
    remind: float = 5.0


@dataclass(frozen=True, slots=True)
class Pods:
    """Pods that belong to a Workload. placed: whose claims are allocated, or who are planned."""

    alive: int = 0
    placed: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """A Workload as it is seen. ours: the names of the checks that are ours.

    answer: the planner's, None before it was asked. promised: devices are kept for it. rebuilt: it
    was asked since this process leads. since: when that began. not_before: the tick before which
    another Retry is not said. known: the reason that was said last, and reminded: the tick at which
    it was written once more. waking: room may have come up.
    """

    workload: Workload
    ours: frozenset[str]
    now: datetime
    tick: float
    since: datetime
    answer: Answer | None = None
    promised: bool = False
    rebuilt: bool = False
    pods: Pods = field(default_factory=Pods)
    not_before: float = 0.0
    known: str = ""
    reminded: float = 0.0
    waking: bool = False

    @property
    def checks(self) -> tuple[CheckState, ...]:
        return tuple(one for one in self.workload.checks if one.name in self.ours)

    @property
    def others(self) -> tuple[CheckState, ...]:
        return tuple(one for one in self.workload.checks if one.name not in self.ours)


def decide(view: View, settings: Settings) -> tuple[Action, ...]:
    """What is next for a Workload; nothing where it is Kueue's turn."""
    workload, states = view.workload, {one.state for one in view.checks}
    if workload.is_over or not states:
        return _dropped(view, "it is over")
    if not workload.reserved:
        return (*_dropped(view, "it has no quota any more"), *_without_quota(view, settings))
    if workload.evicted or State.REJECTED in states:
        return _dropped(view, "Kueue takes its quota back")
    if State.RETRY in states:
        return _sent_back(view, settings)
    if State.PENDING in states:
        return _pending(view, settings)
    return _ready(view, settings)


def _dropped(view: View, why: str) -> tuple[Action, ...]:
    return (Drop(why),) if view.promised else ()


def _pending(view: View, settings: Settings) -> tuple[Action, ...]:
    """It has quota and waits for us."""
    if not view.workload.members:
        return (_say(view, State.READY, _NO_CLAIMS),)
    if any(one.state is not State.READY for one in view.others):
        # A node that another check asks for is there when that is Ready; and promises are short.
        return _dropped(view, "another check is not ready")
    if view.answer is None:
        return (Ask(hold=True),)
    return (_verdict(view, view.answer, settings),)


def _verdict(view: View, answer: Answer, settings: Settings) -> Action:
    match answer.verdict:
        case Verdict.FITS:
            updates = podset_updates(view.workload)
            return _say(view, State.READY, answer.message, podSetUpdates=updates)
        case Verdict.WRONG:
            return _say(view, State.REJECTED, answer.message)
        case Verdict.NEVER if answer.never_for >= settings.reject_after:
            return _say(view, State.REJECTED, answer.message)
    if view.tick < view.not_before:
        # This Kueue knows no requeueAfterSeconds: it would be here again at once.
        return Again(view.not_before)
    return _retry(view, settings, answer.message)


def _sent_back(view: View, settings: Settings) -> tuple[Action, ...]:
    """Kueue 0.17 takes the quota back only when the next try is due: until then it may fit."""
    answer = view.answer
    if any(one.state is not State.READY for one in view.others):
        return _dropped(view, "another check is not ready")
    if answer is None:
        return (Ask(hold=True),) if view.waking else _dropped(view, "it was sent back")
    if answer.verdict is Verdict.FITS:
        updates = podset_updates(view.workload)
        said = _say(view, State.READY, answer.message, podSetUpdates=updates)
        return (replace(said, at_once=True),)
    return _reminder(view, settings, answer.message)


def _retry(view: View, settings: Settings, message: str) -> Say:
    return _say(view, State.RETRY, message, requeueAfterSeconds=wait_before(view, settings))


def wait_before(view: View, settings: Settings) -> int:
    """Seconds until the next try: twice as long each time."""
    tries = min(_DOUBLINGS, max(one.retries for one in view.checks))
    return min(settings.last_retry, settings.first_retry << tries)


def _ready(view: View, settings: Settings) -> tuple[Action, ...]:
    """It may start: devices are kept for it until its pods have theirs, or for so long."""
    workload = view.workload
    if view.pods.placed >= workload.members:
        return _dropped(view, "its pods are placed")
    since = max(view.since, *(one.since for one in view.checks))
    left = settings.promise - (view.now - since).total_seconds()
    if left <= 0:
        if workload.admitted and view.pods.alive and not view.pods.placed:
            message = (
                f"its pods are there and none could be placed within {settings.promise:g} s: others "
                "have taken what was free"
            )
            return (*_dropped(view, "the time is over"), _retry(view, settings, message))
        return _dropped(view, "the time is over")
    again = Again(view.tick + left)
    if view.promised or view.rebuilt:
        return (again,)
    return (Ask(hold=True), again)


def _without_quota(view: View, settings: Settings) -> tuple[Action, ...]:
    """It was sent back by us, or never had quota. Kueue tries it again when its time has come."""
    workload, answer = view.workload, view.answer
    if workload.evicted != ADMISSION_CHECK or not workload.members:
        return ()
    waits = workload.requeue_at is not None and workload.requeue_at > view.now
    if view.waking and waits and answer is None:
        return (Ask(hold=False),)
    if answer is not None and answer.verdict is Verdict.FITS:
        alone = not any(one.asks_to_wait for one in view.others)
        return (Wake(workload.ref),) if waits and alone else ()
    return _reminder(view, settings, view.known if answer is None else answer.message)


def _reminder(view: View, settings: Settings, message: str) -> tuple[Action, ...]:
    """Kueue wipes the reason when it takes the quota back; it stays where people look for it."""
    if not message or all(one.message == message for one in view.checks):
        return ()
    due = view.reminded + settings.remind
    if view.reminded and view.tick < due:
        return (Again(due),)
    return (_say(view, None, message),)


def _say(view: View, state: State | None, message: str, **more: Any) -> Say:
    """The entries of our checks anew, those of others as they are. None: another message only."""
    entries: list[Raw] = []
    for check in view.workload.checks:
        if check.name not in view.ours:
            entries.append(check.raw)
        elif state is None:
            entries.append({**check.raw, "message": message})
        else:
            kept = {name: check.raw[name] for name in _KEPT if name in check.raw}
            changed = {
                "state": str(state),
                "lastTransitionTime": stamp(view.now),
                "message": message,
            }
            entries.append({**kept, **changed, **more})
    return Say(view.workload.ref, state, message, tuple(entries))


def decide_check(check: Check, now: datetime) -> SetConditions | None:
    """Whether an AdmissionCheck of ours is active: Kueue admits nothing by one that is not."""
    if check.controller != CONTROLLER:
        return None
    status, reason, message = "True", "Active", "Workloads are checked by the gang planner"
    if check.parameters:
        status, reason = "False", "BadParameters"
        message = f"spec.parameters: found {check.parameters}, allowed is none"
    old = next((one for one in check.conditions if one["type"] == "Active"), None)
    new = {
        "type": "Active",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": check.generation,
    }
    if old is not None and all(old.get(name) == value for name, value in new.items()):
        return None
    same = old is not None and old["status"] == status
    new["lastTransitionTime"] = (
        old["lastTransitionTime"] if old is not None and same else stamp(now)
    )
    return SetConditions(check.ref, (*_without(check.conditions, "Active"), new))


def _without(conditions: Sequence[Raw], type_: str) -> list[Raw]:
    return [one for one in conditions if one["type"] != type_]
