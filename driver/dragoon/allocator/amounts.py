"""Amounts that add up: whole numbers of nano units, and what a request consumes of a capacity.

Source: `consumable_capacity.go` of k8s.io/dynamic-resource-allocation 0.37.2 with
the gate DRAFractionalCapacityRange on, as it is by default.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from dragoon import quantity
from dragoon.errors import DragoonError
from dragoon.quantity import Format, Quantity, nanos

_NANO: Final = -9
_INT64_MAX: Final = 2**63 - 1
_NANOS_PER_MILLI: Final = 10**6
_NANOS_PER_ONE: Final = 10**9


class CapacityError(DragoonError):
    """A capacity request that no arithmetic of the API can hold, or a negative amount.

    Ends kube-scheduler's whole attempt, not only that of one device.
    """

    code = "Capacity"


def parsed(amounts: Iterable[tuple[str, str]]) -> dict[str, Quantity]:
    """Amounts by name, from texts. Raises InvalidInputError."""
    return {name: quantity.parse(text) for name, text in amounts}


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A requestPolicy: what may be asked of a capacity. values: the validValues, ascending."""

    default: Quantity | None = None
    values: tuple[Quantity, ...] = ()
    has_range: bool = False
    least: Quantity | None = None
    most: Quantity | None = None
    step: Quantity | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """One capacity of a device. text: its value as published; limit: the same in nano units."""

    text: str
    value: Quantity
    limit: int
    policy: Policy | None = None


Capacities = tuple[tuple[str, Capacity], ...]
"""The capacities of a device by the name as published."""


class Use(NamedTuple):
    """What a request takes of one capacity, exactly and in nano units, and how much there is."""

    name: str
    amount: Quantity
    taken: int
    limit: int


def consumption(capacities: Capacities, requests: Mapping[str, Quantity]) -> tuple[Use, ...] | None:
    """What a request takes of a device, None where even an unused one would not do.

    Raises CapacityError where kube-scheduler gives up the attempt.
    """
    names = {name for name, _ in capacities}
    if not names.issuperset(requests):
        return None
    uses = tuple(_use(name, capacity, requests.get(name)) for name, capacity in capacities)
    for use, (_, capacity) in zip(uses, capacities, strict=True):
        if use.taken > use.limit or (
            capacity.policy is not None and _violates(use.amount, capacity.policy)
        ):
            return None
    return uses


def _use(name: str, capacity: Capacity, requested: Quantity | None) -> Use:
    try:
        amount = _rounded(requested, capacity)
    except CapacityError as error:
        raise CapacityError(f"capacity {name}: {error.message}") from error
    taken = nanos(amount)
    if taken < 0:
        raise CapacityError(f"capacity {name}: {amount} is negative")
    return Use(name, amount, taken, capacity.limit)


def _rounded(requested: Quantity | None, capacity: Capacity) -> Quantity:
    policy = capacity.policy
    if requested is None:
        return capacity.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return requested
    if policy.least is not None:
        return _up_to_step(requested, policy.least, policy)
    return next((value for value in policy.values if requested <= value), requested)


def _up_to_step(requested: Quantity, least: Quantity, policy: Policy) -> Quantity:
    """The request raised to the minimum, then to the next step above the minimum."""
    if requested < least:
        return least
    step = policy.step
    if step is None:
        return requested
    if _in_millis(policy):
        count = _millis(requested)
        if count is None:
            raise CapacityError(f"{requested} cannot be counted in milli units")
        rounded = _next(count, _whole_millis(least), _whole_millis(step), requested)
        if rounded % 1000:
            return Quantity(rounded, -3, step.format)
        return Quantity(rounded // 1000, 0, step.format)
    if nanos(requested) > _INT64_MAX * _NANOS_PER_ONE:
        raise CapacityError(f"{requested} is beyond 64 bits")
    rounded = _next(_ones(requested), _ones(least), _ones(step), requested)
    return Quantity(rounded, 0, step.format)


def _next(count: int, least: int, step: int, requested: Quantity) -> int:
    steps = -(-(count - least) // step)
    if steps > (_INT64_MAX - least) // step:
        raise CapacityError(f"{requested}, rounded up to the next step, is beyond 64 bits")
    return least + steps * step


def _violates(amount: Quantity, policy: Policy) -> bool:
    if policy.default is not None and _is_same(amount, policy.default):
        return False
    if policy.has_range:
        return _violates_range(amount, policy)
    return bool(policy.values) and amount not in policy.values


def _violates_range(amount: Quantity, policy: Policy) -> bool:
    if policy.most is not None and amount > policy.most:
        return True
    if policy.step is None:
        return False
    least = policy.least or Quantity(0)
    if not _in_millis(policy):
        return (_ones(amount) - _ones(least)) % _ones(policy.step) != 0
    count = _millis(amount)
    return count is None or (count - _whole_millis(least)) % _whole_millis(policy.step) != 0


def _is_same(left: Quantity, right: Quantity) -> bool:
    """Whether two quantities are kept alike, not only equal: a default needs no further check."""
    return not left.wide and (left.unscaled, left.scale, left.format, left.wide) == (
        right.unscaled,
        right.scale,
        right.format,
        right.wide,
    )


def _in_millis(policy: Policy) -> bool:
    """Whether a range is counted in milli units: all of it can be, and the step is one at least."""
    parts = [one for one in (policy.least, policy.most, policy.step) if one is not None]
    if any(_millis(one) is None for one in parts):
        return False
    return policy.step is None or _whole_millis(policy.step) >= 1


def _millis(amount: Quantity) -> int | None:
    """The amount in milli units, None where that loses something or does not fit 64 bits."""
    count, rest = divmod(nanos(amount), _NANOS_PER_MILLI)
    return count if not rest and abs(count) <= _INT64_MAX else None


def _whole_millis(amount: Quantity) -> int:
    return nanos(amount) // _NANOS_PER_MILLI


def _ones(amount: Quantity) -> int:
    """The amount as a whole number, rounded up."""
    return -(-nanos(amount) // _NANOS_PER_ONE)


def shown(amount: int, kind: Format = Format.BINARY) -> str:
    """An amount in nano units as Kubernetes writes it."""
    whole, rest = divmod(amount, _NANOS_PER_ONE)
    return str(Quantity(amount, _NANO, Format.DECIMAL) if rest else Quantity(whole, 0, kind))


def added(parts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sums by name."""
    sums: dict[str, int] = {}
    for name, amount in parts:
        sums[name] = sums.get(name, 0) + amount
    return sums
