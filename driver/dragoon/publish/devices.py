"""The cards of a node as devices: names, attributes, taints. Pure.

A device is named after its PCI address and keeps its name whatever happens to its neighbours.
What is wrong with one card costs that card: it is published with a taint, so that nothing new is
given to it while claims that hold it keep their device (dra-api.md H.18).
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoon.api import limits, names
from dragoon.api.device_validation import check_device
from dragoon.api.finding import Finding
from dragoon.gpu.model import FabricState, Gpu, Inventory, LostGpu, PciAddress
from dragoon.gpu.naming import whole_name
from dragoon.kube.port import Object
from dragoon.publish import attributes
from dragoon.publish.attributes import Facts

_NOT_IN_LABEL: Final = re.compile(r"[^A-Za-z0-9_.-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Taint:
    """Keeps claims off a device unless they tolerate it. value tells people why."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    @classmethod
    def because(cls, key: str, reason: str) -> "Taint":
        """A NoSchedule taint whose value is the reason, as far as a label value can say it."""
        text = _NOT_IN_LABEL.sub("-", reason)[: limits.LABEL_BYTES].strip("-_.")
        return cls(key, text)

    def raw(self) -> Object:
        value = {"value": self.value} if self.value else {}
        return {"key": self.key, **value, "effect": self.effect}


@dataclass(frozen=True, slots=True)
class Device:
    """One device of the pool. attributes and capacity are in the API's form."""

    name: str
    attributes: Mapping[str, Object]
    capacity: Mapping[str, Object]
    taints: tuple[Taint, ...] = ()

    def raw(self) -> Object:
        """The device as it stands in a ResourceSlice; empty maps are left out."""
        body: Object = {"name": self.name, "attributes": dict(self.attributes)}
        if self.capacity:
            body["capacity"] = dict(self.capacity)
        if self.taints:
            body["taints"] = [taint.raw() for taint in self.taints]
        return body


@dataclass(frozen=True, slots=True)
class Card:
    """A working card with what is known besides the card itself."""

    facts: Facts
    taints: tuple[Taint, ...] = ()


Form = Callable[[Card], tuple[tuple[Device, ...], tuple[Finding, ...]]]
"""Builds the devices of one form of a card, and tells what had to be left out of them."""


def whole(card: Card) -> tuple[tuple[Device, ...], tuple[Finding, ...]]:
    """The form in which a claim gets the whole GPU."""
    described = attributes.describe(card.facts)
    name = whole_name(card.facts.gpu.address)
    device = Device(name, described.attributes, described.capacity, card.taints)
    return (device,), described.left_out


@dataclass(frozen=True, slots=True)
class Devices:
    """What a node offers, sorted by name, and what people should know about it.

    problems are the same text for the same hardware, so that each can be told once.
    """

    devices: tuple[Device, ...] = ()
    problems: tuple[str, ...] = ()


def build(
    inventory: Inventory,
    *,
    domains: Mapping[PciAddress, str] | None = None,
    taints: Mapping[PciAddress, Sequence[Taint]] | None = None,
    last_seen: Mapping[str, Object] | None = None,
    forms: Sequence[Form] = (whole,),
) -> Devices:
    """The devices of an inventory.

    domains: the NVLink domain of each card that has one (publish.domains).
    taints: taints of cards that work but must not be given away.
    last_seen: raw devices published earlier, by name: a lost card keeps what it said of itself.
    """
    domains, taints, last_seen = domains or {}, taints or {}, last_seen or {}
    working, lost = _sort_out(inventory)
    found: list[Device] = []
    problems: list[str] = []
    for gpu in working:
        problems.extend(f"GPU {gpu.address}: {problem}" for problem in _visible(gpu))
        facts = Facts(gpu, inventory, domains.get(gpu.address))
        card = Card(facts, tuple(taints.get(gpu.address, ())))
        for form in forms:
            made, left_out = form(card)
            found.extend(made)
            problems.extend(f"left out {finding}" for finding in left_out)
    for card_lost in lost:
        problems.append(f"GPU {card_lost.address or 'at an unknown address'}: {card_lost.reason}")
        if card_lost.address is not None:
            known = last_seen.get(whole_name(card_lost.address))
            found.append(_lost(card_lost, card_lost.address, known, simulated=inventory.simulated))
    return Devices(
        tuple(sorted(found, key=lambda device: device.name)), tuple(dict.fromkeys(problems))
    )


