"""What was published last of this node's cards, by this process or an earlier one."""

from collections.abc import Mapping, Sequence

from dragoon.gpu.model import Inventory, PciAddress
from dragoon.kube.port import Object
from dragoon.publish import attributes, domains
from dragoon.publish.devices import Devices, of_card


class LastSeen:
    """Cards that are lost, or away for a while, are published as they were.

    devices: raw, by name. domains: the values of nvlinkDomain.
    """

    def __init__(self) -> None:
        self.devices: Mapping[str, Object] = {}
        self.domains: Mapping[PciAddress, str] = {}

    @property
    def divided(self) -> bool:
        """Whether there are MIG devices."""
        return any(
            attributes.PROFILE in (raw.get("attributes") or {}) for raw in self.devices.values()
        )

    @property
    def shared(self) -> bool:
        """Whether there are shares."""
        return any(raw.get("allowMultipleAllocations") for raw in self.devices.values())

    def recall(self, slices: Sequence[Object], driver: str) -> None:
        """Takes over what an earlier process published. slices: of any driver."""
        devices = [
            device
            for slice_ in slices
            if slice_["spec"]["driver"] == driver
            for device in slice_["spec"].get("devices") or []
        ]
        self.domains = domains.published(devices)
        self.devices = {device["name"]: device for device in devices}

    def of_working(self, inventory: Inventory) -> set[str]:
        """The names of the devices of cards that work now."""
        return {name for gpu in inventory.gpus for name in of_card(self.devices, gpu.address)}

    def take_over(
        self, inventory: Inventory, built: Devices, values: Mapping[PciAddress, str]
    ) -> None:
        """What is said now of each card. values: as `domains`; of absent cards the memory stays."""
        cards = {gpu.address for gpu in inventory.gpus} | {c.address for c in inventory.lost}
        here = {name for card in cards if card for name in of_card(self.devices, card)}
        away = {name: raw for name, raw in self.devices.items() if name not in here}
        self.devices = away | {device.name: device.raw() for device in built.devices}
        self.domains = {**self.domains, **values}
