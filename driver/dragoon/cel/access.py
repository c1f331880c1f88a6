"""Reading parts of values: fields, indexes, presence, and walking over lists and maps.

Source: cel-go 0.29 `interpreter/attributes.go`; the default-empty domains: `values.DomainMap`.
"""

from collections.abc import Iterable
from typing import Any, Final

from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.values import (
    ABSENT,
    INDEXES,
    DomainMap,
    OptionalValue,
    UInt,
    contained,
    from_key,
    lookup_key,
    no_such_overload,
    show,
    type_name,
)

_NAMED_KEYS: Final = 40
"""Keys that a message about a missing one names at most."""


def no_such_key(mapping: Any, key: Any) -> ExpressionFailedError:
    """The error for a key that is not there; names those that are."""
    there = ", ".join(sorted(str(from_key(known)) for known in mapping)[:_NAMED_KEYS])
    wanted = key if isinstance(key, str) else show(key)
    return ExpressionFailedError(f"no such key: {wanted} (there are: {there or 'none'})")


def select(value: Any, field: str) -> Any:
    """`value.field`."""
    if isinstance(value, dict):
        try:
            return value[field]
        except KeyError:
            raise no_such_key(value, field) from None
    if type(value) is OptionalValue:
        return optional_select(value, field)
    raise no_such_overload(f".{field}", value)


def optional_select(value: Any, field: str) -> OptionalValue:
    """`value.?field`, also of an optional value: what has no fields has none of them."""
    if type(value) is OptionalValue:
        if not value.present:
            return ABSENT
        value = value.value
    if type(value) is tuple:
        raise _wrong_index(field)
    if not has(value, field):
        return ABSENT
    return OptionalValue(present=True, value=value[field])


def has(value: Any, field: str) -> bool:
    """`has(value.field)`."""
    if type(value) is OptionalValue:
        return value.present and has(value.value, field)
    if type(value) is tuple:
        raise _wrong_index(field)
    return isinstance(value, dict) and (field in value or type(value) is DomainMap)


def index(value: Any, key: Any) -> Any:
    """`value[key]`."""
    _check_index(key)
    if isinstance(value, dict):
        try:
            return value[lookup_key(value, key)]
        except KeyError:
            raise no_such_key(value, key) from None
    if type(value) is tuple:
        position = _position(value, key)
        if position is None:
            raise ExpressionFailedError(f"index {show(key)} out of range in list size {len(value)}")
        return value[position]
    if type(value) is OptionalValue:
        return optional_index(value, key)
    raise no_such_overload("[]", value, key)


def optional_index(value: Any, key: Any) -> OptionalValue:
    """`value[?key]`, also of an optional value."""
    _check_index(key)
    if type(value) is OptionalValue:
        if not value.present:
            return ABSENT
        value = value.value
    if isinstance(value, dict):
        mapping: dict[Any, Any] = value
        wanted = lookup_key(mapping, key)
        if wanted not in mapping and type(value) is not DomainMap:
            return ABSENT
        return OptionalValue(present=True, value=mapping[wanted])
    if type(value) is tuple:
        position = _position(value, key)
        return ABSENT if position is None else OptionalValue(present=True, value=value[position])
    return ABSENT


def is_in(value: Any, container: Any) -> bool:
    """`value in container`."""
    if type(container) is tuple:
        return contained(value, container)
    if isinstance(container, dict):
        return lookup_key(container, value) in container
    raise no_such_overload("in", value, container)


def elements(container: Any) -> Iterable[Any]:
    """What a macro with one variable walks over: elements of a list, keys of a map."""
    if type(container) is tuple:
        return container
    if isinstance(container, dict):
        return map(from_key, container)
    raise _not_iterable(container)


def pairs(container: Any) -> Iterable[tuple[Any, Any]]:
    """What a macro with two variables walks over: positions and elements, or keys and values."""
    if type(container) is tuple:
        return enumerate(container)
    if isinstance(container, dict):
        return ((from_key(key), value) for key, value in container.items())
    raise _not_iterable(container)


def _not_iterable(value: Any) -> ExpressionFailedError:
    return ExpressionFailedError(f"expected a list or a map, found {type_name(value)}")


def _check_index(key: Any) -> None:
    if type(key) not in INDEXES:
        raise ExpressionFailedError(f"invalid index type: {type_name(key)}")


def _wrong_index(key: Any) -> ExpressionFailedError:
    return ExpressionFailedError(f"unsupported index type {type_name(key)} in list")


def _position(items: tuple[Any, ...], key: Any) -> int | None:
    """The position that a key means in a list, None outside of it."""
    if type(key) is float and key.is_integer():
        key = int(key)
    if type(key) not in {int, UInt}:
        raise _wrong_index(key)
    return key if 0 <= key < len(items) else None
