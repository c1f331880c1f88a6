"""Optional values. `or`, `orValue` and the `?` forms are the evaluator's own: they are lazy.

Source: cel-go 0.29 `cel/library.go`.
"""

from typing import Any, Final

from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.functions import Library, function, method
from dragoon.cel.times import Duration, Timestamp, is_zero
from dragoon.cel.types import BOOL, list_of, optional_of, parameter
from dragoon.cel.values import ABSENT, DomainMap, OptionalValue

_V: Final = parameter("V")
_OPTIONAL: Final = optional_of(_V)


def _of(value: Any) -> OptionalValue:
    return OptionalValue(present=True, value=value)


def _of_non_zero(value: Any) -> OptionalValue:
    # The maps of a device that know every domain are never empty, to Kubernetes.
    empty = value is None or (
        isinstance(value, bool | int | float | str | bytes | tuple | dict)
        and not value
        and type(value) is not DomainMap
    )
    if isinstance(value, Duration | Timestamp):
        empty = is_zero(value)
    return ABSENT if empty else _of(value)


def _value(optional: OptionalValue) -> Any:
    if not optional.present:
        raise ExpressionFailedError("optional.none() dereference")
    return optional.value


def _lazy(*_: Any) -> Any:
    raise AssertionError("the evaluator takes care of this function itself")


def _end(index: int) -> Any:
    return lambda items: _of(items[index]) if items else ABSENT


def _unwrap(optionals: tuple[Any, ...]) -> tuple[Any, ...]:
    for optional in optionals:
        if type(optional) is not OptionalValue:
            raise ExpressionFailedError("optional.unwrap() takes a list of optional values")
    return tuple(optional.value for optional in optionals if optional.present)


FUNCTIONS: Final[Library] = {
    "optional.of": (function(_of, _V, result=_OPTIONAL),),
    "optional.ofNonZeroValue": (function(_of_non_zero, _V, result=_OPTIONAL),),
    "optional.none": (function(lambda: ABSENT, result=_OPTIONAL),),
    "value": (method(_value, _OPTIONAL, result=_V),),
    "hasValue": (method(lambda optional: optional.present, _OPTIONAL, result=BOOL),),
    "or": (method(_lazy, _OPTIONAL, _OPTIONAL, result=_OPTIONAL),),
    "orValue": (method(_lazy, _OPTIONAL, _V, result=_V),),
    "first": (method(_end(0), list_of(_V), result=_OPTIONAL),),
    "last": (method(_end(-1), list_of(_V), result=_OPTIONAL),),
    "optional.unwrap": (function(_unwrap, list_of(_OPTIONAL), result=list_of(_V)),),
    "unwrapOpt": (method(_unwrap, list_of(_OPTIONAL), result=list_of(_V)),),
}
