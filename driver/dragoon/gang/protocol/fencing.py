"""Fence, wait, look again. Pure.

A device that looks free may be in flight: kube-scheduler writes about three times per pod, at its
own rate. So its new choices are stopped first, by a rule on each planned pool; then its decisions
in flight are waited for; what is free after that stays free.
"""

from datetime import timedelta

import msgspec

from dragoon.api.gang_plan import Plan, Step, stamp
from dragoon.gang.protocol import rounds
from dragoon.gang.protocol.actions import (
    Action,
    DeleteRule,
    Journal,
    RequestPlan,
    StartWait,
    WaitUntil,
)
from dragoon.gang.protocol.facts import (
    broken,
    fences,
    missing_fences,
    needs_fence,
    overlaps,
    pool_id,
    unusable,
)
from dragoon.gang.protocol.model import Backlog, GangView, Settings, Wait
from dragoon.gang.protocol.rounds import advance, moment, nominations

_TRIED_QPS = 50.0


def fence(view: GangView, plan: Plan, settings: Settings) -> tuple[Action, ...]:
    """Creates the rules; when all stand, the wait is journaled."""
    trouble = broken(view, plan.members)
    if trouble:
        return advance(view, plan, Step.RELEASE, trouble)
    wanted = [pool_id(pool) for pool in plan.pools]
    missing = missing_fences(view, wanted)
    if missing:
        # Rules that have to be written now did not stand when it was waited for them.
        return (Journal(view.gang, unfenced(plan)),) if plan.fenced else missing
    kept = {*wanted, *view.reserved}
    extra = tuple(DeleteRule(rule) for pool, rule in fences(view).items() if pool not in kept)
    if extra:
        return extra
    if plan.fenced:
        return advance(view, plan, Step.WAIT)
    seconds = longest_wait(view.backlog, settings)
    until = stamp(view.now + timedelta(seconds=seconds))
    stands = msgspec.structs.replace(plan, fenced=moment(view.now), wait_until=until)
    # The rules stand now: what it takes to journal that is time waited.
    return (_start_wait(view, stands, seconds), *advance(view, stands, Step.WAIT))


def unfenced(plan: Plan) -> Plan:
    """The plan of which a rule is missing: what was waited for is void."""
    return msgspec.structs.replace(plan, fenced="", wait_until="")


def longest_wait(backlog: Backlog, settings: Settings) -> float:
    """Seconds after which kube-scheduler's decisions from before the fence have been written.

    120 ms for each claim in flight at 50 qps lost nothing, 60 ms lost 22 of 59; at 1000 qps the
    API server is the limit, and 60 ms lost nothing. The API gives no bound.
    """
    in_flight = min(len(backlog.pending), backlog.free)
    each = max(settings.per_claim * _TRIED_QPS / settings.qps, settings.least_per_claim)
    return settings.least_wait + each * in_flight


def wait(view: GangView, plan: Plan, settings: Settings) -> tuple[Action, ...]:
    """Waits, then looks again and commits, or plans anew under the fence.

    The nominations are written meanwhile: there is time for them.
    """
    trouble = broken(view, plan.members)
    if trouble:
        return advance(view, plan, Step.RELEASE, trouble)
    if missing_fences(view, map(pool_id, plan.pools)):
        return advance(view, unfenced(plan), Step.FENCE, "a rule was deleted by somebody else")
    if not any(needs_fence(view, pool_id(pool)) for pool in plan.pools):
        return _look_again(view, plan)
    begun = _running_wait(view, plan)
    if begun is None:
        return (_start_wait(view, plan, longest_wait(view.backlog, settings)),)
    wake = _wake(view, begun, settings)
    if view.tick < wake:
        return (*nominations(view, plan), WaitUntil(wake))
    return _look_again(view, plan)


def _start_wait(view: GangView, plan: Plan, seconds: float) -> StartWait:
    """seconds: how long it lasts at most."""
    return StartWait(Wait(plan.fenced, view.tick, view.tick + seconds, view.backlog.pending))


def _running_wait(view: GangView, plan: Plan) -> Wait | None:
    """The wait for these rules, if this process began it: another one's clock says nothing."""
    found = view.wait
    if found is None or found.fenced != plan.fenced:
        return None
    return found if found.started <= view.tick else None


def _wake(view: GangView, begun: Wait, settings: Settings) -> float:
    """When the wait ends: early, where all that was pending at the fence is decided."""
    undecided = begun.pending & view.backlog.pending
    return begun.until if undecided else begun.started + settings.least_wait


def _look_again(view: GangView, plan: Plan) -> tuple[Action, ...]:
    """Commits if every planned device is still free; what was lost is planned again.

    What is planned anew stays under the rules that stand: where pods wait, most of what looked
    free was lost, and only a fence gets hold of devices as they drain.
    """
    lost = overlaps(view)
    trouble = unusable(view) or (
        f"device {lost[0].pool}/{lost[0].devices[0]} was taken by another claim" if lost else ""
    )
    if not trouble:
        return advance(view, plan, Step.COMMIT)
    asked = tuple(member.uid for member in plan.members)
    proposal = view.proposal
    if proposal is None or proposal.asked != frozenset(asked):
        return (RequestPlan(asked),)
    if proposal.refusal:
        return advance(view, plan, Step.RELEASE, f"{trouble}; {proposal.refusal}")
    return rounds.begin(view, proposal)
