"""The layout of claims, templates and classes in resource.k8s.io/v1 (case C40).

Source of the fields: resource.k8s.io/v1 of 1.37, v1beta1 and v1beta2.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from dragoon import quantity
from dragoon.diagnose.linting.claims import CLAIM, TEMPLATE, ClaimSpec, claim_spec
from dragoon.diagnose.linting.finding import Context, Finding, finding
from dragoon.diagnose.manifests import Item, Raw, listed, mapping, text
from dragoon.diagnose.near import did_you_mean
from dragoon.errors import InvalidInputError

_FLAT_VERSION: Final = "resource.k8s.io/v1beta1"
_CONSTRAINTS: Final = ("matchAttribute", "distinctAttribute")
_MODES: Final = ("ExactCount", "All")

# A field of a shape is a type, an object (dict) or a list ([of one shape]); None is anything.
_TOLERATION: Final = {
    **dict.fromkeys(("key", "operator", "value", "effect"), str),
    "tolerationSeconds": int,
}
_SUBREQUEST: Final[dict[str, Any]] = {
    "name": str,
    "deviceClassName": str,
    "selectors": [{"cel": {"expression": str}}],
    "allocationMode": str,
    "count": int,
    "tolerations": [_TOLERATION],
    "capacity": {"requests": dict},
    "derivedAttributes": None,
}
_EXACTLY: Final = {
    **{name: shape for name, shape in _SUBREQUEST.items() if name != "name"},
    "adminAccess": bool,
}
_CONFIG: Final = {"opaque": {"driver": str, "parameters": dict}}
_CLAIM_SPEC: Final = {
    "devices": {
        "requests": [{"name": str, "exactly": _EXACTLY, "firstAvailable": [_SUBREQUEST]}],
        "constraints": [{"requests": [str], "matchAttribute": str, "distinctAttribute": str}],
        "config": [{"requests": [str], **_CONFIG}],
    }
}
_CLASS_SPEC: Final = {
    "selectors": [{"cel": {"expression": str}}],
    "config": [_CONFIG],
    "extendedResourceName": str,
}
_WORDS: Final = {str: "text", int: "a number", bool: "true or false", dict: "an object"}


def check(item: Item, context: Context | None = None) -> Iterator[Finding]:
    """Everything wrong with the layout of a claim, a template or a class."""
    del context
    if item.kind == "DeviceClass":
        yield from _fields(item, item.raw.get("spec") or {}, _CLASS_SPEC, "spec")
        return
    spec = claim_spec(item)
    if spec is None:
        return
    if not isinstance(item.raw.get("spec"), Mapping):
        yield finding("DRG205", item, "spec", item.raw.get("spec"), "an object with devices")
        return
    yield from _nesting(item)
    flat_allowed = item.api_version == _FLAT_VERSION
    if not flat_allowed:
        yield from _flat_requests(spec)
    yield from _fields(item, _without_flat(spec.raw), _CLAIM_SPEC, spec.path)
    yield from _choices(spec, flat_allowed=flat_allowed)
    yield from _duplicates(spec)
    yield from _values(spec)


def _nesting(item: Item) -> Iterator[Finding]:
    outer = mapping(item.raw.get("spec"))
    doubled = "spec" in outer and "devices" not in outer
    if item.kind == CLAIM and doubled:
        yield finding(
            "DRG202",
            item,
            "spec.spec",
            "the double spec of a ResourceClaimTemplate",
            "in a ResourceClaim: spec: {devices: ...}",
        )
    if item.kind == TEMPLATE and "devices" in outer:
        yield finding(
            "DRG203",
            item,
            "spec.devices",
            "the spec of a ResourceClaim",
            "in a ResourceClaimTemplate: spec: {spec: {devices: ...}}",
        )


def _flat_requests(spec: ClaimSpec) -> Iterator[Finding]:
    for path, request in spec.requests():
        flat = [name for name in request if name in _EXACTLY]
        if flat and "exactly" not in request:
            yield finding(
                "DRG201",
                spec.item,
                f"{path}.{flat[0]}",
                f"{', '.join(flat)} beside the request's name: the layout of v1beta1",
                f"in {spec.item.api_version}, under exactly: {_nested(request, flat)}",
            )


def _nested(request: Raw, flat: list[str]) -> str:
    right = {name: value for name, value in request.items() if name not in flat}
    right["exactly"] = {name: request[name] for name in flat}
    return yaml.safe_dump(right, sort_keys=False, default_flow_style=True, width=10_000).strip()


def _without_flat(raw: Raw) -> Any:
    """The spec without fields of the older layout, about which enough has been said."""
    devices = raw.get("devices")
    if not isinstance(devices, dict) or not isinstance(devices.get("requests"), list):
        return raw
    requests = [
        {name: value for name, value in request.items() if name not in _EXACTLY}
        if isinstance(request, dict)
        else request
        for request in devices["requests"]
    ]
    return {**raw, "devices": {**devices, "requests": requests}}


def _fields(item: Item, value: Any, shape: Any, path: str) -> Iterator[Finding]:
    """Unknown fields and wrong types, down to where the shape ends."""
    if shape is None or value is None:
        return
    if isinstance(shape, list):
        if not isinstance(value, list):
            yield finding("DRG205", item, path, value, "a list")
            return
        for index, one in enumerate(value):
            yield from _fields(item, one, shape[0], f"{path}[{index}]")
    elif isinstance(shape, dict):
        if not isinstance(value, Mapping):
            yield finding("DRG205", item, path, value, f"an object with {', '.join(shape)}")
            return
        for name, one in value.items():
            if name in shape:
                yield from _fields(item, one, shape[name], f"{path}.{name}")
            else:
                yield finding(
                    "DRG204", item, f"{path}.{name}", name, did_you_mean(str(name), shape)
                )
    elif not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
        yield finding("DRG205", item, path, value, _WORDS[shape])


def _choices(spec: ClaimSpec, *, flat_allowed: bool) -> Iterator[Finding]:
    for path, request in spec.requests():
        there = [name for name in ("exactly", "firstAvailable") if request.get(name)]
        flat = any(name in _EXACTLY for name in request)
        if len(there) == 2:
            yield finding("DRG206", spec.item, path, ", ".join(there), "one of them")
        elif not there and not flat:
            yield finding(
                "DRG206", spec.item, path, "neither exactly nor firstAvailable", "one of them"
            )
        if not text(request.get("name")):
            yield finding("DRG206", spec.item, f"{path}.name", "no name", "a name such as gpu")
    for wish in spec.wishes():
        is_flat = wish.fields is not mapping(wish.fields) or wish.path.endswith("]")
        if not wish.class_name and (flat_allowed or not is_flat or "/" in wish.name):
            yield finding(
                "DRG206", spec.item, f"{wish.path}.deviceClassName", "no class", "a DeviceClass"
            )
    for index, constraint in enumerate(listed(spec.devices.get("constraints"))):
        named = [name for name in _CONSTRAINTS if mapping(constraint).get(name)]
        if len(named) != 1:
            path = f"{spec.path}.devices.constraints[{index}]"
            found = " and ".join(named) or "neither matchAttribute nor distinctAttribute"
            yield finding("DRG206", spec.item, path, found, "one of them")


def _duplicates(spec: ClaimSpec) -> Iterator[Finding]:
    names = Counter(wish.name for wish in spec.wishes())
    names.update(
        text(request.get("name")) for _, request in spec.requests() if "firstAvailable" in request
    )
    for name, count in names.items():
        if name and count > 1:
            path = f"{spec.path}.devices.requests"
            yield finding("DRG207", spec.item, path, f"{count} requests named {name}")


def _values(spec: ClaimSpec) -> Iterator[Finding]:
    for wish in spec.wishes():
        mode, count = wish.fields.get("allocationMode"), wish.fields.get("count")
        if isinstance(mode, str) and mode not in _MODES:
            yield finding(
                "DRG208",
                spec.item,
                f"{wish.path}.allocationMode",
                mode,
                f"one of {', '.join(_MODES)}",
            )
        if isinstance(count, int) and mode == "All" and count:
            yield finding(
                "DRG208", spec.item, f"{wish.path}.count", count, "no count with allocationMode All"
            )
        elif isinstance(count, int) and mode != "All" and count < 1:
            yield finding("DRG208", spec.item, f"{wish.path}.count", count, "a number from 1")
        for name, amount in mapping(mapping(wish.fields.get("capacity")).get("requests")).items():
            path = f"{wish.path}.capacity.requests.{name}"
            yield from _amount(spec.item, path, amount)


def _amount(item: Item, path: str, amount: Any) -> Iterator[Finding]:
    try:
        quantity.parse(str(amount))
    except InvalidInputError:
        yield finding("DRG208", item, path, amount, "a quantity such as 10Gi")
