"""Regions as the library in a container leaves them."""

import struct


def running(
    data: bytes, number: int, used: dict[int, int], *, status: int = 1, count: int | None = None
) -> bytes:
    """The region after a process took slot `number` and used so many bytes by device."""
    changed = bytearray(data)
    at = 1856 + number * 1960
    struct.pack_into("<ii", changed, at, number + 1, 4711 + number)
    for device, total in used.items():
        parts = (total // 2, 0, total - total // 2, 0, total)
        struct.pack_into("<5Q", changed, at + 8 + device * 64, *parts)
    struct.pack_into("<i", changed, at + 1928, status)
    struct.pack_into("<i", changed, 2008896, number + 1 if count is None else count)
    return bytes(changed)
