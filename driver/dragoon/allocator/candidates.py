"""Which devices of a pool a request could have, whatever is in use: found once and remembered.

What only depends on the request and the device is decided here: the selectors of the class, then
those of the request, then the device's own node selection, then whether its capacity is enough
when nobody else has a part of it. That is kube-scheduler's order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

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


_Verdict = Failure | bool
"""Whether a device is wanted, or why that is not known."""

_Given = tuple[Use, ...] | Failure | None
"""What a device would give, or why that is not known; None if it has too little."""


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
    """Selectors first, then the device's own nodes, then capacity: each may end the attempt."""
    wanted = parsed(query.capacity)
    verdicts: dict[Facts, _Verdict] = {}
    given: dict[Facts, _Given] = {}
    for slice_, device in pool.devices():
        facts = device.facts
        if facts not in verdicts:
            verdicts[facts] = _selected(facts, query)
        verdict = verdicts[facts]
        if verdict is True and slice_.nodes is None:
            verdict = _on_node(device, pool.node)
        if isinstance(verdict, Failure):
            yield Candidate(pool.id, slice_, device, failure=verdict)
        elif verdict:
            if facts not in given:
                given[facts] = _given(facts, wanted)
            uses = given[facts]
            if isinstance(uses, Failure):
                yield Candidate(pool.id, slice_, device, failure=uses)
            elif uses is not None:
                yield Candidate(pool.id, slice_, device, uses)


def _selected(facts: Facts, query: Query) -> _Verdict:
    """Whether devices with these facts are selected, by the class first."""
    for part, texts in (("class", query.of_class), ("request", query.of_request)):
        verdict = _selects(texts, part, facts)
        if verdict is not True:
            return verdict
    return True


def _given(facts: Facts, wanted: Mapping[str, Quantity]) -> _Given:
    """What devices with these facts would give."""
    try:
        return consumption(facts.capacity, wanted)
    except CapacityError as error:
        return Failure("", 0, error.message)


def _on_node(device: Device, node: Node) -> _Verdict:
    """Whether a device with its own node selection is there for this node."""
    try:
        return device.nodes is not None and matches(device.nodes, node)
    except NodeSelectorError as error:
        return Failure("", 0, error.message)


def _selects(texts: tuple[str, ...], part: str, facts: Facts) -> _Verdict:
    """Whether all selectors match, or the failure of the first that fails."""
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
    return True
