"""From what became of a claim to its `status.devices[]`: pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dragoon.api import device_status
from dragoon.api.device_status import ENFORCED, PREPARED, READY, key
from dragoon.api.enforcement import Tier
from dragoon.gpu import naming
from dragoon.kube.port import Object
from dragoon.prepare.journal import HeldDevice
from dragoon.prepare.shares import CORES
from dragoon.prepare.status.outcome import Mark, Outcome, Prepared, Refused, Released
from dragoon.quantity import Format, Quantity

_Condition = tuple[str, bool, str, str]
"""Type, whether it is true, reason, message."""


def devices_after(
    claim: Mapping[str, Any],
    driver: str,
    outcome: Outcome,
    marks: Iterable[Mark] = (),
    *,
    now: str,
) -> list[Object] | None:
    """What `status.devices` of the claim should be; None where it is so already.

    claim: as the API server has it. now: in its form of a time. Entries of other drivers stay as
    they are, in their places. Devices that the claim does not have (any more) get no entry: the API
    server would refuse the whole write.
    """
    status = claim.get("status") or {}
    there = list(status.get("devices") or ())
    mine = {key(one): one for one in there if one["driver"] == driver}
    wanted = {
        key(one): _since(one, mine.get(key(one)), now)
        for one in _entries(status, driver, outcome, tuple(marks))
    }
    after = [wanted.pop(key(one), None) if one["driver"] == driver else one for one in there]
    found = [one for one in after if one is not None] + list(wanted.values())
    return None if found == there else found


def is_news(claim: Mapping[str, Any], driver: str, refused: Refused) -> bool:
    """Whether the claim's status does not say yet that it was refused for that."""
    told = {one.code for one in device_status.refusals(claim, driver)}
    return refused.code not in told


def _entries(
    status: Mapping[str, Any], driver: str, outcome: Outcome, marks: tuple[Mark, ...]
) -> Iterator[Object]:
    if isinstance(outcome, Released):
        return
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    for result in results:
        if result["driver"] != driver:
            continue
        about = _about(result, outcome)
        if about is None:
            continue
        conditions, data = about
        if isinstance(outcome, Prepared):
            conditions = _with_marks(conditions, marks, result["device"])
        entry = {name: result[name] for name in ("driver", "pool", "device")}
        if result.get("shareID"):
            entry["shareID"] = result["shareID"]
        entry["conditions"] = [_raw(one) for one in conditions]
        if data:
            entry["data"] = data
        yield entry


def _with_marks(
    conditions: list[_Condition], marks: tuple[Mark, ...], device: str
) -> list[_Condition]:
    """The conditions of a device in which its marks stand, in place of those of their types."""
    card = naming.address_of(device)
    mine = [one for one in marks if one.card in {None, card}]
    types = {one.type for one in mine}
    kept = [one for one in conditions if one[0] not in types]
    return [*kept, *((one.type, one.is_true, one.reason, one.message) for one in mine)]


def _about(
    result: Mapping[str, Any], outcome: Prepared | Refused
) -> tuple[list[_Condition], Object] | None:
    """Conditions and data of a device; None for one that was allocated since: its prepare tells."""
    if isinstance(outcome, Refused):
        return _refused(outcome)
    wanted = (result["pool"], result["device"], result.get("shareID"))
    for held in outcome.entry.devices:
        if (held.pool, held.device, held.share_id) == wanted:
            ready = (READY, True, PREPARED, "prepared on its node")
            return [ready, _enforced(held)], _data(held)
    return None


def _refused(outcome: Refused) -> tuple[list[_Condition], Object]:
    conditions = [(READY, False, outcome.code, outcome.message)]
    if outcome.unenforceable:
        conditions.append((ENFORCED, False, outcome.code, outcome.message))
    mark = {device_status.DATA_ON_REFUSAL: outcome.on_refusal} if outcome.on_refusal else {}
    return conditions, mark


def _enforced(held: HeldDevice) -> _Condition:
    if held.admin_access:
        return (ENFORCED, False, "AdminAccess", "admin access is not limited")
    if held.mig is not None:
        return (ENFORCED, True, "Mig", f"MIG instance {held.mig}: the hardware keeps it apart")
    if held.share is None:
        return (ENFORCED, True, "WholeGpu", "the GPU is given to this claim alone")
    tier = held.share.tier
    if tier is Tier.NONE:
        return (ENFORCED, False, "NotEnforced", "the share is counted, and nobody is kept to it")
    return (ENFORCED, True, tier.value.capitalize(), f"kept to its limits by the tier {tier}")


def _data(held: HeldDevice) -> Object:
    data: Object = {device_status.DATA_GPU_UUID: held.uuid}
    if held.share is not None and not held.admin_access:
        data[device_status.DATA_TIER] = held.share.tier.value
        if held.share.memory:
            memory = Quantity(held.share.memory, format=Format.BINARY)
            data[device_status.DATA_MEMORY] = str(memory)
        data[device_status.DATA_CORES] = held.share.cores or CORES
        if held.share.container:
            data[device_status.DATA_CONTAINER] = held.share.container
    if held.mig is not None:
        data[device_status.DATA_TIER] = Tier.MIG.value
        data[device_status.DATA_MIG_PROFILE] = held.mig.profile
        data[device_status.DATA_MIG_UUID] = held.mig.uuid
    return data


def _raw(condition: _Condition) -> Object:
    type_, is_true, reason, message = condition
    status = "True" if is_true else "False"
    return {"type": type_, "status": status, "reason": reason, "message": message}


def _since(entry: Object, before: Mapping[str, Any] | None, now: str) -> Object:
    """The entry with the times at which its conditions became so, key order as stored."""
    known = {one.get("type"): one for one in (before or {}).get("conditions") or ()}
    for one in entry["conditions"]:
        old = known.get(one["type"]) or {}
        since = old.get("lastTransitionTime") if old.get("status") == one["status"] else None
        one["lastTransitionTime"] = since or now
    return entry
