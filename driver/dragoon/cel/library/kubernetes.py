"""quantity() and semver(), with their methods.

Source: k8s.io/apiserver 0.37 `cel/library/quantity.go` and `semverlib.go`.
"""

from collections.abc import Callable
from typing import Final

from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.functions import Library, Overload, accepts, function, method, translated
from dragoon.cel.types import BOOL, DOUBLE, INT, QUANTITY, SEMVER, STRING, Type
from dragoon.cel.values import Computed
from dragoon.quantity import Format, Quantity
from dragoon.quantity import parse as parse_quantity
from dragoon.semver import Version, parse_lenient
from dragoon.semver import parse as parse_version


def _version(text: str, lenient: bool) -> Version:  # noqa: FBT001 - an argument of CEL's
    return parse_lenient(text) if lenient else parse_version(text)


def _as_integer(quantity: Quantity) -> int:
    value = quantity.as_int64()
    if value is None:
        raise ExpressionFailedError("cannot convert value to integer")
    return value


def _add(left: Quantity, right: Quantity) -> Computed:
    return _computed(left + right)


def _sub(left: Quantity, right: Quantity) -> Computed:
    return _computed(left - right)


def _computed(quantity: Quantity) -> Computed:
    return Computed(quantity.unscaled, quantity.scale, quantity.format, quantity.wide)


def _with_int(run: Callable[[Quantity, Quantity], Computed]) -> Callable[[Quantity, int], Computed]:
    return lambda quantity, number: run(quantity, Quantity(number, format=Format.EXPONENT))


def _part(name: str) -> Callable[[Version], int]:
    """A number of a version as a CEL int; beyond 63 bits it wraps, as in Go."""

    def part(version: Version) -> int:
        number: int = getattr(version, name)
        return (number + 2**63) % 2**64 - 2**63

    return part


def _comparisons(type_: Type) -> dict[str, Overload]:
    return {
        "isLessThan": method(lambda a, b: a.compare(b) < 0, type_, type_, result=BOOL),
        "isGreaterThan": method(lambda a, b: a.compare(b) > 0, type_, type_, result=BOOL),
        "compareTo": method(lambda a, b: a.compare(b), type_, type_, result=INT),
    }


_QUANTITIES: Final = _comparisons(QUANTITY)
_VERSIONS: Final = _comparisons(SEMVER)

FUNCTIONS: Final[Library] = {
    **{name: (_QUANTITIES[name], _VERSIONS[name]) for name in _QUANTITIES},
    "quantity": (function(translated(parse_quantity), STRING, result=QUANTITY),),
    "isQuantity": (function(accepts(parse_quantity), STRING, result=BOOL),),
    # Kubernetes declares it as a function, against its own documentation.
    "sign": (function(lambda quantity: quantity.sign, QUANTITY, result=INT),),
    "isInteger": (method(lambda quantity: quantity.as_int64() is not None, QUANTITY, result=BOOL),),
    "asInteger": (method(_as_integer, QUANTITY, result=INT),),
    "asApproximateFloat": (
        method(lambda quantity: quantity.as_approximate_float(), QUANTITY, result=DOUBLE),
    ),
    "add": (
        method(translated(_add), QUANTITY, QUANTITY, result=QUANTITY),
        method(translated(_with_int(_add)), QUANTITY, INT, result=QUANTITY),
    ),
    "sub": (
        method(translated(_sub), QUANTITY, QUANTITY, result=QUANTITY),
        method(translated(_with_int(_sub)), QUANTITY, INT, result=QUANTITY),
    ),
    "semver": (
        function(translated(parse_version), STRING, result=SEMVER),
        function(translated(_version), STRING, BOOL, result=SEMVER),
    ),
    "isSemver": (
        function(accepts(parse_version), STRING, result=BOOL),
        function(accepts(_version), STRING, BOOL, result=BOOL),
    ),
    "major": (method(_part("major"), SEMVER, result=INT),),
    "minor": (method(_part("minor"), SEMVER, result=INT),),
    "patch": (method(_part("patch"), SEMVER, result=INT),),
}
