"""Membership of one card in an NVLink fabric that may span nodes."""

import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any

import pynvml

from dragoon.gpu.model import Fabric, FabricState
from dragoon.gpu.nvml.asking import ABSENT, Asking

_STATES = {
    pynvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED: FabricState.UNSUPPORTED,
    pynvml.NVML_GPU_FABRIC_STATE_NOT_STARTED: FabricState.NOT_STARTED,
    pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS: FabricState.IN_PROGRESS,
    pynvml.NVML_GPU_FABRIC_STATE_COMPLETED: FabricState.COMPLETED,
}
_COMPLAINTS = {
    pynvml.NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY: "the fabric says that this GPU is unhealthy",
    pynvml.NVML_GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY: (
        "the fabric says that this GPU has limited capacity"
    ),
}
_OLDER = ABSENT | {pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH}


@dataclass(frozen=True, slots=True)
class _Record:
    state: int
    status: int
    cluster: uuid.UUID
    clique: int
    health: int


def read_fabric(handle: object, asking: Asking) -> Fabric:
    """Asks with the newest form of the query first, and with older ones where it is refused."""
    for question in (_version_4, _version_3, _version_2):
        record, code = asking.answer("fabric", partial(question, handle), normal=_OLDER)
        if record is not None:
            return _judge(record)
        if code not in _OLDER:
            return Fabric(FabricState.FAILED, reason=f"the query fails with NVML code {code}")
    return Fabric(FabricState.UNSUPPORTED)


def _judge(record: _Record) -> Fabric:
    state = _STATES.get(record.state)
    if state is None:
        return Fabric(FabricState.FAILED, reason=f"unknown fabric state {record.state}")
    if state is not FabricState.COMPLETED:
        return Fabric(state)
    if record.status != pynvml.NVML_SUCCESS:
        return Fabric(
            FabricState.FAILED, reason=f"the registration failed with NVML code {record.status}"
        )
    if not record.cluster.int:
        return Fabric(state, reason="the cluster UUID is zero: this fabric does not span nodes")
    return Fabric(
        state,
        cluster_uuid=str(record.cluster),
        clique_id=record.clique,
        reason=_COMPLAINTS.get(record.health, ""),
    )


def _version_4(handle: object) -> _Record:
    info = pynvml.c_nvmlGpuFabricInfo_v4_t()
    pynvml.nvmlDeviceGetGpuFabricInfo_v4(handle, pynvml.byref(info))
    cliques = [
        clique.id
        for clique in info.cliques[: info.numCliques]
        if clique.type == pynvml.NVML_GPU_FABRIC_CLIQUE_TYPE_UNICAST_POINTER
    ]
    return _record(info, clique=cliques[0] if cliques else 0, health=info.healthSummary)


def _version_3(handle: object) -> _Record:
    info = pynvml.c_nvmlGpuFabricInfo_v3_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(handle, pynvml.byref(info))
    return _record(info, clique=info.cliqueId, health=info.healthSummary)


def _version_2(handle: object) -> _Record:
    info = pynvml.c_nvmlGpuFabricInfo_v2_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(handle, pynvml.byref(info))
    return _record(info, clique=info.cliqueId, health=0)


def _record(info: Any, *, clique: int, health: int) -> _Record:
    return _Record(
        state=info.state,
        status=info.status,
        cluster=uuid.UUID(bytes=bytes(info.clusterUuid)),
        clique=clique,
        health=health,
    )
