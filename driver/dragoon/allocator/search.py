"""The search: which devices the claims of one pod get on one node.

Exactly kube-scheduler's (`structured` of k8s.io/dynamic-resource-allocation 0.37.2): claims,
requests, alternatives and devices in order, depth first with backtracking, the first full solution
wins. Within a request devices are taken in increasing position. A device whose selectors fail ends
the attempt only when the search comes to it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dragoon.allocator.candidates import Candidate, Query, candidates, query_of
from dragoon.allocator.constraints import trackers
from dragoon.allocator.model import Request
from dragoon.allocator.problem import (
    ATTEMPT_LIMIT,
    MAX_DEVICES,
    AllDevicesError,
    Attempts,
    Chosen,
    Problem,
    Solution,
    TooManyDevicesError,
)
from dragoon.allocator.taints import preventing
from dragoon.allocator.trial import Trial
from dragoon.errors import UnsupportedError

_MAX_DEPTH: Final = 600
"""Levels of the search, which Python's stack bounds: one per device, two per request and claim."""

_FOUND, _MISSED, _EXCEEDED = range(3)
"""How a part of the search ended. Exceeded: the claim would have more devices than it can have."""


def solve(problem: Problem, *, attempts: int = ATTEMPT_LIMIT) -> Solution | None:
    """The first solution, or None where there is none. Gives up after that many attempts.

    Raises as solve_within does.
    """
    return solve_within(problem, Attempts(attempts))


def solve_within(problem: Problem, attempts: Attempts) -> Solution | None:
    """The same with attempts that others share.

    Raises SelectorError, CapacityError, AllDevicesError and TooManyDevicesError where
    kube-scheduler's attempt ends with an error, UnsupportedError where the search comes to
    something it cannot judge, SearchStoppedError when no attempts are left.
    """
    return _Search(problem, attempts).run()


@dataclass(slots=True, eq=False)
class _Wish:
    """A request or an alternative of one. claim and number: where it stands.

    members: pool and device of each, where all are wanted. lists: candidates per pool, as far as
    looked at.
    """

    claim: int
    number: int
    request: Request
    query: Query
    count: int
    members: list[tuple[int, Candidate]]
    lists: list[Sequence[Candidate] | None]


