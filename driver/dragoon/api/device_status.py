"""What our driver says of allocated devices in `claim.status.devices[]`, and how it is read again.

The node plugin writes it, people and the controller read it. An entry names a device (driver, pool,
device, share ID) and has conditions and data. Only the plugin of the claim's node may write it
(verb `associated-node:patch` on `resourceclaims/driver`): so data can be relied on where an
annotation, which whoever may edit the claim can set, could not. Source of the shape: KEP-4817,
resource.k8s.io/v1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

READY: Final = "Ready"
"""Condition: the device can be used by the containers of the claim."""
ENFORCED: Final = "Enforced"
"""Condition: the claim is kept to its part of the device."""
MEMORY_PRESSURE: Final = "MemoryPressure"
"""Condition: a container uses nearly all the memory that its shares allow."""

PREPARED: Final = "Prepared"
"""Reason of Ready=True. Ready=False has the code of a DragoonError (docs/refusals.md)."""

DATA_TIER: Final = "tier"
DATA_MEMORY: Final = "memoryLimit"
DATA_CORES: Final = "coresLimit"
DATA_CONTAINER: Final = "container"
DATA_GPU_UUID: Final = "gpuUUID"
DATA_MIG_UUID: Final = "migUUID"
DATA_MIG_PROFILE: Final = "migProfile"
DATA_ON_REFUSAL: Final = "onRefusal"
"""Data of a device whose claim this node will never prepare: what the node's administrator wants
done about its pods. Absent for refusals that may pass."""

EVICT: Final = "Evict"
"""Value of DATA_ON_REFUSAL: pods of the claim that have an owner should be evicted."""
REPORT: Final = "Report"
"""Value of DATA_ON_REFUSAL: nothing more is done than telling."""


@dataclass(frozen=True, slots=True)
class DeviceRefusal:
    """A device that its node did not prepare.

    code: of the error; on_refusal: EVICT, REPORT or "".
    """

    pool: str
    device: str
    share_id: str | None
    code: str
    message: str
    on_refusal: str = ""
    since: str = ""

    @property
    def is_final(self) -> bool:
        """Whether it will be refused again as long as the claim is as it is."""
        return bool(self.on_refusal)


def refusals(claim: Mapping[str, Any], driver: str) -> tuple[DeviceRefusal, ...]:
    """What the status of a raw claim says of devices of ours that are not ready."""
    found = []
    for entry in (claim.get("status") or {}).get("devices") or ():
        ready = condition(entry, READY)
        if entry.get("driver") == driver and ready and ready.get("status") == "False":
            found.append(
                DeviceRefusal(
                    entry["pool"],
                    entry["device"],
                    entry.get("shareID"),
                    str(ready.get("reason") or ""),
                    str(ready.get("message") or ""),
                    str((entry.get("data") or {}).get(DATA_ON_REFUSAL) or ""),
                    str(ready.get("lastTransitionTime") or ""),
                )
            )
    return tuple(found)


def wants_eviction(claim: Mapping[str, Any], driver: str) -> DeviceRefusal | None:
    """The refusal for which pods of this claim should be evicted, None where there is none."""
    return next((one for one in refusals(claim, driver) if one.on_refusal == EVICT), None)


def condition(entry: Mapping[str, Any], type_: str) -> Mapping[str, Any] | None:
    """The condition of that type in a raw entry of `status.devices`."""
    for one in entry.get("conditions") or ():
        if one.get("type") == type_:
            found: Mapping[str, Any] = one
            return found
    return None


def key(entry: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """What tells an entry, or an allocation's result, from others: the list's map key."""
    return (entry["driver"], entry["pool"], entry["device"], entry.get("shareID") or "")
