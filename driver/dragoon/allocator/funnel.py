"""The funnel of each request: how many devices every step leaves, and the first losers.

Made after the search and apart from it. Unlike the search it looks at every device of the node, so
that its numbers do not depend on where the search stopped.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from dragoon.allocator.constraints import attribute_of
from dragoon.allocator.findings import (
    Explanation,
    Funnel,
    Group,
    GroupFinding,
    Loser,
    PoolNote,
    Step,
)
from dragoon.allocator.losing import Entry, tests_of
from dragoon.allocator.model import Claim, Constraint, DeviceId, Facts, Request
from dragoon.allocator.problem import Chosen, Problem, Solution
from dragoon.cel.values import show

_NAMED: Final = 3
"""Losers that a step names; the others are counted."""
_SELECTING: Final = 4
"""The first steps: they say which devices are wanted, the others which can be had."""


def explain(problem: Problem, solution: Solution | None) -> Explanation:
    """The funnels of all requests. A selector that fails on a device takes that device out."""
    entries = [
        Entry(pool, slice_, device)
        for pool in problem.pools
        if not pool.problem
        for slice_, device in pool.devices()
    ]
    funnels: list[Funnel] = []
    groups: list[GroupFinding] = []
    for index, claim in enumerate(problem.claims):
        left: dict[str, list[Entry]] = {}
        of_claim: list[Funnel] = []
        for wanted in claim.requests:
            for request in wanted.alternatives:
                funnel, left[request.name] = _funnel(request, claim, problem, entries)
                if wanted.prioritized:
                    funnel = replace(funnel, alternative_of=wanted.name)
                of_claim.append(funnel)
        groups += (_group(claim, constraint, left, of_claim) for constraint in claim.constraints)
        if solution is not None:
            of_claim = [
                _with_choice(funnel, claim, solution, index, entries) for funnel in of_claim
            ]
        funnels += of_claim
    notes = tuple(PoolNote(str(pool.id), pool.problem) for pool in problem.pools if pool.problem)
    return Explanation(problem.node.name, tuple(funnels), tuple(groups), notes)


def _funnel(
    request: Request, claim: Claim, problem: Problem, entries: Sequence[Entry]
) -> tuple[Funnel, list[Entry]]:
    left = list(entries)
    steps: list[Step] = []
    for name, test in tests_of(request, claim, problem):
        kept: list[Entry] = []
        losers: list[Loser] = []
        for entry in left:
            reason = test(entry)
            if reason:
                losers.append(Loser(entry.id, reason))
            else:
                kept.append(entry)
        left = kept
        steps.append(Step(name, len(left), len(losers), _telling(losers)))
    needed = max(1, steps[_SELECTING - 1].left) if request.everything else request.count
    funnel = Funnel(
        str(claim),
        request.name,
        request.class_name,
        needed,
        len(entries),
        tuple(steps),
        _ids(left),
        everything=request.everything,
    )
    return funnel, left


def _telling(losers: Sequence[Loser]) -> tuple[Loser, ...]:
    """The first losers, each other reason before the same reason again.

    A card with seven placements of one size must not hide that it has other sizes (case C17).
    """
    by_reason = {one.reason: one for one in reversed(losers)}
    others = [one for one in losers if by_reason[one.reason] is one]
    again = [one for one in losers if by_reason[one.reason] is not one]
    return tuple([*others, *again][:_NAMED])


def _group(
    claim: Claim, constraint: Constraint, left: dict[str, list[Entry]], funnels: Sequence[Funnel]
) -> GroupFinding:
    """What the constraint leaves, if of each request the cheapest alternative is taken."""
    covered = [
        request
        for wanted in claim.requests
        for request in wanted.alternatives
        if constraint.covers(request)
    ]
    facts: dict[DeviceId, Facts] = {
        entry.id: entry.device.facts for request in covered for entry in left[request.name]
    }
    groups: dict[str, list[DeviceId]] = {}
    without: list[DeviceId] = []
    for device, its in facts.items():
        value = attribute_of(its, constraint.attribute)
        if value is None or not value[0]:
            without.append(device)
        else:
            groups.setdefault(show(value[1]), []).append(device)
    largest_first = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    counts = _least_counts(claim, constraint, funnels)
    shareable = any(its.multiple for its in facts.values())
    return GroupFinding(
        str(claim),
        constraint.attribute,
        tuple(request.name for request in covered),
        # Requests may have the same device where it can be shared.
        max(counts, default=0) if shareable and not constraint.distinct else sum(counts),
        tuple(Group(value, tuple(ids)) for value, ids in largest_first),
        tuple(without),
        constraint.distinct,
    )


def _least_counts(claim: Claim, constraint: Constraint, funnels: Sequence[Funnel]) -> list[int]:
    """Of each request, how many devices the constraint binds at least."""
    needed = {funnel.request: funnel.needed for funnel in funnels}
    return [
        min(needed[one.name] if constraint.covers(one) else 0 for one in wanted.alternatives)
        for wanted in claim.requests
    ]


def _with_choice(
    funnel: Funnel, claim: Claim, solution: Solution, index: int, entries: Sequence[Entry]
) -> Funnel:
    """The funnel with the devices chosen for its request and those passed over for them."""
    chosen = [one for one in solution[index] if one.request.name == funnel.request]
    if not chosen:
        return funnel
    ids = tuple(one.id for one in chosen)
    order = [entry.id for entry in entries]
    last = max(order.index(id_) for id_ in ids)
    usable = set(funnel.left)
    passed = [entry for entry in entries[:last] if entry.id in usable and entry.id not in ids]
    losers = tuple(
        Loser(entry.id, _why_passed_over(entry, chosen[0], claim, solution, index))
        for entry in passed[:_NAMED]
    )
    return replace(funnel, chosen=ids, passed_over=losers)


def _why_passed_over(
    entry: Entry, chosen: Chosen, claim: Claim, solution: Solution, index: int
) -> str:
    for of_claim in solution:
        for one in of_claim:
            if one.id == entry.id:
                return f"taken by request {one.request.name} of the same pod"
    for constraint in claim.constraints:
        if not constraint.covers(chosen.request):
            continue
        value = attribute_of(entry.device.facts, constraint.attribute)
        if value is None:
            return f"has no attribute {constraint.attribute}"
        for one in solution[index]:
            other = attribute_of(one.candidate.device.facts, constraint.attribute)
            if not constraint.covers(one.request) or other is None:
                continue
            if constraint.distinct and other == value:
                return f"{constraint.attribute} is {show(value[1])} as on {one.id.device}"
            if not constraint.distinct and other != value:
                return f"{constraint.attribute} is {show(value[1])}, not {show(other[1])}"
    return "with it, the rest could not be placed"


def _ids(entries: Iterable[Entry]) -> tuple[DeviceId, ...]:
    return tuple(entry.id for entry in entries)
