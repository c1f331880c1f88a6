"""What a call costs when it is evaluated, in the units of CEL's cost model.

Source: cel-go 0.29 `interpreter/runtimecost.go`, `ext/lists.go`, `ext/sets.go`; k8s.io/apiserver
0.37 `cel/library/cost.go`. The cost of a selector that is evaluated is exactly kube-scheduler's,
because at 1,000,000 it gives up.

A call is charged by its arguments, with 1 as the size of one that failed; a few by their result.
"""

import math
from collections.abc import Callable
from typing import Any, Final

from dragoon.cel.addresses import Address, Network
from dragoon.cel.checked import Callee
from dragoon.cel.errors import EvaluationError
from dragoon.cel.formats import NamedFormat
from dragoon.cel.types import BYTES, STRING, Type
from dragoon.cel.urls import Url
from dragoon.cel.values import Computed, OptionalValue
from dragoon.quantity import Quantity
from dragoon.semver import Version

LIST: Final = 10
"""Making a list."""
MAP: Final = 30
"""Making a map."""
PER_CHARACTER: Final = 0.1
PER_PATTERN_CHARACTER: Final = 0.25
FAILED: Final = None
"""Stands for the value of an argument that failed."""

Cost = int | Callable[..., int]
"""Of a call: fixed, or by its arguments."""
_SIZED: Final = frozenset((str, bytes, tuple))


def size(value: Any) -> int:
    """Characters, bytes, elements or entries; 1 for what has no size."""
    if type(value) in _SIZED or isinstance(value, dict):
        return len(value)
    if isinstance(value, Address | Network):
        return value.size
    if type(value) is OptionalValue and value.present:
        return size(value.value)
    return 1


def tenth(units: int) -> int:
    """The cost of so many characters, rounded up as Go's doubles do it."""
    return TENTHS[units] if units < _TABLE else math.ceil(units * PER_CHARACTER)


_TABLE: Final = 512
TENTHS: Final = tuple(math.ceil(units * PER_CHARACTER) for units in range(_TABLE))
"""The costs of short texts."""


def _first(*args: Any) -> int:
    return tenth(size(args[0]))


def _first_twice(*args: Any) -> int:
    return math.ceil(size(args[0]) * 2 * PER_CHARACTER)


def _second(*args: Any) -> int:
    return tenth(size(args[1]))


def smaller(left: Any, right: Any) -> int:
    """Comparing two values."""
    return tenth(min(size(left), size(right)))


_UNIT: Final = frozenset((Quantity, Computed, Version, Address, Network, NamedFormat, Url))


def equality(left: Any, right: Any) -> int:
    """`==`; for Kubernetes' types on the left it is one unit."""
    return 1 if type(left) in _UNIT else smaller(left, right)


def _sum(left: Any, right: Any) -> int:
    return tenth(size(left) + size(right))


def _product(left: Any, right: Any) -> int:
    return tenth(size(left)) * tenth(size(right))


def search(text: Any, pattern: Any, *_: Any) -> int:
    """Matching a regular expression."""
    return tenth(1 + size(text)) * math.ceil(size(pattern) * PER_PATTERN_CHARACTER)


def _validation(format_: Any, text: Any) -> int:
    if not isinstance(format_, NamedFormat):
        return 1
    pattern = math.ceil(format_.pattern_size * PER_PATTERN_CHARACTER)
    return tenth(1 + size(text)) * pattern


def traversal(value: Any, *_: Any) -> int:
    """Walking through all of a value."""
    if isinstance(value, str):
        return int(len(value.encode("utf-8", "surrogateescape")) * PER_CHARACTER)
    if isinstance(value, bytes):
        return int(len(value) * PER_CHARACTER)
    if isinstance(value, tuple):
        return sum(map(traversal, value))
    if isinstance(value, dict):
        return sum(traversal(key) + traversal(one) for key, one in value.items())
    return 1


