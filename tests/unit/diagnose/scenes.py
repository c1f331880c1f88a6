"""Small clusters for explain, simulate and remedies."""

from typing import Any

from dragoon.diagnose.cluster import Cluster
from dragoon.diagnose.pods import PodClaims
from dragoon.diagnose.snapshot import ClusterSnapshot
from tests.unit.diagnose.cases import GPU_CLASS, Raw, claim, exactly, gpu, slice_

DRIVER = "gpu.dragoon.dev"


def node(name: str = "n", *, taints: list[Raw] | None = None, **labels: str) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints} if taints else {},
    }


def gpus(count: int, memory: str = "81559Mi", **attributes: Any) -> list[Raw]:
    return [gpu(f"gpu-{i}", "NVIDIA H100 80GB HBM3", memory, **attributes) for i in range(count)]


def holding(name: str, *devices: str, at: str = "n") -> Raw:
    """A claim that has these devices of a node."""
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": f"{at}/gpu", "device": one} for one in devices
    ]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [at]}]}
    allocation = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }
    made = claim(exactly(count=len(devices)), name=name)
    made["metadata"]["uid"] = f"uid-{name}"
    return {**made, "status": {"allocation": allocation}}


def wanting(*requests: Raw, name: str = "want", **devices: Any) -> Raw:
    made = claim(*requests, name=name, **devices)
    made["metadata"]["uid"] = f"uid-{name}"
    return made


def snapshot(*objects: Raw) -> ClusterSnapshot:
    return ClusterSnapshot.of([GPU_CLASS, *objects], source="test")


def one_node(*devices: Raw, held: list[Raw] | None = None) -> Cluster:
    return Cluster(snapshot(slice_(*devices), node(), *(held or [])))


def pending(*claims: Raw) -> PodClaims:
    return PodClaims(pending=claims)
