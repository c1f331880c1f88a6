"""The region file of HAMi-core: what we write before a container starts, and read while it runs.

Layout v1.2 on 64-bit little-endian glibc, as observed (enforcement.md section 1.3); nothing of
HAMi-core is used. The process that makes the file sets its limits, and later ones believe the file
rather than their environment: so we make it, and limits depend on no container's environment. A
container may write the file, so nothing read from it is trusted: sizes are clamped, and what does
not look like this version is refused rather than guessed.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoon.errors import StateError

BYTES: Final = 2008953
"""One more than is mapped."""
HEADER_BYTES: Final = 1856
MAX_DEVICES: Final = 16

_MAGIC: Final = 19920718
_VERSION: Final = (1, 2)
_FREE_CORES: Final = 100
_UUID_BYTES: Final = 96
_UUIDS_AT: Final = 64
_LIMITS_AT: Final = 1600
_SLOTS_AT: Final = 1856
_SLOT_BYTES: Final = 1960
_SLOTS: Final = 1024
_TAIL_AT: Final = 2008896
_SECOND_SEMAPHORE_AT: Final = 2008920
# glibc's sem_t: the value, then the flag for "shared between processes".
_SEMAPHORE: Final = struct.pack("<Qi20x", 1, 128)
_LIMITS: Final = struct.Struct(f"<{2 * MAX_DEVICES}Q")
_TAIL: Final = struct.Struct("<iiiiQ")
_USED: Final = struct.Struct("<" + "32xQ24x" * MAX_DEVICES)
# utilization switch: throttle as the limits say; recent kernel: what the library starts with.
_SWITCH_ON, _RECENT = 1, 2


@dataclass(frozen=True, slots=True)
class Slot:
    """One device of a container by its CUDA ordinal.

    memory: bytes; cores: per cent, 100 is free.
    """

    uuid: str
    memory: int
    cores: int = _FREE_CORES


@dataclass(frozen=True, slots=True)
class Usage:
    """One device of a running container. used: bytes, summed over its processes.

    pids: of the processes, as the container numbers them. suspicious: what was read cannot be (more
    than a device has), and was clamped.
    """

    uuid: str
    limit: int
    cores: int
    used: int
    pids: frozenset[int]
    suspicious: bool = False


def build(slots: Sequence[Slot], *, priority: int) -> bytes:
    """The bytes of a new region. priority: 0 high, 1 low.

    Raises StateError for more devices than the library handles, or a limit that it reads as none.
    """
    check(slots)
    data = bytearray(BYTES)
    struct.pack_into("<iII", data, 0, _MAGIC, *_VERSION)
    data[24:56] = _SEMAPHORE
    struct.pack_into("<Q", data, 56, len(slots))
    for number, slot in enumerate(slots):
        uuid = slot.uuid.encode("ascii")
        data[_uuid_at(number) : _uuid_at(number) + len(uuid)] = uuid
    data[_LIMITS_AT:_SLOTS_AT] = limits(slots)
    _TAIL.pack_into(data, _TAIL_AT, 0, _SWITCH_ON, _RECENT, priority, 0)
    data[_SECOND_SEMAPHORE_AT : _SECOND_SEMAPHORE_AT + len(_SEMAPHORE)] = _SEMAPHORE
    return bytes(data)


def check(slots: Sequence[Slot]) -> None:
    """Raises StateError for what the library would read as no limit."""
    if not 0 < len(slots) <= MAX_DEVICES:
        raise StateError(
            f"devices in one container: found {len(slots)}, the library limits 1 to {MAX_DEVICES}",
            hint="spread the devices over several containers",
        )
    for slot in slots:
        if not 0 < slot.memory < 2**63 or not 0 < slot.cores <= _FREE_CORES:
            raise StateError(
                f"{slot.uuid}: found a limit of {slot.memory} bytes, {slot.cores} %; allowed are 1 "
                f"to {2**63 - 1} bytes, 1 to {_FREE_CORES} %"
            )
        if not 0 < len(slot.uuid) < _UUID_BYTES or not slot.uuid.isascii():
            raise StateError(f"UUID: found {slot.uuid!r}, allowed are 1 to {_UUID_BYTES - 1} bytes")


def limits(slots: Sequence[Slot]) -> bytes:
    """The part of the file, at `LIMITS_AT`, that holds the limits."""
    memory = [slot.memory for slot in slots] + [0] * (MAX_DEVICES - len(slots))
    cores = [slot.cores for slot in slots] + [0] * (MAX_DEVICES - len(slots))
    return _LIMITS.pack(*memory, *cores)


LIMITS_AT: Final = _LIMITS_AT


def is_region(head: bytes) -> bool:
    """Whether the first HEADER_BYTES of a file are those of a region of this version."""
    return len(head) >= HEADER_BYTES and struct.unpack_from("<iII", head) == (_MAGIC, *_VERSION)


def has_limits(head: bytes, slots: Sequence[Slot]) -> bool:
    """Whether a region, of which these are the first HEADER_BYTES, sets exactly these limits."""
    return is_region(head) and head[_LIMITS_AT:HEADER_BYTES] == limits(slots)


def read(data: bytes) -> tuple[Usage, ...]:
    """The usage of each device, by ordinal. Raises StateError for what is no region of v1.2.

    A slot that is being written while it is read counts as it stands: the next look is right.
    """
    if len(data) < BYTES - 1 or not is_region(data):
        raise StateError(
            f"region file: found {len(data)} bytes of another layout, allowed is v1.2",
            hint="the library is of a version that was not tried with this driver",
        )
    used, pids = _used(data)
    memory_and_cores = _LIMITS.unpack_from(data, _LIMITS_AT)
    (count,) = struct.unpack_from("<Q", data, 56)
    return tuple(
        _usage(data, number, memory_and_cores, used[number], pids)
        for number in range(min(count, MAX_DEVICES))
    )


def _usage(
    data: bytes, number: int, limits_: tuple[int, ...], used: int, pids: frozenset[int]
) -> Usage:
    start = _uuid_at(number)
    uuid = data[start : start + _UUID_BYTES].partition(b"\0")[0].decode("ascii", errors="replace")
    # The library subtracts without looking: what "underflowed" is close to 2**64 (HAMi issue 1181).
    suspicious = used >= 2**47
    return Usage(
        uuid=uuid,
        limit=limits_[number],
        cores=limits_[MAX_DEVICES + number],
        used=0 if suspicious else used,
        pids=pids,
        suspicious=suspicious,
    )


def _used(data: bytes) -> tuple[list[int], frozenset[int]]:
    """Bytes by ordinal, and the processes that live. A slot of status 0 keeps stale numbers."""
    totals = [0] * MAX_DEVICES
    pids = set()
    count = _TAIL.unpack_from(data, _TAIL_AT)[0]
    for number in range(min(max(count, 0), _SLOTS)):
        at = _SLOTS_AT + number * _SLOT_BYTES
        if not struct.unpack_from("<i", data, at + 1928)[0]:
            continue
        pids.add(struct.unpack_from("<i", data, at)[0])
        for device, used in enumerate(_USED.unpack_from(data, at + 8)):
            totals[device] += used
    return totals, frozenset(pids)


def _uuid_at(number: int) -> int:
    return _UUIDS_AT + number * _UUID_BYTES
