"""What a Gang keeps others from, beside what its claims hold. Pure."""

from collections.abc import Iterable

from dragoon.allocator.model import PoolId
from dragoon.api.gang import GangObject
from dragoon.gang.protocol.facts import pool_id


def pods_of(gang: GangObject) -> Iterable[str]:
    """The UIDs of the pods that the plan of a gang names."""
    plan = gang.status.plan
    if plan is not None:
        yield from (member.uid for member in plan.members)
        yield from (member.uid for member in plan.held)


def pools_of(gang: GangObject | None) -> Iterable[PoolId]:
    """The pools in which a gang has devices, or in which some are kept for it."""
    if gang is not None:
        for part in (gang.status.plan, gang.status.reservation):
            yield from map(pool_id, () if part is None else part.pools)


def promises_of(gang: GangObject | None) -> tuple[str, ...]:
    """Another one when others may have more or less: its round, slots that wait, what is kept."""
    plan = None if gang is None else gang.status.plan
    kept = None if gang is None else gang.status.reservation
    vacated = () if plan is None else (one.uid for one in plan.held if one.vacated)
    return ("" if plan is None else plan.packed, "" if kept is None else kept.packed, *vacated)
