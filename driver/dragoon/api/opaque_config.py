"""Configuration of devices in classes and claims: group `gpu.dragoon.dev`, version v1alpha1.

A config block is decoded strictly: what is not understood is refused with the path of the field,
what was found and what is allowed, for a limit that was misspelt must not become no limit. Blocks
of other drivers are nobody's business here but for `foreign`. Source of the shape and of the rules
which block counts: resource.k8s.io/v1, KEP-4381.
"""

import difflib
import enum
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import Meta

from dragoon.api.claims import AllocatedDevice
from dragoon.api.enforcement import Tier
from dragoon.api.forms import Form
from dragoon.errors import InvalidInputError

API_VERSION: Final = "gpu.dragoon.dev/v1alpha1"


class TimeSlice(enum.StrEnum):
    """How long a process computes before the GPU turns to the next one (nvidia-smi)."""

    DEFAULT = "Default"
    SHORT = "Short"
    MEDIUM = "Medium"
    LONG = "Long"


class ShareTier(enum.StrEnum):
    """The tiers that a share can ask for; see `enforcement.Tier`."""

    CGROUP = Tier.CGROUP
    HAMI = Tier.HAMI
    NONE = Tier.NONE


class Priority(enum.StrEnum):
    """Which shares of a GPU compute first; only the tier hami knows it."""

    HIGH = "High"
    LOW = "Low"


class _Config(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True
):
    api_version: str = API_VERSION


class GpuConfig(_Config, frozen=True, tag_field="kind", tag="GpuConfig"):
    """For whole GPUs."""

    time_slice: Annotated[
        TimeSlice | None,
        Meta(description="How the GPU turns between its processes; set back when the claim ends."),
    ] = None


class SharedGpuConfig(_Config, frozen=True, tag_field="kind", tag="SharedGpuConfig"):
    """For shares of a GPU."""

    tier: Annotated[
        ShareTier | None,
        Meta(
            description="How the limits are kept. A node that cannot do it refuses the claim. "
            "Without it, the node's strongest tier is used."
        ),
    ] = None
    priority: Annotated[
        Priority | None, Meta(description="Which shares compute first; tier hami only.")
    ] = None


class MigConfig(_Config, frozen=True, tag_field="kind", tag="MigConfig"):
    """For MIG instances. Nothing can be configured yet; the kind is reserved."""


Config = GpuConfig | SharedGpuConfig | MigConfig

