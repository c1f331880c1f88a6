"""Which devices of a pool a request could have, whatever is in use: found once and remembered.

What only depends on the request and the device is decided here: the selectors of the class, then
those of the request, then the device's own node selection, then whether its capacity is enough
when nobody else has a part of it. That is kube-scheduler's order (dra-api.md C.4).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from dragoon.allocator.amounts import CapacityError, Use, consumption, parsed
from dragoon.allocator.model import Device, DeviceId, Facts, Node, PoolId, Request, Slice
from dragoon.allocator.nodes import NodeSelectorError, matches
from dragoon.allocator.pools import Pool
from dragoon.allocator.selection import Selector, SelectorError, selector
from dragoon.cel import EvaluationError
from dragoon.errors import DragoonError, InvalidInputError, UnsupportedError
from dragoon.quantity import Quantity

_REMEMBERED: Final = 16
"""Different questions that a pool remembers the answer to."""


class Query(NamedTuple):
    """All that the candidates of a request depend on."""

    of_class: tuple[str, ...]
    of_request: tuple[str, ...]
    capacity: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """What ends kube-scheduler's attempt when it comes to a device.

    part: `class`, `request`, or empty for what is no selector. position: of the selector.
    general: it is about the selector, whatever the device. unsupported: it may be right, but
    Dragoon cannot do it.
    """

    part: str
    position: int
    message: str
    hint: str = ""
    general: bool = False
    unsupported: bool = False

    def raised(self, request: Request, claim: str, device: DeviceId) -> DragoonError:
        """The error, naming claim or class, request and device."""
        owner = f"claim {claim}, request {request.name}"
        if self.part == "class":
            owner = f"class {request.class_name}"
        place = f"{owner}: selector {self.position}" if self.part else owner
        if not self.general:
            place = f"{place} on device {device}"
        kind = UnsupportedError if self.unsupported else SelectorError
        return kind(f"{place}: {self.message}", hint=self.hint)


_Outcome = tuple[Use, ...] | Failure | None
"""What a device would give, or why that is not known; None if it is not wanted."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A device that a request could have, and what it would take of its capacity.

    failure: it is not known whether it could, because looking at it fails.
    """

    pool: PoolId
    slice: Slice
    device: Device
    uses: tuple[Use, ...] = ()
    failure: Failure | None = None

    @property
    def id(self) -> DeviceId:
        """The device's name."""
        return DeviceId(self.pool.driver, self.pool.pool, self.device.name)


def query_of(request: Request, class_selectors: tuple[str, ...]) -> Query:
    """What a request of a class with these selectors asks."""
    return Query(class_selectors, request.selectors, request.capacity)


def candidates(pool: Pool, query: Query) -> Sequence[Candidate]:
    """The candidates of a usable pool, in the order of its devices."""
    known: Sequence[Candidate] | None = pool.candidates.get(query)
    if known is None:
        if len(pool.candidates) >= _REMEMBERED:
            del pool.candidates[next(iter(pool.candidates))]
        known = pool.candidates[query] = tuple(_found(pool, query))
    return known


def _found(pool: Pool, query: Query) -> Iterator[Candidate]:
    wanted = parsed(query.capacity)
    known: dict[Facts, _Outcome] = {}
    for slice_, device in pool.devices():
        facts = device.facts
        if facts not in known:
            known[facts] = _outcome(facts, query, wanted)
        outcome = known[facts]
        if outcome is not None and slice_.nodes is None and not isinstance(outcome, Failure):
            outcome = _on_node(outcome, device, pool.node)
        if isinstance(outcome, Failure):
            yield Candidate(pool.id, slice_, device, failure=outcome)
        elif outcome is not None:
            yield Candidate(pool.id, slice_, device, outcome)


def _outcome(facts: Facts, query: Query, wanted: Mapping[str, Quantity]) -> _Outcome:
    """What devices with these facts would give, None if they are not wanted."""
    outcome = _selects(query.of_class, "class", facts)
    if outcome is None:
        outcome = _selects(query.of_request, "request", facts)
    if outcome is False:
        return None
    if outcome is not None:
        return outcome
    try:
        return consumption(facts.capacity, wanted)
    except CapacityError as error:
        return Failure("", 0, error.message)


def _on_node(uses: tuple[Use, ...], device: Device, node: Node) -> _Outcome:
    """The same for a device with its own node selection, None if that does not admit the node."""
    try:
        return uses if device.nodes is not None and matches(device.nodes, node) else None
    except NodeSelectorError as error:
        return Failure("", 0, error.message)


def _selects(texts: tuple[str, ...], part: str, facts: Facts) -> "Failure | Literal[False] | None":
    """None if all selectors match, False if one does not, or the failure of one."""
    for position, text in enumerate(texts):
        try:
            one: Selector = selector(text)
            if not one.matches(facts):
                return False
        except EvaluationError as error:
            hint = "guard the read with has() or .?field.orValue(default)"
            return Failure(part, position, error.message, hint)
        except InvalidInputError as error:
            return Failure(part, position, error.message, error.hint, general=True)
        except UnsupportedError as error:
            return Failure(
                part, position, error.message, error.hint, general=True, unsupported=True
            )
    return None
