"""The cards of a pool: devices of one PCI address are forms of one card."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dragoon import quantity
from dragoon.api import names
from dragoon.api.forms import Form
from dragoon.diagnose.manifests import Raw, listed, mapping, text
from dragoon.diagnose.mapping.model import NO_MEMORY, Card, Hold, State
from dragoon.errors import DragoonError
from dragoon.publish import attributes

_STATES: Final[Mapping[Form | None, State]] = {
    Form.WHOLE: State.WHOLE,
    Form.SHARED: State.SHARED,
    Form.MIG: State.MIG,
}
_DIVIDED: Final = frozenset((State.SHARED, State.MIG))
_FULL: Final = 100


@dataclass(frozen=True, slots=True)
class Held:
    """A result of an allocation: whose, and of a share how much memory in bytes."""

    claim: str
    memory: int


@dataclass(slots=True)
class _Parts:
    """The devices of one card, while they are gathered."""

    address: str
    devices: list[Raw] = field(default_factory=list)


def cards_of(devices: Iterable[Raw], held: Mapping[str, Sequence[Held]]) -> tuple[Card, ...]:
    """The cards of a pool by address. held: by the name of the device."""
    parts: dict[str, _Parts] = {}
    for device in devices:
        address = attribute(device, names.PCI_BUS_ID) or text(device.get("name"))
        parts.setdefault(address, _Parts(address)).devices.append(device)
    return tuple(_card(parts[address], held) for address in sorted(parts))


def attribute(device: Raw, name: str) -> str:
    """The value of an attribute as text, empty where it is absent."""
    typed = mapping(mapping(device.get("attributes")).get(name))
    return "".join(str(value) for value in typed.values())


def bytes_of(value: Any) -> int:
    """A quantity in bytes, NO_MEMORY for what is none."""
    try:
        return quantity.parse(str(value)).as_approximate_int()
    except DragoonError:
        return NO_MEMORY


def taint_text(taint: Raw) -> str:
    """A taint as people write it: `key=value:effect`."""
    value = f"={text(taint.get('value'))}" if taint.get("value") else ""
    return f"{text(taint.get('key'))}{value}:{text(taint.get('effect'))}"


def _card(parts: _Parts, held: Mapping[str, Sequence[Held]]) -> Card:
    devices = parts.devices
    memory = max((_memory(device) for device in devices), default=NO_MEMORY)
    used = list(_used(devices, held))
    state = _STATES.get(used[0][0], State.WHOLE) if used else State.FREE
    if not used and all(map(_keeps_off, devices)):
        state = State.UNUSABLE
    return Card(
        address=parts.address,
        product=_first(devices, attributes.PRODUCT),
        memory=memory,
        domain=_first(devices, attributes.NVLINK_DOMAIN),
        state=state,
        fill=_fill(memory, state, [hold for _, hold in used]),
        forms=tuple(dict.fromkeys(filter(None, map(_form, devices)))),
        holds=tuple(hold for _, hold in used),
        taints=tuple(dict.fromkeys(taint_text(one) for d in devices for one in _taints(d))),
    )


def _used(
    devices: Iterable[Raw], held: Mapping[str, Sequence[Held]]
) -> Iterator[tuple[Form | None, Hold]]:
    for device in devices:
        name, form = (
            text(device.get("name")),
            attributes.FORMS.get(attribute(device, attributes.TYPE)),
        )
        for one in held.get(name, ()):
            yield form, Hold(one.claim, name, one.memory or _memory(device))


def _fill(memory: int, state: State, holds: Sequence[Hold]) -> int:
    """Per cent of the card that is held, at least 1 where anything is."""
    if not holds:
        return 0
    if memory == NO_MEMORY or state not in _DIVIDED:
        return _FULL
    return min(_FULL, max(1, sum(hold.memory for hold in holds) * _FULL // memory))


def _form(device: Raw) -> str:
    """The form; of a MIG device its profile."""
    form = attributes.FORMS.get(attribute(device, attributes.TYPE))
    if form is Form.MIG:
        return attribute(device, attributes.PROFILE)
    return form.value if form else ""


def _memory(device: Raw) -> int:
    size = mapping(mapping(device.get("capacity")).get(attributes.MEMORY)).get("value")
    return NO_MEMORY if size is None else bytes_of(size)


def _taints(device: Raw) -> Iterator[Raw]:
    return map(mapping, listed(device.get("taints")))


def _keeps_off(device: Raw) -> bool:
    return any(one.get("effect") in names.KEEPS_OFF for one in _taints(device))


def _first(devices: Iterable[Raw], name: str) -> str:
    return next(filter(None, (attribute(device, name) for device in devices)), "")