_FITS: Final[Mapping[type[_Config], Form]] = {
    GpuConfig: Form.WHOLE,
    SharedGpuConfig: Form.SHARED,
    MigConfig: Form.MIG,
}
_DEVICES: Final[Mapping[Form, str]] = {
    Form.WHOLE: "a whole GPU",
    Form.SHARED: "a share of a GPU",
    Form.MIG: "a MIG instance",
}
_KINDS: Final = tuple(kind.__name__ for kind in _FITS)
_PATH = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>[^`]*)`")


@dataclass(frozen=True, slots=True)
class Block:
    """One config block of an allocation that is addressed to us. requests: none means all."""

    path: str
    requests: tuple[str, ...]
    config: Config

    @property
    def form(self) -> Form:
        """What the config is for."""
        return _FITS[type(self.config)]

    def covers(self, request: str) -> bool:
        """Whether a result's request is meant; `gpu` covers `gpu/large` too (case C42)."""
        return not self.requests or bool({request, request.partition("/")[0]} & {*self.requests})


def blocks(config: Sequence[Mapping[str, Any]], driver: str) -> tuple[Block, ...]:
    """The blocks for `driver` in `status.allocation.devices.config`: the last that fits counts.

    Those of classes come first, then those of the claim. Raises InvalidInputError.
    """
    found = []
    for from_class in (True, False):
        for index, entry in enumerate(config):
            opaque = entry.get("opaque") or {}
            if opaque.get("driver") != driver or _of_class(entry) is not from_class:
                continue
            path = f"allocation.devices.config[{index}].opaque.parameters"
            parsed = decode(opaque.get("parameters"), path)
            found.append(Block(path, tuple(entry.get("requests") or ()), parsed))
    return tuple(found)


def decode(parameters: Any, path: str) -> Config:
    """Reads the parameters of one block that stands at `path`.

    Raises InvalidInputError with the path of the wrong field, what was found and what is allowed.
    """
    if not isinstance(parameters, Mapping):
        raise InvalidInputError(f"{path}: found {_shown(parameters)}, allowed is an object")
    for field, allowed in (("apiVersion", (API_VERSION,)), ("kind", _KINDS)):
        value = parameters.get(field)
        if value not in allowed:
            found = _shown(value) if field in parameters else "nothing"
            raise InvalidInputError(
                f"{path}.{field}: found {found}, allowed {_one_of(allowed)}",
                hint=_meant(value, allowed),
            )
    try:
        parsed: Config = msgspec.convert(parameters, Config)
    except msgspec.ValidationError as error:
        raise _explained(error, parameters, path) from error
    return parsed


def for_device(found: Iterable[Block], request: str, form: Form) -> Config | None:
    """The config of one allocated device, None for none."""
    fitting = [one for one in found if one.covers(request) and one.form is form]
    return fitting[-1].config if fitting else None


def check_forms(found: Iterable[Block], devices: Iterable[tuple[str, Form]]) -> None:
    """Refuses a block that is for another form of device than the one it is given to.

    devices are (request, form) of our results. A block that names just that request is meant for
    it; one for all requests, or for all alternatives of one, must fit at least one device that it
    covers, or is a mistake (case C41). Raises InvalidInputError.
    """
    given = tuple(devices)
    for block in found:
        covered = [(request, form) for request, form in given if block.covers(request)]
        wrong = [one for one in covered if one[1] is not block.form]
        named = [one for one in wrong if one[0] in block.requests]
        if named or (wrong and len(wrong) == len(covered) and not _alternative(block, wrong)):
            request, form = (named or wrong)[0]
            kind = type(block.config).__name__
            raise InvalidInputError(
                f"{block.path}.kind: found {kind}, which is for {_DEVICES[block.form]}; "
                f"request {request} got {_DEVICES[form]}",
                hint=f"allowed is {_kind_for(form)}; or name the requests that {kind} is for",
            )


def foreign(
    config: Sequence[Mapping[str, Any]], results: Iterable[AllocatedDevice], driver: str
) -> tuple[str, ...]:
    """Blocks for other drivers that reach only devices of ours, in words: likely a mistake."""
    every = tuple(results)
    found = []
    for index, entry in enumerate(config):
        other = (entry.get("opaque") or {}).get("driver")
        if other in {None, driver}:
            continue
        scope = Block("", tuple(entry.get("requests") or ()), MigConfig())
        drivers = {one.driver for one in every if scope.covers(one.request)}
        if driver in drivers and other not in drivers:
            found.append(
                f"allocation.devices.config[{index}]: is for driver {other}, but reaches only "
                f"devices of {driver}: it has no effect"
            )
    return tuple(found)


def json_schema() -> dict[str, Any]:
    """The JSON schema of all kinds, for editors and admission."""
    (schema,), parts = msgspec.json.schema_components([Config], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": API_VERSION,
        **schema,
        "$defs": {name: _strict(part) for name, part in parts.items()},
    }


def _strict(part: dict[str, Any]) -> dict[str, Any]:
    fields = part.get("properties")
    if fields is None:
        return part
    return part | {
        "properties": fields | {"apiVersion": {"const": API_VERSION}},
        "required": ["apiVersion", "kind"],
    }


def _of_class(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("source") == "FromClass")


def _alternative(block: Block, devices: Iterable[tuple[str, Form]]) -> bool:
    """Whether the block is for a request that has alternatives, of which another was chosen."""
    parents = {request.partition("/")[0] for request, _ in devices if "/" in request}
    return bool(parents & {*block.requests})


def _kind_for(form: Form) -> str:
    return next(kind.__name__ for kind, fits in _FITS.items() if fits is form)


def _explained(
    error: msgspec.ValidationError, parameters: Mapping[str, Any], path: str
) -> InvalidInputError:
    """The error with our words: msgspec tells the place, the schema what is allowed there."""
    found = _PATH.fullmatch(str(error))
    where = (found["path"] if found else None) or ""
    fields = _allowed_fields(str(parameters["kind"]))
    unknown = _UNKNOWN.match(str(error))
    if unknown:
        allowed = tuple(fields)
        text = f"unknown field, allowed {_one_of(allowed)}"
        return InvalidInputError(
            f"{path}.{unknown['field']}: {text}", hint=_meant(unknown["field"], allowed)
        )
    values = fields.get(where, ())
    value = parameters.get(where)
    allowed_text = _one_of(values) if values else (found["what"] if found else str(error))
    return InvalidInputError(
        f"{path}.{where}: found {_shown(value)}, allowed {allowed_text}",
        hint=_meant(value, values),
    )


def _allowed_fields(kind: str) -> dict[str, tuple[str, ...]]:
    """The fields of a kind in the order of their declaration, with the values of each."""
    struct = next(one for one in _FITS if one.__name__ == kind)
    values: dict[str, tuple[str, ...]] = {"apiVersion": (API_VERSION,), "kind": (kind,)}
    for field in msgspec.structs.fields(struct):
        if field.encode_name not in values:
            values[field.encode_name] = tuple(_values(field.type))
    return values


def _values(kind: Any) -> Iterator[str]:
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        yield from (one.value for one in kind)
    for part in get_args(kind):
        yield from _values(part)


def _one_of(allowed: Sequence[str]) -> str:
    return f"is {allowed[0]}" if len(allowed) == 1 else f"are {', '.join(allowed)}"


def _meant(value: Any, allowed: Sequence[str]) -> str | None:
    by_lower = {one.lower(): one for one in allowed}
    close = difflib.get_close_matches(str(value).lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]}?" if close else None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
