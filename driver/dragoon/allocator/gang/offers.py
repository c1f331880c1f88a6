"""What one node offers to claims: the allocator's problem, with the best devices first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dragoon.allocator.candidates import Candidate, Query, candidates, query_of
from dragoon.allocator.constraints import attribute_of
from dragoon.allocator.gang.preference import LINKS, Cards, link_of
from dragoon.allocator.gang.valuing import Valuation
from dragoon.allocator.gang.worth import Usage
from dragoon.allocator.model import Claim, Constraint, Device, DeviceClass, Facts, Node, Request
from dragoon.allocator.pools import Pool
from dragoon.allocator.problem import Problem
from dragoon.allocator.taints import preventing
from dragoon.allocator.usage import UNUSED


@dataclass(frozen=True, slots=True)
class Restriction:
    """Only devices with one of these values of an attribute.

    Devices of other drivers than the attribute's need not have it.
    """

    attribute: str
    values: frozenset[Any]

    def allows(self, facts: Facts) -> bool:
        """Whether a device with these facts may be used."""
        found = attribute_of(facts, self.attribute)
        if found is None:
            return facts.driver != self.attribute.partition("/")[0]
        return bool(found[0]) and found[1] in self.values


class Offers:
    """The pools of a node under restrictions. first: names of devices that are tried first.

    worth: of its devices to pods that are to come, None without a valuation.
    """

    def __init__(
        self,
        node: Node,
        pools: Iterable[Pool],
        classes: Mapping[str, DeviceClass],
        *,
        restrictions: tuple[Restriction, ...] = (),
        first: frozenset[str] = frozenset(),
        valuation: Valuation | None = None,
    ) -> None:
        self.node = node
        self.pools = tuple(pools)
        self._classes = classes
        self.restrictions = restrictions
        self._first = first
        self.cards = Cards(self.pools)
        self._links = self._telling_links()
        self.worth = None if valuation is None else self.cards.worth(valuation)

    def problem(
        self, claims: Sequence[Claim], usage: Usage, twins: Mapping[int, int]
    ) -> Problem | None:
        """The search for the claims; None where there is nothing to search."""
        ordered: list[dict[Any, Sequence[Candidate]]] = [{} for _ in self.pools]
        for request in requests_of(claims):
            if request.class_name not in self._classes:
                return None
            query = self._query(request)
            for pool, known in zip(self.pools, ordered, strict=True):
                if pool.problem or query in known:
                    continue
                allowed = self._allowed(candidates(pool, query), request)
                if allowed is None:
                    return None
                known[query] = self.cards.ordered(
                    allowed, request.count, usage, self._first, self.worth
                )
        pools = tuple(
            replace(pool, candidates=known) for pool, known in zip(self.pools, ordered, strict=True)
        )
        return Problem(claims, self._classes, pools, usage, self.node, twins)

    def has_any(self, claims: Sequence[Claim]) -> bool:
        """Whether any request could have any device, whatever is in use."""
        return any(True for _ in self._candidates(claims))

    def is_doubtful(self, claims: Sequence[Claim]) -> bool:
        """Whether Dragoon cannot say of some device if a request could have it."""
        return any(
            one.failure is not None and one.failure.unsupported for one in self._candidates(claims)
        )

    def linked(self, claims: Sequence[Claim]) -> tuple[Claim, ...] | None:
        """The claims with the wish that the devices of each are linked.

        None where nothing is to be wished: with one device, or where all are linked alike.
        """
        if not self._links:
            return None
        found = tuple(self._with_links(claim) for claim in claims)
        changed = any(new is not old for new, old in zip(found, claims, strict=True))
        return found if changed else None

    def free(self, request: Request, usage: Usage) -> frozenset[Device] | None:
        """The devices that a request could have, each alone; None where one can be shared."""
        query = self._query(request)
        found: list[Device] = []
        for pool in self.pools:
            if pool.problem:
                continue
            of_pool = usage.get(pool.id, UNUSED)
            left = None if pool.counters is None else of_pool.slack(pool.counters).left
            for candidate in candidates(pool, query):
                device = candidate.device
                if device.facts.multiple:
                    return None
                if device.name in of_pool.exclusive or not self._is_allowed(candidate):
                    continue
                if left is not None and any(left[key] < some for key, some in device.counters):
                    continue
                if preventing(pool.taints(device), request) is None:
                    found.append(device)
        return frozenset(found)

    def _query(self, request: Request) -> Query:
        """What the request asks; without its class nothing matches."""
        known = self._classes.get(request.class_name)
        return query_of(request, known.selectors if known else ("false",))

    def _candidates(self, claims: Sequence[Claim]) -> Iterator[Candidate]:
        for request in requests_of(claims):
            if request.class_name in self._classes:
                query = self._query(request)
                for pool in self.pools:
                    if not pool.problem:
                        yield from candidates(pool, query)

    def _allowed(self, found: Sequence[Candidate], request: Request) -> Sequence[Candidate] | None:
        """Candidates that can be judged and that restrictions allow.

        None where all devices are wanted and not all are allowed.
        """
        if request.everything:
            return found if all(map(self._is_allowed, found)) else None
        return [one for one in found if one.failure is None and self._is_allowed(one)]

    def _is_allowed(self, candidate: Candidate) -> bool:
        return all(one.allows(candidate.device.facts) for one in self.restrictions)

    def _telling_links(self) -> tuple[str, ...]:
        """Link attributes in which the devices of this node differ, by full name."""
        values: dict[str, set[Any]] = {}
        for pool in self.pools:
            for _, device in pool.devices():
                for name in LINKS:
                    value = link_of(device.facts, name)
                    if value is not None:
                        values.setdefault(f"{device.facts.driver}/{name}", set()).add(value)
        return tuple(name for name, found in values.items() if len(found) > 1)

    def _with_links(self, claim: Claim) -> Claim:
        """Requests with alternatives have no part in it: their order is the user's wish."""
        plain = [one for one in claim.requests if not one.prioritized]
        count = sum(one.alternatives[0].count for one in plain)
        if count < 2 or any(one.alternatives[0].everything for one in plain):
            return claim
        names = tuple(one.name for one in plain)
        wishes = (Constraint(link, names) for link in self._links)
        return replace(claim, constraints=(*claim.constraints, *wishes))


def requests_of(claims: Iterable[Claim]) -> Iterable[Request]:
    """All requests and alternatives of claims."""
    return (one for claim in claims for wanted in claim.requests for one in wanted.alternatives)