def valid(devices: Sequence[Device]) -> tuple[tuple[Device, ...], tuple[Finding, ...]]:
    """The devices that an API server and the allocator accept, and what is wrong with the rest.

    A name given twice would make the whole pool unusable (dra-api.md C.3): none of them stays.
    """
    names_ = Counter(device.name for device in devices)
    kept: list[Device] = []
    findings: list[Finding] = []
    for device in devices:
        wrong = list(check_device(device.raw(), f"devices[{device.name}]"))
        if names_[device.name] > 1:
            wrong.append(Finding("devices.name", device.name, "one device of this name"))
        findings.extend(wrong)
        if not wrong:
            kept.append(device)
    return tuple(kept), tuple(findings)


def _visible(gpu: Gpu) -> tuple[str, ...]:
    """What people should know of a working card."""
    fabric = gpu.fabric
    if fabric.state is FabricState.FAILED:
        return (*gpu.problems, f"no {attributes.FABRIC_CLIQUE}: {fabric.reason}")
    if fabric.cluster_uuid is not None and fabric.reason:
        return (*gpu.problems, f"fabric: {fabric.reason}")
    return gpu.problems


def _sort_out(inventory: Inventory) -> tuple[list[Gpu], list[LostGpu]]:
    """The cards that can be given away, and those that cannot; one entry for an address.

    Which card is meant must be beyond doubt: two records for one address, or one UUID at two
    addresses, and the card counts as lost.
    """
    cards: tuple[Gpu | LostGpu, ...] = (*inventory.gpus, *inventory.lost)
    addresses = Counter(card.address for card in cards if card.address is not None)
    uuids = Counter(gpu.uuid for gpu in inventory.gpus)
    working: list[Gpu] = []
    lost: dict[PciAddress, LostGpu] = {}
    nowhere: list[LostGpu] = []
    for card in cards:
        if card.address is None:
            nowhere.append(card)
        elif addresses[card.address] > 1:
            reason = f"{addresses[card.address]} cards claim this address"
            lost[card.address] = LostGpu(card.address, reason)
        elif isinstance(card, LostGpu):
            lost[card.address] = card
        elif uuids[card.uuid] > 1:
            reason = f"{uuids[card.uuid]} cards claim the UUID {card.uuid}"
            lost[card.address] = LostGpu(card.address, reason)
        else:
            working.append(card)
    return working, [*lost.values(), *nowhere]


def _lost(lost: LostGpu, address: PciAddress, known: Object | None, *, simulated: bool) -> Device:
    """A card that answers nothing, with what it said of itself while it did.

    A selector that reads a missing attribute fails for every pod of the cluster, and selectors are
    evaluated before taints (dra-api.md B.3, C.4). So a card that was never seen working gets a
    type that classes exclude before any selector of a user is asked.
    """
    name = whole_name(address)
    taint = Taint.because(names.TAINT_LOST, lost.reason)
    if known is not None and _still_holds(known, lost, simulated=simulated):
        kept = dict(known.get("attributes") or {})
        kept.pop(attributes.NVLINK_DOMAIN, None)
        return Device(name, kept, dict(known.get("capacity") or {}), (taint,))
    bare: dict[str, Object] = {
        attributes.TYPE: {"string": attributes.TYPE_LOST},
        names.PCI_BUS_ID: {"string": str(address)},
    }
    if lost.uuid:
        bare[attributes.UUID] = {"string": lost.uuid}
    if simulated:
        bare[attributes.SIMULATED] = {"bool": True}
    kept, _ = attributes.valid(bare)
    return Device(name, kept, {}, (taint,))


def _still_holds(known: Object, lost: LostGpu, *, simulated: bool) -> bool:
    """Whether what was published under this name was said by the card that is lost now."""
    said = known.get("attributes") or {}
    uuid = said.get(attributes.UUID, {}).get("string")
    same_card = lost.uuid is None or uuid == lost.uuid
    same_kind = said.get(attributes.SIMULATED, {}).get("bool", False) is simulated
    return same_card and same_kind and not tuple(check_device(known, "known"))