class _Search:
    """One run. Mutable: what is chosen so far."""

    def __init__(self, problem: Problem, attempts: Attempts) -> None:
        self._problem = problem
        self._attempts = attempts
        self._trials = [
            Trial(pool, problem.usage_of(pool)) for pool in problem.pools if not pool.problem
        ]
        self._wishes = [self._wishes_of(index) for index in range(len(problem.claims))]
        self._constraints = [trackers(claim) for claim in problem.claims]
        self._chosen: list[list[Chosen]] = [[] for _ in problem.claims]

    def run(self) -> Solution | None:
        depth = 2 * len(self._wishes) + sum(
            2 + max(min(wish.count, MAX_DEVICES) for wish in alternatives)
            for of_claim in self._wishes
            for alternatives in of_claim
        )
        if depth > _MAX_DEPTH:
            raise UnsupportedError(f"Dragoon does not search {depth} levels for one pod")
        return tuple(map(tuple, self._chosen)) if self._claim(0) == _FOUND else None

    def _wishes_of(self, index: int) -> list[list[_Wish]]:
        """What a claim wishes, checked against the number of devices it can have."""
        claim = self._problem.claims[index]
        found: list[list[_Wish]] = []
        total = 0
        for number, wanted in enumerate(claim.requests):
            found.append([self._wish(index, number, request) for request in wanted.alternatives])
            total += min(wish.count for wish in found[-1])
            if total > MAX_DEVICES:
                raise TooManyDevicesError(
                    f"claim {claim}: asks for {total} devices, a claim can have {MAX_DEVICES}"
                )
        return found

    def _wish(self, index: int, number: int, request: Request) -> _Wish:
        claim = self._problem.claims[index]
        query = query_of(request, self._problem.class_of(request, claim).selectors)
        wish = _Wish(index, number, request, query, request.count, [], [None] * len(self._trials))
        if request.everything:
            self._look_at_everything(wish)
            wish.count = len(wish.members)
        return wish

    def _look_at_everything(self, wish: _Wish) -> None:
        for at, pool in enumerate(self._problem.pools):
            if pool.problem:
                raise AllDevicesError(
                    f"claim {self._problem.claims[wish.claim]}, request {wish.request.name}: asks "
                    f"for all devices, but pool {pool.id} is not complete: {pool.problem}"
                )
            # No pool so far has a problem, so the trials are those of the same pools.
            for candidate in self._candidates(wish, at):
                self._raise_failure(wish, candidate)
                wish.members.append((at, candidate))

    def _candidates(self, wish: _Wish, at: int) -> Sequence[Candidate]:
        known = wish.lists[at]
        if known is None:
            known = wish.lists[at] = candidates(self._trials[at].pool, wish.query)
        return known

    def _claim(self, index: int) -> int:
        return _FOUND if index == len(self._wishes) else self._request(index, 0)

    def _request(self, index: int, number: int) -> int:
        """Finds devices for everything from this request on."""
        of_claim = self._wishes[index]
        if number == len(of_claim):
            # What a later claim has too much of is nothing this claim's limit is about.
            return _MISSED if (outcome := self._claim(index + 1)) == _EXCEEDED else outcome
        first, pool, start = self._start(index, number)
        if not self._problem.claims[index].requests[number].prioritized:
            return self._fill(of_claim[number][0], 0, pool, start)
        exceeded = True
        for alternative, wish in enumerate(of_claim[number][first:], first):
            outcome = self._fill(wish, 0, *((pool, start) if alternative == first else (0, 0)))
            if outcome == _FOUND:
                return _FOUND
            exceeded = exceeded and outcome == _EXCEEDED
        return _EXCEEDED if exceeded else _MISSED

    def _start(self, index: int, number: int) -> tuple[int, int, int]:
        """Alternative, pool and position before which nothing new is found for a request.

        The first device of a twin does not come before the first one of its twin.
        """
        twin = self._problem.twins.get(index)
        if number or twin is None:
            return 0, 0, 0
        before = self._chosen[twin][0]
        for alternative, wish in enumerate(self._wishes[twin][0]):
            if wish.request is not before.request:
                continue
            if wish.request.everything:
                return alternative, 0, 0
            for at, found in enumerate(wish.lists):
                if found is not None and before.candidate in found:
                    return alternative, at, found.index(before.candidate)
        raise AssertionError("a chosen device is one of the candidates")

    def _fill(self, wish: _Wish, filled: int, pool: int, start: int) -> int:
        """Finds the rest of a wish, of which `filled` devices are found, and all after it.

        pool, start: the position in the order of candidates from which it may still choose.
        """
        if filled >= wish.count:
            return self._request(wish.claim, wish.number + 1) if wish.count else _MISSED
        needed = wish.count - filled
        if needed > MAX_DEVICES - len(self._chosen[wish.claim]):
            return _EXCEEDED
        if needed > 1 and not self._may_suffice(wish, needed, pool, start):
            return _MISSED
        for at, position, candidate in self._choices(wish, filled, pool, start):
            trial = self._trials[at]
            if not self._take(wish, trial, candidate):
                continue
            outcome = self._fill(wish, filled + 1, at, position + 1)
            if outcome == _FOUND:
                return _FOUND
            self._give_back(wish, trial, candidate)
            if outcome == _EXCEEDED:
                return _EXCEEDED
        return _MISSED

    def _choices(
        self, wish: _Wish, filled: int, pool: int, start: int
    ) -> Iterator[tuple[int, int, Candidate]]:
        """What the next device can be, by pool and position: one only where all are wanted."""
        if wish.request.everything:
            at, candidate = wish.members[filled]
            if not self._is_in_use(wish, at, candidate):
                yield at, 0, candidate
            return
        for choice in self._free(wish, pool, start):
            self._raise_failure(wish, choice[2])
            yield choice

    def _free(self, wish: _Wish, pool: int, start: int) -> Iterator[tuple[int, int, Candidate]]:
        """The candidates from a position on that are not in use when it is their turn."""
        for at in range(pool, len(self._trials)):
            found = self._candidates(wish, at)
            for position in range(start if at == pool else 0, len(found)):
                if not self._is_in_use(wish, at, found[position]):
                    yield at, position, found[position]

    def _may_suffice(self, wish: _Wish, needed: int, pool: int, start: int) -> bool:
        """Whether enough devices are left to choose from: else every combination would be tried.

        Says yes where the search has to come to a device that ends the attempt.
        """
        if wish.request.everything:
            return True
        left = needed
        for _, _, candidate in self._free(wish, pool, start):
            left -= 1
            if not left or candidate.failure is not None:
                return True
        return False

    def _is_in_use(self, wish: _Wish, at: int, candidate: Candidate) -> bool:
        return self._trials[at].is_in_use(candidate.device.name, wish.claim, wish.request)

    def _raise_failure(self, wish: _Wish, candidate: Candidate) -> None:
        if candidate.failure is not None:
            claim = str(self._problem.claims[wish.claim])
            raise candidate.failure.raised(wish.request, claim, candidate.id)

    def _take(self, wish: _Wish, trial: Trial, candidate: Candidate) -> bool:
        """Chooses the device if counters, taints, constraints and capacity let it be chosen."""
        self._attempts.count()
        reserved = trial.reserve(candidate)
        if reserved is False:
            return False
        if self._is_allowed(wish, trial, candidate):
            trial.take(candidate, wish.claim)
            self._chosen[wish.claim].append(Chosen(wish.request, candidate, bool(reserved)))
            return True
        if reserved:
            trial.release(candidate)
        return False

    def _is_allowed(self, wish: _Wish, trial: Trial, candidate: Candidate) -> bool:
        """Whether taints, constraints and capacity allow the device; constraints then count it."""
        device, request = candidate.device, wish.request
        taints = trial.pool.taints(device)
        if taints and preventing(taints, request) is not None:
            return False
        constraints = self._constraints[wish.claim]
        for position, constraint in enumerate(constraints):
            if not constraint.add(request, device.facts):
                for earlier in constraints[:position]:
                    earlier.remove(request)
                if request.everything:
                    raise AllDevicesError(
                        f"claim {self._problem.claims[wish.claim]}, request {request.name}: asks for "
                        f"all devices, and with {candidate.id} the constraint on "
                        f"{constraint.constraint.attribute} does not hold"
                    )
                return False
        if trial.has_room(candidate):
            return True
        for constraint in constraints:
            constraint.remove(request)
        return False

    def _give_back(self, wish: _Wish, trial: Trial, candidate: Candidate) -> None:
        chosen = self._chosen[wish.claim].pop()
        trial.give_back(candidate, wish.claim)
        for constraint in self._constraints[wish.claim]:
            constraint.remove(wish.request)
        if chosen.reserved:
            trial.release(candidate)
