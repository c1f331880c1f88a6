"""Records of a topology file in words -> the numbers that NVML answers with. Pure."""

import re
import uuid

from dragoon.errors import InvalidInputError
from dragoon.gpu.model import MigProfile
from dragoon.gpu.sim.machine import (
    FABRIC_COMPLETED,
    FABRIC_IN_PROGRESS,
    FABRIC_NOT_STARTED,
    FabricRecord,
)
from dragoon.gpu.sim.schema import FabricEntry, MigEntry, ProfileEntry, demand

_NO_VALUE = (None, "N/A")
_STATES = {
    "not started": FABRIC_NOT_STARTED,
    "in progress": FABRIC_IN_PROGRESS,
    "completed": FABRIC_COMPLETED,
}
_STATUSES = {"success": 0, "failure": 999}  # NVML_SUCCESS, NVML_ERROR_UNKNOWN
_HEALTH = {  # NVML_GPU_FABRIC_HEALTH_SUMMARY_*
    "not supported": 0,
    "not supported or healthy": 0,
    "healthy": 1,
    "unhealthy": 2,
    "limited capacity": 3,
}
# NVML_GPU_INSTANCE_PROFILE_* by slices, and by slices with a suffix
_PLAIN = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4, 8: 5, 6: 6}
_SUFFIXED = {
    (1, "+me"): 7,
    (2, "+me"): 8,
    (1, "+gfx"): 10,
    (2, "+gfx"): 11,
    (4, "+gfx"): 12,
    (1, "-me"): 13,
    (2, "-me"): 14,
    (1, "+me.all"): 15,
    (2, "+me.all"): 16,
    (3, "+gfx"): 17,
}
_DOUBLE_MEMORY = 9  # NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2
_PROFILE = re.compile(r"(\d+)g\.\d+gb(.*)")


def mig_profiles(entry: MigEntry, origin: str) -> tuple[MigProfile, ...]:
    """The GPU instance profiles of a listing, with and ordered by NVML's numbers for them."""
    width = entry.axis_width
    found: dict[int, MigProfile] = {}
    for line in entry.profiles:
        where = f"{origin}: mig.profiles {line.name}"
        ends = [start + line.size for start in line.starts]
        demand(ends and max(ends) <= width, where, ends, f"placements within axisWidth {width}")
        profile = _profile(line, where)
        demand(profile.number not in found, where, line.name, "every profile once")
        found[profile.number] = profile
    return tuple(found[number] for number in sorted(found))


def _profile(entry: ProfileEntry, where: str) -> MigProfile:
    parts = _PROFILE.fullmatch(entry.name)
    slices, suffix = (int(parts[1]), parts[2]) if parts else (0, "")
    number = _SUFFIXED.get((slices, suffix)) if suffix else _PLAIN.get(slices)
    demand(number is not None, where, entry.name, "slices and suffix of an NVML profile")
    if number == _PLAIN[1] and entry.size > 1:
        number = _DOUBLE_MEMORY
    return MigProfile(
        name=entry.name,
        number=number or 0,
        identity=entry.id,
        slices=slices,
        instances=entry.instances,
        memory_mib=None if entry.memory_gib is None else round(entry.memory_gib * 1024),
        multiprocessors=entry.sms,
        starts=entry.starts,
        size=entry.size,
    )


def fabric_record(entry: FabricEntry, origin: str) -> FabricRecord:
    """What the fabric query answers; the clique number alone means nothing without a UUID."""
    state = (entry.state or "N/A").lower()
    if state == "n/a" or state.startswith("not supported"):
        return FabricRecord()
    demand(
        state in _STATES,
        f"{origin}: fabric.state",
        entry.state,
        "null, N/A, not supported ..., Not Started, In Progress, Completed",
    )
    return FabricRecord(
        state=_STATES[state],
        status=_number(entry.status, _STATUSES, f"{origin}: fabric.status"),
        cluster_uuid=_cluster(entry.cluster_uuid, f"{origin}: fabric.clusterUUID"),
        clique=entry.clique_id if isinstance(entry.clique_id, int) else 0,
        health=_number(entry.health_summary, _HEALTH, f"{origin}: fabric.healthSummary"),
    )


def _number(text: str | None, numbers: dict[str, int], where: str) -> int:
    if text in _NO_VALUE:
        return 0
    demand(str(text).lower() in numbers, where, text, ", ".join(numbers))
    return numbers[str(text).lower()]


def _cluster(text: str | None, where: str) -> str:
    if text in _NO_VALUE:
        return FabricRecord().cluster_uuid
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise InvalidInputError(f"{where}: found {text!r}, allowed: a UUID") from error