def _containment(*, network: bool, text: bool) -> Cost:
    """`containsIP` and `containsCIDR`: comparing bytes, and reading the other one from a text."""

    def cost(left: Any, right: Any) -> int:
        own = size(left)
        units = tenth(2 * own) + (tenth(own) + 1 if network else 0)
        return units + (tenth(size(right)) if text else 0)

    return cost


def _of_result(result: Any) -> int:
    return size(result) + 1 + LIST


def _join(result: Any) -> int:
    return math.ceil(size(result) * 2 * PER_CHARACTER)


def _flatten(items: Any, depth: Any = 1) -> int:
    if type(depth) is not int:
        raise _uncountable("flatten")
    return int(float(size(items)) * (depth if depth >= 0 else 1)) + 1 + LIST


def self_comparison(items: Any) -> int:
    """Comparing all elements of a list with each other: `sort`, `sortBy`, `distinct`."""
    if type(items) is not tuple:
        raise _uncountable("sort or distinct")
    factor = 2.0
    if items and isinstance(items[0], str | bytes):
        factor += PER_CHARACTER
    return int(float(len(items) ** 2) * factor) + 1 + LIST


def _uncountable(function: str) -> EvaluationError:
    """Where cel-go counts the cost of an argument of the wrong type, it ends the evaluation."""
    return EvaluationError(f"{function}: the cost of an argument that failed cannot be counted")


def _pairs(factor: int) -> Cost:
    return lambda left, right: 1 + size(left) * size(right) * factor


_BY_NAME: Final[dict[str, Cost]] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), traversal
    ),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim", "url"), _first),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_twice),
    **dict.fromkeys(("find", "findAll", "matches"), search),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity"), _first),
    **dict.fromkeys(("semver", "isSemver", "strings.quote", "format"), _first),
    **dict.fromkeys(("startsWith", "endsWith"), _second),
    "contains": _product,
    "validate": _validation,
    "flatten": _flatten,
    "distinct": self_comparison,
    "sets.contains": _pairs(1),
    "sets.intersects": _pairs(1),
    "sets.equivalent": _pairs(2),
}
_BY_RESULT: Final[dict[str, Callable[[Any], int]]] = {
    **dict.fromkeys(("slice", "lists.range", "reverse"), _of_result),
    "join": _join,
}
_ORDER: Final = frozenset(("<", "<=", ">", ">="))
_TEXTS: Final = frozenset((STRING, BYTES))


def cost_by_result(callee: Callee) -> Callable[[Any], int] | None:
    """The cost of a call by its result, None where `cost_of` says it."""
    return _BY_RESULT.get(callee.name)


def cost_of(callee: Callee) -> Cost:
    """The cost of a call. Where several signatures fit, cel-go knows only the function's name."""
    name = callee.name
    params = callee.overloads[0].params if len(callee.overloads) == 1 else ()
    if name in {"containsIP", "containsCIDR"}:
        text = len(params) == 2 and params[1] == STRING
        return _containment(network=name == "containsCIDR", text=text)
    if name == "ip":
        return 1 if callee.overloads[0].member else _first
    return _BY_NAME.get(name) or (_of_known(name, params[0]) if params else 1)


def _of_known(name: str, param: Type) -> Cost:
    """The cost of a call whose signature is known, by its first parameter."""
    if name == "sort":
        return self_comparison
    if (name, param) in {("bytes", STRING), ("string", BYTES)}:
        return _first
    if param not in _TEXTS:
        return 1
    return _sum if name == "+" else smaller if name in _ORDER else 1


def with_second(cost: Callable[..., int], second: Any) -> Callable[[Any], int]:
    """The cost of calls that always have this second argument."""
    if cost is not search:
        return lambda first: cost(first, second)
    pattern = math.ceil(size(second) * PER_PATTERN_CHARACTER)

    def known_search(text: Any) -> int:
        return tenth(1 + (len(text) if type(text) is str else size(text))) * pattern

    return known_search
