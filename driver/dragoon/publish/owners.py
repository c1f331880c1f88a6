"""Who else gives this node's cards away (case C52). Pure.

Two owners without a common ledger give one card to two pods. Seen are: a device plugin, by the
node's allocatable, and another DRA driver, by a slice that names a UUID or PCI address of ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dragoon import quantity
from dragoon.api import names
from dragoon.errors import InvalidInputError
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.publish.device import Taint

Object = Mapping[str, Any]

_PLUGIN_RESOURCES: Final = ("nvidia.com/gpu", "nvidia.com/mig-")
_UUID_ATTRIBUTES: Final = ("uuid", "parentuuid")
_ADDRESS_ATTRIBUTES: Final = ("pcibusid", "pciaddress")


@dataclass(frozen=True, slots=True)
class Owner:
    """Somebody who offers cards of this node. name: a resource or a driver; how: a sentence."""

    name: str
    how: str
    cards: tuple[PciAddress, ...]


def coexists(node: Object) -> bool:
    """Whether this node's label says that two owners are wanted."""
    labels = node["metadata"].get("labels") or {}
    return bool(labels.get(names.LABEL_COEXIST) == "true")


def find(
    node: Object, slices: Sequence[Object], inventory: Inventory, *, driver: str
) -> tuple[Owner, ...]:
    """The other owners, ordered by name.

    slices: all slices of this node, of whatever driver.
    """
    found = [*_plugins(node, inventory), *_drivers(slices, inventory, driver)]
    return tuple(sorted(found, key=lambda owner: owner.name))


def taints(owners: Sequence[Owner]) -> dict[PciAddress, tuple[Taint, ...]]:
    """One NoSchedule taint for each card that has another owner; its value is the first of them."""
    result: dict[PciAddress, tuple[Taint, ...]] = {}
    for owner in owners:
        for card in owner.cards:
            result.setdefault(card, (Taint.because(names.TAINT_OTHER_OWNER, owner.name),))
    return result


def describe(owners: Sequence[Owner]) -> str:
    """What an Event on the Node says."""
    told = "; ".join(
        f"{owner.how} ({len(owner.cards)} GPU{'s' if len(owner.cards) > 1 else ''})"
        for owner in owners
    )
    return (
        f"GPUs of this node are offered twice: {told}. They are tainted {names.TAINT_OTHER_OWNER} "
        f"and not given to new claims. Remove the other owner, or set the label "
        f"{names.LABEL_COEXIST}=true on the node to accept it."
    )


def plugin_resources(node: Object) -> list[tuple[str, str]]:
    """GPUs that a device plugin offers on the node: resource and amount."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return [
        (resource, str(amount))
        for resource, amount in allocatable.items()
        if resource.startswith(_PLUGIN_RESOURCES) and _is_some(amount)
    ]


def _plugins(node: Object, inventory: Inventory) -> list[Owner]:
    """Of a device plugin. Which cards it means is not told: all of them."""
    cards = tuple(gpu.address for gpu in inventory.gpus)
    return [
        Owner(resource, f"a device plugin offers {resource}: {amount}", cards)
        for resource, amount in plugin_resources(node)
        if cards
    ]


def _is_some(amount: Any) -> bool:
    try:
        return quantity.parse(str(amount)).sign > 0
    except InvalidInputError:
        return True


def _drivers(slices: Sequence[Object], inventory: Inventory, driver: str) -> list[Owner]:
    by_uuid = {gpu.uuid.lower(): gpu.address for gpu in inventory.gpus}
    addresses = {gpu.address for gpu in inventory.gpus}
    found: dict[str, set[PciAddress]] = {}
    for slice_ in slices:
        other = slice_["spec"]["driver"]
        if other == driver:
            continue
        for device in slice_["spec"].get("devices") or []:
            for card in _cards(device.get("attributes") or {}, by_uuid, addresses):
                found.setdefault(other, set()).add(card)
    return [
        Owner(other, f"the DRA driver {other} publishes them", tuple(sorted(cards)))
        for other, cards in found.items()
    ]


def _cards(
    attributes: Object, by_uuid: Mapping[str, PciAddress], addresses: set[PciAddress]
) -> list[PciAddress]:
    """The cards of ours that another driver's device means."""
    found = []
    for name, value in attributes.items():
        text, short = value.get("string"), name.rpartition("/")[2].lower()
        if not isinstance(text, str):
            continue
        if short in _UUID_ATTRIBUTES and text.lower() in by_uuid:
            found.append(by_uuid[text.lower()])
        elif short in _ADDRESS_ATTRIBUTES:
            address = _address(text)
            if address in addresses:
                found.append(address)
    return found


def _address(text: str) -> PciAddress | None:
    try:
        return PciAddress.parse(text)
    except InvalidInputError:
        return None
