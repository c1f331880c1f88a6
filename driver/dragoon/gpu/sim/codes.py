"""NVML return codes, and how answers are written into a caller's memory.

Under pynvml, numbers come bare or as ctypes objects, `byref(x)` comes as an object with `_obj`,
text buffers come bare with their size.
"""

import ctypes
from typing import Any

SUCCESS = 0
UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
IN_USE = 19
INSUFFICIENT_RESOURCES = 23
ARGUMENT_VERSION_MISMATCH = 25

# nvmlErrorString
TEXTS = {
    SUCCESS: "Success",
    INVALID_ARGUMENT: "Invalid Argument",
    NOT_SUPPORTED: "Not Supported",
    NOT_FOUND: "Not Found",
    RESET_REQUIRED: "GPU requires restart",
    IN_USE: "In use by another client",
    21: "No data",
    INSUFFICIENT_RESOURCES: "Insufficient Resources",
    ARGUMENT_VERSION_MISMATCH: "Argument version mismatch",
    27: "Not ready",
    28: "GPU not found",
    29: "Invalid state",
}


def number(argument: Any) -> int:
    """The number in an argument, which is an int or a ctypes object."""
    return int(getattr(argument, "value", argument))


def target(reference: Any) -> Any:
    """What a `byref(...)` argument refers to."""
    return reference._obj  # noqa: SLF001 - the only way to the object, see the ctypes docs


def put_number(reference: Any, value: int | None) -> int:
    """Writes a number where the caller wants it; None is "not supported"."""
    if value is None:
        return NOT_SUPPORTED
    target(reference).value = value
    return SUCCESS


def put_text(buffer: Any, size: Any, text: bytes) -> int:
    """Writes text with its closing zero, or says that the buffer is too small."""
    if len(text) >= number(size):
        return INSUFFICIENT_SIZE
    buffer.value = text
    return SUCCESS


def put_handle(reference: Any, address: int, position: int = 0) -> int:
    """Writes an opaque pointer: where a reference points, or at a position of an array."""
    ctypes.cast(reference, ctypes.POINTER(ctypes.c_void_p))[position] = address
    return SUCCESS


def put_member(struct: Any, name: str, address: int) -> None:
    """Writes an opaque pointer into a member of a struct."""
    kind = type(getattr(struct, name))
    setattr(struct, name, ctypes.cast(ctypes.c_void_p(address), kind))


def handle_address(handle: Any) -> int | None:
    """The address in an opaque pointer that the caller holds."""
    return ctypes.cast(handle, ctypes.c_void_p).value
