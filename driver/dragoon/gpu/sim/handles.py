"""Opaque handles of the simulated library: addresses that stand for a card or an instance."""

import ctypes
import enum
import threading
from dataclasses import dataclass
from typing import Any

from dragoon.gpu.sim.codes import handle_address, put_handle


class Kind(enum.Enum):
    """What a handle is for."""

    DEVICE = "device"
    MIG_DEVICE = "MIG device"
    GPU_INSTANCE = "GPU instance"
    COMPUTE_INSTANCE = "compute instance"


@dataclass(frozen=True, slots=True)
class Thing:
    """What a handle stands for. serial tells an instance from all others ever made."""

    kind: Kind
    slot: int
    serial: int = 0


class Handles:
    """The handles that one process was given. They stay valid pointers, whatever they stand for."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._anchors: dict[Thing, ctypes.Array[ctypes.c_char]] = {}
        self._things: dict[int, Thing] = {}

    def address(self, thing: Thing) -> int:
        """The address that stands for the thing, always the same one."""
        with self._guard:
            if thing not in self._anchors:
                anchor = ctypes.create_string_buffer(1)
                self._anchors[thing] = anchor
                self._things[ctypes.addressof(anchor)] = thing
            return ctypes.addressof(self._anchors[thing])

    def put(self, reference: Any, thing: Thing) -> int:
        """Writes the handle where the caller wants it; SUCCESS."""
        return put_handle(reference, self.address(thing))

    def thing(self, handle: Any, *kinds: Kind) -> Thing | None:
        """What the caller's handle stands for; None for anything else than these kinds."""
        found = self._things.get(handle_address(handle) or 0)
        return found if found is not None and (not kinds or found.kind in kinds) else None
