"""The rules of one device of a ResourceSlice, as the API server checks them.

Not checked here, because nothing publishes them: binding conditions, node selection per device,
compatibility groups.

Source: `validateDevice` in `pkg/apis/resource/validation` of 1.37.2.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dragoon import semver
from dragoon.api import limits
from dragoon.api.counter_validation import check_consumption
from dragoon.api.finding import Finding
from dragoon.api.policy_validation import check_policy
from dragoon.api.quantities import quantity_of
from dragoon.errors import InvalidInputError

_EFFECTS: Final = ("NoSchedule", "NoExecute", "None")
_QUALIFIED: Final = (
    f"a C identifier of at most {limits.IDENTIFIER_BYTES} bytes, with a domain of at most "
    f"{limits.DOMAIN_BYTES} bytes and `/` before it or none"
)
_SHORT: Final = f"at most {limits.ATTRIBUTE_BYTES} bytes"


def check_device(device: Any, path: str) -> Iterator[Finding]:
    """Everything wrong with one raw device."""
    if not isinstance(device, Mapping):
        yield Finding(path, device, "an object")
        return
    name = device.get("name")
    if not isinstance(name, str) or not limits.is_dns_label(name):
        yield Finding(f"{path}.name", name, "a lower-case DNS label of at most 63 characters")
    attributes = device.get("attributes") or {}
    capacity = device.get("capacity") or {}
    total = len(attributes) + len(capacity)
    if total > limits.ATTRIBUTES_AND_CAPACITIES:
        yield Finding(
            path,
            f"{total} attributes and capacities",
            f"at most {limits.ATTRIBUTES_AND_CAPACITIES} together",
        )
    for key, value in attributes.items():
        yield from check_attribute(key, value, f"{path}.attributes[{key}]")
    for key, value in capacity.items():
        place = f"{path}.capacity[{key}]"
        yield from check_capacity(key, value, place)
        yield from check_policy(value, place, shared=device.get("allowMultipleAllocations") is True)
    yield from check_consumption(device.get("consumesCounters") or [], f"{path}.consumesCounters")
    yield from _check_taints(device.get("taints") or [], f"{path}.taints")


def check_attribute(name: str, value: Any, path: str) -> Iterator[Finding]:
    """One attribute: its name, exactly one typed value, and that value."""
    if not limits.is_qualified_name(name):
        yield Finding(path, name, _QUALIFIED)
    given = [kind for kind in value if value[kind] is not None] if _is_object(value) else []
    if len(given) != 1 or given[0] not in _KINDS:
        yield Finding(path, value, f"exactly one of {', '.join(_KINDS)}")
        return
    problem = _KINDS[given[0]](value[given[0]])
    if problem:
        yield Finding(f"{path}.{given[0]}", value[given[0]], problem)


def check_capacity(name: str, value: Any, path: str) -> Iterator[Finding]:
    """One capacity: its name and a quantity."""
    if not limits.is_qualified_name(name):
        yield Finding(path, name, _QUALIFIED)
    amount = value.get("value") if _is_object(value) else None
    if quantity_of(amount) is None:
        yield Finding(f"{path}.value", amount, "a quantity such as 80Gi")


def _check_taints(taints: Any, path: str) -> Iterator[Finding]:
    if len(taints) > limits.TAINTS_PER_DEVICE:
        yield Finding(path, f"{len(taints)} taints", f"at most {limits.TAINTS_PER_DEVICE}")
    for index, taint in enumerate(taints):
        place = f"{path}[{index}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect")
        if not limits.is_label_key(key):
            yield Finding(f"{place}.key", key, "a label key")
        if not limits.is_label_value(value):
            yield Finding(f"{place}.value", value, "a label value of at most 63 characters")
        if effect not in _EFFECTS:
            yield Finding(f"{place}.effect", effect, f"one of {', '.join(_EFFECTS)}")


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _string_problem(value: Any) -> str:
    if not isinstance(value, str) or len(value.encode()) > limits.ATTRIBUTE_BYTES:
        return f"a string of {_SHORT}"
    return ""


def _version_problem(value: Any) -> str:
    allowed = f"a semantic version 2.0.0 of three numbers without leading zeros, {_SHORT}"
    if _string_problem(value):
        return allowed
    try:
        semver.parse(value)
    except InvalidInputError:
        return allowed
    return ""


def _int_problem(value: Any) -> str:
    if not _is_int(value) or not limits.INT64_MIN <= value <= limits.INT64_MAX:
        return "a 64-bit integer"
    return ""


def _bool_problem(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


_KINDS: Final = {
    "int": _int_problem,
    "bool": _bool_problem,
    "string": _string_problem,
    "version": _version_problem,
}
