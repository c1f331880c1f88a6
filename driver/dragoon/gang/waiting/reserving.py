"""For which gang devices are kept while it waits, and when no more. Pure.

Under saturation whatever becomes free is taken by somebody small at once: a gang that needs much
never sees enough of it free. So after a while devices in use are kept for the largest one that
waits: the highest priority first, then the most devices, then the oldest.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from dragoon.api.gang import GangObject, Phase
from dragoon.api.gang_plan import Step
from dragoon.gang.records import Raw

_GRACE: Final = timedelta(seconds=60)
"""Members may be missing for so long: a Job makes them again."""
_SERVED: Final = frozenset((Step.UNGATE, Step.HOLD))
_OVER: Final = frozenset((Phase.INVALID, Phase.FINISHED))


@dataclass(frozen=True, slots=True)
class ReserveSettings:
    """after: seconds for which a gang has waited, complete, before devices are kept for it.

    most: gangs for which they are kept at one time; 0 for none.
    """

    after: float = 300.0
    most: int = 1


@dataclass(frozen=True, slots=True)
class Waiting:
    """A gang, as far as it matters here.

    devices: that it asks for. has_no_room: the planner said so, and that there may be some one day.
    is_spoiled: what is kept for it cannot be used by it any more. tried_in_vain: there was nothing
    to keep for it a short while ago.
    """

    gang: GangObject
    priority: int
    devices: int
    has_no_room: bool
    is_spoiled: bool = False
    tried_in_vain: bool = False

    @property
    def is_reserved(self) -> bool:
        return self.gang.status.reservation is not None


@dataclass(frozen=True, slots=True)
class Decision:
    """ending: for whom nothing is kept any more. starting: for whom something is to be kept.

    displaced: for whom it is kept until something is for those: they may find nothing to keep.
    """

    ending: tuple[GangObject, ...] = ()
    starting: tuple[GangObject, ...] = ()
    displaced: tuple[GangObject, ...] = ()


def decide(gangs: Iterable[Waiting], now: datetime, settings: ReserveSettings) -> Decision:
    """What changes. Nothing starts before all that ends by itself has ended."""
    known = list(gangs)
    reserved = [one for one in known if one.is_reserved]
    kept = [one for one in reserved if not (one.is_spoiled or is_over(one.gang, now))]
    rivals = [one for one in known if not one.is_reserved and _may_have(one, now, settings)]
    most = max(0, settings.most)
    stay = sorted(kept, key=_place)[:most]
    ending = tuple(one.gang for one in reserved if one not in stay)
    if ending:
        return Decision(ending)
    first = sorted([*kept, *rivals], key=_place)[:most]
    return Decision(
        starting=tuple(one.gang for one in first if not one.is_reserved),
        displaced=tuple(one.gang for one in kept if one not in first),
    )


def is_over(gang: GangObject, now: datetime) -> bool:
    """Whether a gang for which devices are kept does not wait for them any more."""
    status = gang.status
    served = status.plan is not None and status.plan.step in _SERVED
    if gang.deleting or served or status.phase in _OVER:
        return True
    since = status.missing_since
    return bool(since) and datetime.fromisoformat(since) + _GRACE <= now


def ripe_at(gang: GangObject, settings: ReserveSettings) -> datetime | None:
    """From when on devices may be kept for a gang, None while it is not complete."""
    since = gang.status.complete_since
    return datetime.fromisoformat(since) + timedelta(seconds=settings.after) if since else None


def _may_have(one: Waiting, now: datetime, settings: ReserveSettings) -> bool:
    ripe = ripe_at(one.gang, settings)
    waits = one.has_no_room and one.gang.status.plan is None and not one.gang.deleting
    return waits and not one.tried_in_vain and ripe is not None and ripe <= now


def _place(one: Waiting) -> tuple[int, int, bool, str, tuple[str, str]]:
    """The order; of two that are equal in priority and size the one that has it keeps it."""
    return -one.priority, -one.devices, not one.is_reserved, one.gang.created, one.gang.key


def devices_asked(claims: Iterable[Raw]) -> int:
    """How many devices raw claims ask for; a request for all of a node counts as one."""
    return sum(_count(request) for claim in claims for request in _requests(claim))


def _requests(claim: Raw) -> Iterable[Raw]:
    found: Iterable[Raw] = ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ()
    return found


def _count(request: Raw) -> int:
    """Of alternatives the first counts: it is what is wanted."""
    one: Raw = request.get("exactly") or next(iter(request.get("firstAvailable") or ()), {})
    return int(one.get("count") or 1)
