"""The rules of a request policy: what a claim may ask of a capacity that is shared out.

Source: `validateRequestPolicy` of 1.37.2. Fractions are refused here although a
server with DRAFractionalCapacityRange takes them: others do not, and nothing publishes them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dragoon.api import limits
from dragoon.api.finding import Finding
from dragoon.api.quantities import whole_of

_BOUNDS: Final = ("min", "max", "step")
_WHOLE: Final = "a whole quantity from 0 to 2^63-1"


def check_policy(capacity: Any, path: str, *, shared: bool) -> Iterator[Finding]:
    """The `requestPolicy` of one capacity, if it has one.

    shared: the device can be allocated more than once; only then a policy is allowed.
    """
    policy = capacity.get("requestPolicy") if isinstance(capacity, Mapping) else None
    if policy is None:
        return
    path = f"{path}.requestPolicy"
    if not shared:
        yield Finding(path, policy, "nothing where allowMultipleAllocations is not true")
        return
    values, range_ = policy.get("validValues"), policy.get("validRange")
    if values and range_ is not None:
        yield Finding(path, sorted(policy), "one of validValues and validRange")
    elif values or range_ is not None:
        yield from _check_choice(policy, capacity.get("value"), path)


def _check_choice(policy: Mapping[str, Any], value: Any, path: str) -> Iterator[Finding]:
    size, default = _whole(value), _whole(policy.get("default"))
    values, range_ = policy.get("validValues"), policy.get("validRange")
    if size is None:
        yield Finding(path, value, _WHOLE)
    elif default is None:
        yield Finding(f"{path}.default", policy.get("default"), _WHOLE)
    elif values:
        yield from _check_values(values, default, size, f"{path}.validValues")
    else:
        yield from _check_range(range_, default, size, f"{path}.validRange")


def _check_values(values: Any, default: int, size: int, path: str) -> Iterator[Finding]:
    numbers = [_whole(value) for value in values]
    found = [number for number in numbers if number is not None]
    if len(found) != len(numbers):
        yield Finding(path, values, _WHOLE)
        return
    if len(found) > limits.POLICY_VALUES or found != sorted(set(found)):
        yield Finding(path, values, f"at most {limits.POLICY_VALUES}, each once, ascending")
    if max(found) > size:
        yield Finding(path, values, f"nothing above the capacity of {size}")
    if default not in found:
        yield Finding(path, default, "a list that has the default")


def _check_range(range_: Any, default: int, size: int, path: str) -> Iterator[Finding]:
    given = {bound: _whole(range_[bound]) for bound in _BOUNDS if range_.get(bound) is not None}
    for bound, value in given.items():
        if value is None:
            yield Finding(f"{path}.{bound}", range_[bound], _WHOLE)
    lowest = given.get("min")
    if lowest is None:
        if "min" not in given:
            yield Finding(f"{path}.min", None, "a quantity")
        return
    highest, step = given.get("max"), given.get("step")
    fits = lowest <= default if highest is None else lowest <= default <= highest <= size
    if not fits or lowest > size:
        allowed = f"min <= default <= max, and min and max at most {size}"
        yield Finding(path, (lowest, default, highest), allowed)
    if step is None:
        return
    if step == 0 or lowest + step > size:
        yield Finding(f"{path}.step", step, f"above 0, and one step from min within {size}")
    elif any((value - lowest) % step for value in (default, highest) if value is not None):
        yield Finding(
            f"{path}.step", step, "one of which default and max are whole multiples above min"
        )


def _whole(value: Any) -> int | None:
    """The number that a raw quantity means; None where it is none, negative, a fraction or huge."""
    number = whole_of(value)
    return None if number is None or number < 0 else number
