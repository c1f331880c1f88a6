"""The NVLinks of one card, link by link."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import pynvml

from dragoon.gpu.model import LinkRemote, NvLink, PciAddress
from dragoon.gpu.nvml.asking import ABSENT, Asking

_REMOTES = {
    pynvml.NVML_NVLINK_DEVICE_TYPE_GPU: LinkRemote.GPU,
    pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH: LinkRemote.SWITCH,
    pynvml.NVML_NVLINK_DEVICE_TYPE_IBMNPU: LinkRemote.OTHER,
}
_PER_LINK = pynvml.NVML_FI_DEV_NVLINK_GET_SPEED  # MB/s of the link named by the scope
_COMMON = pynvml.NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON  # MB/s of every link, older drivers
_PAST_THE_LAST = pynvml.NVML_ERROR_INVALID_ARGUMENT  # what a link number too high is answered with
_VALUES = {
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: "usVal",
}


def read_links(handle: object, asking: Asking) -> tuple[NvLink, ...]:
    """Every link the card has, up or down; empty where it has none (nvmlDeviceGetNvLinkState)."""
    states = _states(handle, asking)
    if not states:
        return ()
    speeds = _speeds(handle, asking, states)
    return tuple(
        _read(handle, asking, index, active=active, speed=speeds.get(index))
        for index, active in states.items()
    )


def with_known_ends(links: tuple[NvLink, ...], before: Iterable[NvLink]) -> tuple[NvLink, ...]:
    """Fills in, for links that are down, the far end they had when they were up.

    A link that is down tells nothing of its far end; the wiring has not changed.
    """
    known = {link.index: link for link in before if link.remote is not LinkRemote.UNKNOWN}
    return tuple(
        replace(link, remote=known[link.index].remote, peer=known[link.index].peer)
        if not link.active and link.remote is LinkRemote.UNKNOWN and link.index in known
        else link
        for link in links
    )


def _states(handle: object, asking: Asking) -> dict[int, bool]:
    states = {}
    for index in range(pynvml.NVML_NVLINK_MAX_LINKS):
        state, code = asking.answer(
            "NVLink state",
            partial(pynvml.nvmlDeviceGetNvLinkState, handle, index),
            normal=ABSENT | {_PAST_THE_LAST},
        )
        if code == _PAST_THE_LAST:
            break
        if state is not None:
            states[index] = state == pynvml.NVML_FEATURE_ENABLED
    return states


def _read(handle: object, asking: Asking, index: int, *, active: bool, speed: int | None) -> NvLink:
    # What is at the end of a link that is down may fail in any way: no problem of the card.
    ends = asking if active else Asking()
    kind = ends.ask(
        "NVLink remote type", partial(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, index)
    )
    peer = ends.ask("NVLink remote address", partial(_peer, handle, index))
    version = ends.ask("NVLink version", partial(pynvml.nvmlDeviceGetNvLinkVersion, handle, index))
    return NvLink(
        index=index,
        active=active,
        remote=LinkRemote.UNKNOWN if kind is None else _REMOTES.get(kind, LinkRemote.UNKNOWN),
        peer=peer,
        version=version or None,
        mb_per_second=speed if active else None,
    )


def _peer(handle: object, index: int) -> PciAddress:
    info = pynvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, index)
    return PciAddress(info.domain, info.bus, info.device)


def _speeds(handle: object, asking: Asking, indices: Iterable[int]) -> dict[int, int]:
    wanted = [(_PER_LINK, index) for index in indices]
    values = asking.ask(
        "NVLink speed",
        partial(pynvml.nvmlDeviceGetFieldValues, handle, [*wanted, (_COMMON, 0)]),
    )
    if values is None:
        return {}
    *per_link, common = (_value(value) for value in values)
    return {
        index: speed
        for (_, index), own in zip(wanted, per_link, strict=True)
        if (speed := own or common)
    }


def _value(field: Any) -> int | None:
    member = _VALUES.get(field.valueType)
    if field.nvmlReturn != pynvml.NVML_SUCCESS or member is None:
        return None
    return int(getattr(field.value, member))
