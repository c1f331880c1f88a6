"""What a card answers about its NVLinks and about the fabric that it is part of.

Functions and table as in `answers`.
"""

import uuid
from collections.abc import Callable
from typing import Any

from dragoon.gpu.sim.answers import View, put_address
from dragoon.gpu.sim.codes import (
    ARGUMENT_VERSION_MISMATCH,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    SUCCESS,
    number,
    put_number,
    target,
)
from dragoon.gpu.sim.machine import Wire

_FABRIC_V2 = 0x02000024
_FABRIC_V3 = 0x03000028
_REMOTE_GPU, _REMOTE_SWITCH = 0, 2  # NVML_NVLINK_DEVICE_TYPE_*


def _link_state(view: View, link: Any, reference: Any) -> int:
    wire, code = _wire(view, link)
    if wire is None:
        return code
    return put_number(reference, int(view.state.link_is_up(view.slot, number(link))))


def _link_version(view: View, link: Any, reference: Any) -> int:
    wire, code = _wire(view, link)
    return code if wire is None else put_number(reference, view.card.link_version)


def _link_remote_type(view: View, link: Any, reference: Any) -> int:
    wire, code = _live_wire(view, link)
    if wire is None:
        return code
    return put_number(reference, _REMOTE_SWITCH if wire.to_switch else _REMOTE_GPU)


def _link_remote_address(view: View, link: Any, reference: Any) -> int:
    wire, code = _live_wire(view, link)
    if wire is None:
        return code
    peer = wire.switch if wire.slot is None else view.state.address(wire.slot)
    if peer is None:
        return NOT_SUPPORTED
    return put_address(target(reference), peer, view.text(f"{peer.domain:08x}"))


def _wire(view: View, link: Any) -> tuple[Wire | None, int]:
    wires = view.card.wires
    if not wires:
        return None, NOT_SUPPORTED
    if not 0 <= number(link) < len(wires):
        return None, INVALID_ARGUMENT
    return wires[number(link)], SUCCESS


def _live_wire(view: View, link: Any) -> tuple[Wire | None, int]:
    wire, code = _wire(view, link)
    if wire is not None and not view.state.link_is_up(view.slot, number(link)):
        return None, NOT_SUPPORTED  # a link that is down does not know its far end
    return wire, code


def _fabric_v(view: View, reference: Any) -> int:
    info, record = target(reference), view.state.fabric(view.slot)
    if info.version not in {_FABRIC_V2, _FABRIC_V3}:
        return ARGUMENT_VERSION_MISMATCH
    info.cliqueId = record.clique
    if info.version == _FABRIC_V3:
        info.healthSummary = record.health
    return _put_fabric(view, info)


def _fabric_v4(view: View, reference: Any) -> int:
    info, record = target(reference), view.state.fabric(view.slot)
    info.numCliques = 1
    info.cliques[0].type = 0  # NVML_GPU_FABRIC_CLIQUE_TYPE_UNICAST_POINTER
    info.cliques[0].id = record.clique
    info.healthSummary = record.health
    return _put_fabric(view, info)


def _put_fabric(view: View, info: Any) -> int:
    record = view.state.fabric(view.slot)
    info.state, info.status = record.state, record.status
    info.clusterUuid[:] = list(uuid.UUID(record.cluster_uuid).bytes)
    return SUCCESS


LINK_ANSWERS: dict[str, Callable[..., int]] = {
    "nvmlDeviceGetGpuFabricInfoV": _fabric_v,
    "nvmlDeviceGetGpuFabricInfo_v4": _fabric_v4,
    "nvmlDeviceGetNvLinkRemoteDeviceType": _link_remote_type,
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": _link_remote_address,
    "nvmlDeviceGetNvLinkState": _link_state,
    "nvmlDeviceGetNvLinkVersion": _link_version,
}
