"""Which devices of a pool a request could have, whatever is in use: found once and remembered.

What only depends on the request and the device is decided here: the selectors of the class, then
those of the request, then the device's own node selection, then whether its capacity is enough
when nobody else has a part of it. That is kube-scheduler's order (dra-api.md C.4).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dragoon import quantity
from dragoon.allocator.amounts import CapacityError, Use, consumption
from dragoon.allocator.model import Device, DeviceId, Node, PoolId, Request, Slice
from dragoon.allocator.nodes import NodeSelectorError, matches
from dragoon.allocator.pools import Pool
from dragoon.allocator.selection import Selector, SelectorError, selector
from dragoon.cel import EvaluationError
from dragoon.errors import DragoonError, InvalidInputError, UnsupportedError

_REMEMBERED: Final = 64
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
            pool.candidates.clear()
        known = pool.candidates[query] = tuple(_found(pool, query))
    return known


def _found(pool: Pool, query: Query) -> Iterator[Candidate]:
    wanted = {name: quantity.parse(text) for name, text in query.capacity}
    for slice_, device in pool.devices():
        failure = _selects(query.of_class, "class", device)
        if failure is None:
            failure = _selects(query.of_request, "request", device)
        if failure is None:
            failure = _on_node(slice_, device, pool.node)
        if failure is None:
            try:
                uses = consumption(device.facts.capacity, wanted)
            except CapacityError as error:
                failure = Failure("", 0, error.message)
            else:
                if uses is not None:
                    yield Candidate(pool.id, slice_, device, uses)
                continue
        if isinstance(failure, Failure):
            yield Candidate(pool.id, slice_, device, failure=failure)


def _selects(texts: tuple[str, ...], part: str, device: Device) -> Failure | bool | None:
    """None if all selectors match, False if one does not, or the failure of one."""
    for position, text in enumerate(texts):
        try:
            one: Selector = selector(text)
            if not one.matches(device.facts):
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


def _on_node(slice_: Slice, device: Device, node: Node) -> Failure | bool | None:
    """None if the device's own node selection, where it has one, admits the node, else False."""
    if slice_.nodes is not None:
        return None
    try:
        return None if device.nodes is not None and matches(device.nodes, node) else False
    except NodeSelectorError as error:
        return Failure("", 0, error.message)
