"""The cards of a node as devices: names, attributes, taints. Pure.

A device is named after its card's PCI address and keeps its name whatever happens to its
neighbours. What is wrong with one card costs that card: it is published with a taint, so that
nothing new is given to it while claims that hold it keep their device.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dragoon.api import names
from dragoon.api.device_validation import check_device
from dragoon.api.finding import Finding
from dragoon.gpu.model import FabricState, Gpu, Inventory, LostGpu, PciAddress
from dragoon.gpu.naming import shared_name, whole_name
from dragoon.kube.port import Object
from dragoon.publish import attributes
from dragoon.publish.attributes import Facts
from dragoon.publish.building import CardDevices, build_card
from dragoon.publish.card import Division
from dragoon.publish.choosing import Wishes
from dragoon.publish.device import CounterSet, Device, Taint, consumption


@dataclass(frozen=True, slots=True)
class Devices:
    """What a node offers, in the order of the pool, and what people should know about it.

    problems are the same text for the same hardware, so that each can be told once.
    """

    devices: tuple[Device, ...] = ()
    counter_sets: tuple[CounterSet, ...] = ()
    problems: tuple[str, ...] = ()


def build(
    inventory: Inventory,
    *,
    wishes: Wishes | None = None,
    divisions: Mapping[PciAddress, Division] | None = None,
    domains: Mapping[PciAddress, str] | None = None,
    taints: Mapping[PciAddress, Sequence[Taint]] | None = None,
    last_seen: Mapping[str, Object] | None = None,
    kept: Iterable[str] = (),
) -> Devices:
    """The devices of an inventory.

    wishes: the forms to be published. divisions: what cards with MIG say. domains: the NVLink
    domain of each card that has one (publish.domains). taints: of cards that work but must not be
    given away. last_seen: raw devices published earlier, by name: a lost card keeps what it said
    of itself. kept: names among them that stay although they are not offered any more.
    """
    divisions, domains, taints = divisions or {}, domains or {}, taints or {}
    last_seen, kept = last_seen or {}, frozenset(kept)
    working, lost = _sort_out(inventory)
    cards: list[tuple[PciAddress, CardDevices]] = []
    problems: list[str] = []
    for gpu in working:
        built = build_card(
            Facts(gpu, inventory, domains.get(gpu.address)),
            divisions.get(gpu.address),
            wishes,
            taints=taints.get(gpu.address, ()),
            kept={n: raw for n, raw in of_card(last_seen, gpu.address).items() if n in kept},
        )
        cards.append((gpu.address, built))
        told = (*_visible(gpu), *built.problems)
        problems.extend(f"GPU {gpu.address}: {problem}" for problem in told)
        problems.extend(f"left out {finding}" for finding in built.left_out)
    for card_lost in lost:
        problems.append(f"GPU {card_lost.address or 'at an unknown address'}: {card_lost.reason}")
        if card_lost.address is not None:
            known = of_card(last_seen, card_lost.address)
            built = _lost(card_lost, card_lost.address, known, simulated=inventory.simulated)
            cards.append((card_lost.address, built))
    return Devices(
        _in_order(cards),
        tuple(built.counter_set for _, built in cards if built.counter_set is not None),
        tuple(dict.fromkeys(problems)),
    )


def of_card(devices: Mapping[str, Object], address: PciAddress) -> dict[str, Object]:
    """Those of the raw devices that are forms of the card in this slot."""
    whole = whole_name(address)
    return {n: raw for n, raw in devices.items() if n == whole or n.startswith(f"{whole}-")}


def _in_order(cards: Sequence[tuple[PciAddress, CardDevices]]) -> tuple[Device, ...]:
    """All whole GPUs, then all shared ones, then MIG, each by the names of the cards.

    The allocator takes the first device that fits and looks at each before it: so who wants whole
    GPUs does not look at placements first.
    """

    def key(found: tuple[PciAddress, Device]) -> tuple[int, str]:
        address, device = found
        forms = [whole_name(address), shared_name(address)]
        rank = forms.index(device.name) if device.name in forms else len(forms)
        return rank, whole_name(address)

    found = [(address, device) for address, built in cards for device in built.devices]
    return tuple(device for _, device in sorted(found, key=key))


def valid(devices: Sequence[Device]) -> tuple[tuple[Device, ...], tuple[Finding, ...]]:
    """The devices that an API server and the allocator accept, and what is wrong with the rest.

    A name given twice would make the whole pool unusable: none of them stays.
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
    cards = inventory.cards
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


def _lost(
    lost: LostGpu, address: PciAddress, known: Mapping[str, Object], *, simulated: bool
) -> CardDevices:
    """A card that answers nothing, with what it said of itself while it did.

    A selector that reads a missing attribute fails for every pod of the cluster, and selectors are
    evaluated before taints. So a card that was never seen working gets a
    type that classes exclude before any selector of a user is asked.
    """
    taint = Taint.because(names.TAINT_LOST, lost.reason)
    said = [raw for raw in known.values() if _still_holds(raw, lost, simulated=simulated)]
    if said:
        return _as_last_seen(whole_name(address), said, taint)
    bare: dict[str, Object] = {
        attributes.TYPE: {"string": attributes.TYPE_LOST},
        names.PCI_BUS_ID: {"string": str(address)},
    }
    if lost.uuid:
        bare[attributes.UUID] = {"string": lost.uuid}
    if simulated:
        bare[attributes.SIMULATED] = {"bool": True}
    kept, _ = attributes.valid(bare)
    return CardDevices((Device(whole_name(address), kept, {}, (taint,)),))


def _as_last_seen(card: str, said: Sequence[Object], taint: Taint) -> CardDevices:
    """All forms of a lost card. Nothing new is given to them, so any counters do.

    As many as all of them together take: a set that gives less than is taken blocks every device
    of the pool.
    """
    wanted: Counter[str] = Counter()
    for raw in said:
        wanted.update(consumption(raw))
    total = CounterSet(card, dict(wanted)) if wanted else None
    devices = [_without_domain(Device.of(raw, total), taint) for raw in said]
    return CardDevices(tuple(devices), total)


def _without_domain(device: Device, taint: Taint) -> Device:
    said = {k: v for k, v in device.attributes.items() if k != attributes.NVLINK_DOMAIN}
    return replace(device, attributes=said, taints=(taint,))


def _still_holds(known: Object, lost: LostGpu, *, simulated: bool) -> bool:
    """Whether what was published under this name was said by the card that is lost now."""
    said = known.get("attributes") or {}
    name = attributes.PARENT_UUID if attributes.PARENT_UUID in said else attributes.UUID
    uuid = said.get(name, {}).get("string")
    same_card = lost.uuid is None or uuid == lost.uuid
    same_kind = said.get(attributes.SIMULATED, {}).get("bool", False) is simulated
    return same_card and same_kind and not tuple(check_device(known, "known"))
