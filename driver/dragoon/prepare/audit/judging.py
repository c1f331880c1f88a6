"""Whether the processes on the cards are where claims allow them, and within their limits. Pure."""

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import Tier
from dragoon.api.forms import MIB
from dragoon.gpu.model import PciAddress
from dragoon.prepare.audit.looking import Sighting
from dragoon.prepare.audit.pods import AuditedPod, PodRef
from dragoon.prepare.audit.whereabouts import PodPlace
from dragoon.prepare.enforcement.usage import CardUsage, ShareUsage
from dragoon.prepare.journal import Contents, Entry, HeldDevice

_SLACK: Final = 64 * MIB
_SLACK_PARTS: Final = 20


class Cause(enum.StrEnum):
    """What is wrong: the reason of conditions and events, and the label of metrics."""

    WITHOUT_CLAIM = "ProcessWithoutClaim"
    OTHERS_DEVICE = "ProcessOnOthersDevice"
    NOT_LIMITED = "ProcessNotLimited"
    OVER_LIMIT = "MemoryOverLimit"
    OUTSIDE_PODS = "ProcessOutsidePods"


Key = tuple[Cause, PciAddress, str, str, int, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with one container on one card, or with one process of the host.

    claims: those whose devices on the card are concerned; none where nobody has it. pod: None for
    the host, and while the API server does not show it. message: a sentence for people.
    """

    cause: Cause
    card: PciAddress
    message: str
    pod_uid: str = ""
    container_id: str = ""
    pid: int = 0
    started: int = 0
    claims: tuple[ClaimRef, ...] = ()
    pod: PodRef | None = None

    @property
    def key(self) -> Key:
        """The same for the same thing at every look: amounts and further processes do not count."""
        process = (0, 0) if self.pod_uid else (self.pid, self.started)
        return (self.cause, self.card, self.pod_uid, self.container_id, *process)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known when it is judged. pods: by the UID of their cgroups."""

    journal: Contents
    pods: Mapping[str, AuditedPod]
    usage: Sequence[ShareUsage] = ()


_Holder = tuple[Entry, HeldDevice]


def judge(sightings: Iterable[Sighting], known: Known) -> tuple[Finding, ...]:
    """Everything that is wrong now, each once."""
    found: dict[Key, Finding] = {}
    limited: dict[tuple[str, PciAddress], list[Sighting]] = {}
    for one in sightings:
        if one.place is None:
            finding = _of_host(one)
            found[finding.key] = finding
            continue
        holders = list(_holders(one, known.journal))
        allowed = [(holder, _allows(holder, one, known.pods)) for holder in holders]
        mine = [holder for holder, may in allowed if may]
        if any(may is not False for _, may in allowed):
            if mine and all(_is_limited(*holder, known.journal) for holder in mine):
                limited.setdefault((one.place.pod_uid, one.card), []).append(one)
        elif _is_known(one.place, known):
            finding = _of_stranger(one, holders, known)
            found.setdefault(finding.key, finding)
    for (pod_uid, card), together in limited.items():
        for finding in _of_shares(pod_uid, card, together, known):
            found.setdefault(finding.key, finding)
    return tuple(found.values())


def _of_host(one: Sighting) -> Finding:
    return Finding(
        Cause.OUTSIDE_PODS,
        one.card,
        f"{one.process} of the host uses GPU {one.card}, which is offered to pods",
        pid=one.process.pid,
        started=one.started,
    )


def _holders(one: Sighting, journal: Contents) -> Iterator[_Holder]:
    """The devices in which the process runs, and who has them."""
    for entry in journal.held:
        for held in entry.devices:
            here = held.address == str(one.card)
            if here and (held.mig is None or held.mig.uuid == one.mig_uuid):
                yield entry, held


def _allows(holder: _Holder, one: Sighting, pods: Mapping[str, AuditedPod]) -> bool | None:
    """Whether a claim lets the process use its device; None where that cannot be known now."""
    assert one.place is not None  # noqa: S101 - only processes in pods come here
    entry, held = holder
    if entry.pod_uid not in {"", one.place.pod_uid}:
        return False
    pod = pods.get(one.place.pod_uid)
    if pod is None:
        return True if entry.pod_uid else None
    return pod.has(one.place.container_id, entry, held)


def _is_limited(entry: Entry, held: HeldDevice, journal: Contents) -> bool:
    """How a newer version limits a share is not known here."""
    share = held.share
    return share is not None and share.tier is not Tier.NONE and entry in journal.entries


def _is_known(place: PodPlace, known: Known) -> bool:
    """Whether it can be told that a pod has no claim: its entry may be one that is unreadable."""
    pod = known.pods.get(place.pod_uid)
    return not known.journal.unreadable or (pod is not None and not pod.has_claims)


def _of_stranger(one: Sighting, holders: Iterable[_Holder], known: Known) -> Finding:
    owners = tuple(dict.fromkeys(e.claim for e, held in holders if not held.admin_access))
    where = f"GPU {one.card}"
    if one.mig_uuid is not None:
        where = f"{one.mig_uuid} of {where}"
    if owners:
        names = ", ".join(map(str, owners))
        told = f"uses {where}, which its container has no claim of: it belongs to claim {names}"
        return _about(one, known, Cause.OTHERS_DEVICE, told, owners)
    told = f"uses {where}, which its container has no claim of"
    return _about(one, known, Cause.WITHOUT_CLAIM, told)


def _of_shares(
    pod_uid: str, card: PciAddress, together: Sequence[Sighting], known: Known
) -> Iterator[Finding]:
    """What is wrong with the limits of one pod on one card."""
    holders = [
        (entry, held)
        for entry in known.journal.entries
        for held in entry.devices
        if entry.pod_uid == pod_uid
        and held.address == str(card)
        and _is_limited(entry, held, known.journal)
    ]
    claims = tuple(dict.fromkeys(entry.claim for entry, _ in holders))
    names = {str(card), *(held.uuid for _, held in holders)}
    measured = list(_measured(pod_uid, names, known.usage))
    for one in together:
        reason = _not_limited(one, measured)
        if reason:
            told = f"uses GPU {card} without a limit: {reason}"
            yield _about(one, known, Cause.NOT_LIMITED, told, claims)
    limit = sum(held.share.memory for _, held in holders if held.share)
    used = sum(one.process.used_bytes or 0 for one in together)
    if used > limit + max(_SLACK, limit // _SLACK_PARTS):
        told = f"uses {_gib(used)} of GPU {card}, its shares are {_gib(limit)}"
        yield _about(_largest(together), known, Cause.OVER_LIMIT, told, claims)


def _measured(
    pod_uid: str, names: set[str], usage: Iterable[ShareUsage]
) -> Iterator[tuple[ShareUsage, CardUsage | None]]:
    """What limits the pod on a card of these names; None for what cannot be read."""
    for of in usage:
        if of.pod_uid == pod_uid:
            for card in of.cards or (None,):
                if card is None or card.card in names:
                    yield of, card


def _not_limited(one: Sighting, measured: Sequence[tuple[ShareUsage, CardUsage | None]]) -> str:
    """Why nothing keeps a process to a limit; empty where something does."""
    reasons = [_reason(one, of, card) for of, card in measured]
    if not reasons:
        return "none was set"
    return "" if "" in reasons else reasons[0]


def _reason(one: Sighting, of: ShareUsage, card: CardUsage | None) -> str:
    if card is None:
        return of.problem
    if not card.limit:
        return "the driver's cap is gone" if not of.container else "the limit was removed"
    counted = card.pids is None or one.inner_pid is None or one.inner_pid in card.pids
    return "" if counted else "the library that limits it is not loaded in it"


def _largest(together: Sequence[Sighting]) -> Sighting:
    return max(together, key=lambda one: one.process.used_bytes or 0)


def _about(
    one: Sighting, known: Known, cause: Cause, what: str, claims: tuple[ClaimRef, ...] = ()
) -> Finding:
    assert one.place is not None  # noqa: S101 - as above
    pod = known.pods.get(one.place.pod_uid)
    identity = one.place.container_id
    container = pod.containers.get(identity, identity[:12]) if pod else identity[:12]
    name = str(pod.ref) if pod else one.place.pod_uid
    within = f"container {container} of pod {name}" if container else f"pod {name}"
    return Finding(
        cause,
        one.card,
        f"{one.process} in {within} {what}",
        pod_uid=one.place.pod_uid,
        container_id=identity if cause is not Cause.OVER_LIMIT else "",
        pid=one.process.pid,
        started=one.started,
        claims=claims,
        pod=pod.ref if pod else None,
    )


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
