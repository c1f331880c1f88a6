"""Finding the card that an allocated device is on. Pure."""

from dragoon.api.claims import AllocatedDevice, ClaimRef
from dragoon.api.forms import Form
from dragoon.errors import DeviceLostError, HardwareError, UnknownDeviceError
from dragoon.gpu import naming
from dragoon.gpu.model import Gpu, Inventory, LostGpu, PciAddress
from dragoon.prepare.given import form_of
from dragoon.prepare.settings import PrepareSettings

_NAMES = {Form.WHOLE: naming.whole_name, Form.SHARED: naming.shared_name}


def locate(
    ref: ClaimRef, result: AllocatedDevice, inventory: Inventory, settings: PrepareSettings
) -> Gpu:
    """The card of a device, whole, shared or divided.

    Raises UnknownDeviceError, DeviceLostError, or HardwareError where two cards answer at its
    address.
    """
    if result.pool != settings.pool:
        raise UnknownDeviceError(
            f"claim {ref}: request {result.request} got {result.device} of pool {result.pool!r}; "
            f"this node's pool is {settings.pool!r}",
            hint="the pod runs on another node than its devices: check its nodeName",
        )
    address = naming.address_of(result.device)
    cards: list[Gpu | LostGpu] = []
    if address is not None and _is_named(result.device, address):
        cards = [card for card in inventory.cards if card.address == address]
    if len(cards) > 1:
        raise HardwareError(
            f"claim {ref}: {len(cards)} GPUs answer at the address of {result.device}",
            hint="the driver's view of the bus is broken: reboot the node",
        )
    match cards:
        case [Gpu() as gpu]:
            return gpu
        case [LostGpu() as lost]:
            raise DeviceLostError(f"claim {ref}: {result.device} is lost: {lost.reason}")
    names = ", ".join(naming.whole_name(gpu.address) for gpu in inventory.gpus) or "none"
    raise UnknownDeviceError(
        f"claim {ref}: request {result.request} got {result.device!r}, which this node does not "
        f"have; it has {names}",
        hint="delete the pod and its claim: a new claim is allocated from what is here now",
    )


def _is_named(device: str, address: PciAddress) -> bool:
    """Whether a device of the card at that address may have this name.

    Which MIG profiles there are, only the card itself says.
    """
    name = _NAMES.get(form_of(device))
    return name is None or name(address) == device
