"""From a raw claim and the hardware to what is to be done: pure, and final in its refusals.

The result is a journal entry: the devices, the hardware that they are, the steps that make them
usable and the answer all follow from it.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoon.api import claims
from dragoon.api.claims import AllocatedDevice, ClaimRef
from dragoon.errors import (
    ClaimError,
    ClaimGoneError,
    ClaimNotAllocatedError,
    DeviceLostError,
    HardwareError,
    InvalidInputError,
    UnknownDeviceError,
)
from dragoon.gpu import naming
from dragoon.gpu.model import Gpu, Inventory, LostGpu
from dragoon.prepare import cdi, cdi_check
from dragoon.prepare.journal import Entry, HeldDevice, State
from dragoon.prepare.paths import check_device, check_uid
from dragoon.prepare.settings import PrepareSettings
from dragoon.prepare.steps import CdiFile, Marker, Step

_MARKER_FOLDER = "/dev/dragoon"
_MARKER_OPTIONS = ("ro", "nosuid", "nodev", "bind")


def ours(raw: Mapping[str, Any], ref: ClaimRef, settings: PrepareSettings) -> claims.Allocation:
    """What the claim got from our driver; results of other drivers are left out (case C42).

    Raises ClaimGoneError when the object is another claim, ClaimNotAllocatedError without an
    allocation, InvalidInputError for a config addressed to us.
    """
    found = claims.claim_ref(raw)
    if found.uid != ref.uid:
        raise ClaimGoneError(
            f"claim {ref}: another claim of that name is there now, its UID is {found.uid}",
            hint="the kubelet asks again with the new claim's UID",
        )
    allocation = claims.allocation(raw)
    if allocation is None:
        raise ClaimNotAllocatedError(f"claim {ref} has no allocation")
    mine = tuple(result for result in allocation.devices if result.driver == settings.driver)
    if mine:
        _check_config(ref, allocation, settings)
    return claims.Allocation(mine, allocation.config)


def plan(
    ref: ClaimRef,
    allocation: claims.Allocation,
    inventory: Inventory,
    settings: PrepareSettings,
    *,
    boot_id: str,
    common: cdi.Edits,
) -> Entry:
    """What to do for `allocation`, which holds only results of our driver.

    common is what every container with a real GPU needs. Raises UnknownDeviceError,
    DeviceLostError, HardwareError, ClaimError or InvalidInputError; a CdiError would be our bug.
    """
    uid = check_uid(ref.uid)
    _check_once(ref, allocation.devices)
    held: list[HeldDevice] = []
    steps: list[Step] = []
    nodes: list[cdi.Device] = []
    for result in allocation.devices:
        gpu = _gpu(ref, result, inventory, settings)
        name = cdi.device_name(uid, result.request, result.device, result.share_id)
        held.append(_held(result, gpu, cdi.qualified(settings.kind, name)))
        if inventory.simulated:
            edits = _simulated_edits(uid, result.device, settings)
            marker = _marker(result.device, gpu)
            steps += [marker] if marker not in steps else []
        else:
            edits = _real_edits(result.device, gpu, settings)
        variable = cdi.device_variable(result.device, gpu.uuid)
        nodes.append(cdi.Device(name, msgspec.structs.replace(edits, env=(variable,))))
    if nodes:
        spec = cdi.claim_spec(settings.kind, nodes, cdi.Edits() if inventory.simulated else common)
        cdi_check.check(spec)
        steps.append(CdiFile(spec))
    return Entry(
        namespace=ref.namespace,
        name=ref.name,
        uid=uid,
        boot_id=boot_id,
        state=State.PREPARING,
        devices=tuple(held),
        steps=tuple(steps),
    )


def _check_config(ref: ClaimRef, allocation: claims.Allocation, settings: PrepareSettings) -> None:
    for index, entry in enumerate(allocation.config):
        opaque = entry.get("opaque") or {}
        if opaque.get("driver") == settings.driver:
            kind = (opaque.get("parameters") or {}).get("kind", "")
            raise InvalidInputError(
                f"claim {ref}: allocation.devices.config[{index}].opaque.parameters: found kind "
                f"{kind!r}, allowed is none: whole GPUs take no configuration",
                hint=f"remove the config block for {settings.driver} from the claim or its class",
            )


def _check_once(ref: ClaimRef, results: tuple[AllocatedDevice, ...]) -> None:
    """Two requests of one claim would each believe that the GPU is theirs alone."""
    exclusive = Counter(result.device for result in results if not result.admin_access)
    named = Counter((result.request, result.device, result.share_id) for result in results)
    twice = [device for device, times in exclusive.items() if times > 1]
    twice += [device for (_, device, _), times in named.items() if times > 1]
    if twice:
        raise ClaimError(
            f"claim {ref}: the allocation gives {twice[0]} twice to one claim",
            hint="delete the pod and its claim; whoever allocated it made a mistake",
        )


def _gpu(
    ref: ClaimRef, result: AllocatedDevice, inventory: Inventory, settings: PrepareSettings
) -> Gpu:
    if result.pool != settings.pool:
        raise UnknownDeviceError(
            f"claim {ref}: request {result.request} got {result.device} of pool {result.pool!r}; "
            f"this node's pool is {settings.pool!r}",
            hint="the pod runs on another node than its devices: check its nodeName",
        )
    every: tuple[Gpu | LostGpu, ...] = (*inventory.gpus, *inventory.lost)
    cards = [card for card in every if _name(card) == result.device]
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
    names = ", ".join(filter(None, (_name(gpu) for gpu in inventory.gpus))) or "none"
    raise UnknownDeviceError(
        f"claim {ref}: request {result.request} got {result.device!r}, which this node does not "
        f"have; it has {names}",
        hint="delete the pod and its claim: a new claim is allocated from what is here now",
    )


def _name(card: Gpu | LostGpu) -> str | None:
    return None if card.address is None else naming.whole_name(card.address)


def _held(result: AllocatedDevice, gpu: Gpu, cdi_id: str) -> HeldDevice:
    return HeldDevice(
        request=result.request,
        pool=result.pool,
        device=check_device(result.device),
        address=str(gpu.address),
        uuid=gpu.uuid,
        cdi_id=cdi_id,
        share_id=result.share_id,
        admin_access=result.admin_access,
    )


def _real_edits(device: str, gpu: Gpu, settings: PrepareSettings) -> cdi.Edits:
    """The GPU's own device file. Its number comes from the driver and may change at every boot."""
    if gpu.minor is None:
        raise HardwareError(
            f"{device}: the driver does not say which /dev/nvidia<minor> it is",
            hint="check `nvidia-smi -q` for its minor number",
        )
    path = f"/dev/nvidia{gpu.minor}"
    host = str(settings.dev_root / path.lstrip("/"))
    return cdi.Edits(device_nodes=(cdi.DeviceNode(path, "" if host == path else host),))


def _simulated_edits(uid: str, device: str, settings: PrepareSettings) -> cdi.Edits:
    """A file in the place where a device file would be."""
    source = str(settings.paths.marker(uid, device))
    return cdi.Edits(mounts=(cdi.Mount(source, f"{_MARKER_FOLDER}/{device}", _MARKER_OPTIONS),))


def _marker(device: str, gpu: Gpu) -> Marker:
    content = {"device": device, "uuid": gpu.uuid, "simulated": True}
    return Marker(device, msgspec.json.encode(content).decode() + "\n")
