"""What a state keeps of 1,000 nodes with 128 devices each: records and bytes, counted one by one."""

import sys
from collections import Counter
from typing import Any

import pytest

from dragoon.allocator import ClusterState
from dragoon.allocator.model import Device, Facts
from tests.reachable import reachable
from tests.unit.allocator.objects import DRIVER, PLACEMENTS, Raw, counters, slice_of, uses

NODES = 1000
GPUS = 8
FORMS = 2 + sum(len(starts) for _, _, starts in PLACEMENTS.values())
KINDS = 2 + len(PLACEMENTS)
"""Devices of one GPU that differ in more than their name and counters."""


def node_slices(serial: int) -> list[Raw]:
    """A counter set per GPU, and each GPU whole, shared and in all placements."""
    name = f"node-{serial}"
    sets = ((f"card-{gpu}", {"memory": "8", "compute": "7"}) for gpu in range(GPUS))
    head = counters(*sets, count=3, name=f"{name}-0")
    devices = [one for gpu in range(GPUS) for one in gpu_devices(serial, gpu)]
    head["spec"].update(nodeName=name, pool={**head["spec"]["pool"], "name": f"{name}/gpu"})
    half = len(devices) // 2
    return [
        head,
        slice_of(*devices[:half], node=name, name=f"{name}-1", count=3),
        slice_of(*devices[half:], node=name, name=f"{name}-2", count=3),
    ]


def gpu_devices(serial: int, gpu: int) -> list[Raw]:
    common = {
        "uuid": {"string": f"GPU-{serial}-{gpu}"},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "driverVersion": {"version": "590.44.1"},
        "resource.kubernetes.io/numaNode": {"int": gpu // 4},
    }

    def one(name: str, memory: int, compute: int, **fields: Any) -> Raw:
        return {
            "name": f"gpu-{gpu}{name}",
            "attributes": common | fields.pop("attributes"),
            "capacity": {"memory": {"value": f"{10 * memory}Gi"}},
            "consumesCounters": uses(f"card-{gpu}", memory=memory, compute=compute),
            **fields,
        }

    return [
        one("", 8, 7, attributes={"type": {"string": "gpu"}}),
        one(
            "-shared",
            8,
            7,
            attributes={"type": {"string": "shared"}},
            allowMultipleAllocations=True,
        ),
        *(
            one(f"-{profile}-{start}", memory, compute, attributes={"profile": {"string": profile}})
            for profile, (compute, memory, starts) in PLACEMENTS.items()
            for start in starts
        ),
    ]


@pytest.fixture(scope="module")
def state() -> ClusterState:
    found = ClusterState()
    for serial in range(NODES):
        for raw in node_slices(serial):
            found.put_slice(raw)
    return found


@pytest.fixture(scope="module")
def kept(state: ClusterState) -> list[object]:
    """All objects that the pools of the state consist of."""
    return reachable(tuple(state.snapshot().pools.values()))


def test_a_thousand_nodes_share_all_that_is_equal(kept: list[object]) -> None:
    counts = Counter(type(one) for one in kept)
    devices = [one for one in kept if isinstance(one, Device)]
    assert counts[Device] == NODES * GPUS * FORMS == 128_000
    # Whole, shared and the largest profile take the same of a card.
    assert len({id(one.counters) for one in devices}) == GPUS * len(PLACEMENTS)
    # A GPU's own attributes are kept once for each of its kinds, nothing for a placement.
    assert counts[Facts] == NODES * GPUS * KINDS
    assert len({id(one.name) for one in devices}) == GPUS * FORMS
    # Nothing of a raw object, which is made of dicts, is left.
    assert not counts[dict]


def test_a_thousand_nodes_take_less_than_400_bytes_a_device(state: ClusterState) -> None:
    """With all that the state itself keeps beside the records, such as what it knows as equal."""
    size = sum(map(sys.getsizeof, reachable(state)))
    assert size < 400 * NODES * GPUS * FORMS, f"{size / 2**20:.0f} MiB"


def test_a_slice_written_again_and_again_keeps_nothing_of_before(state: ClusterState) -> None:
    before = len(state.snapshot().pools)
    for generation in range(2, 5):
        for raw in node_slices(0):
            raw["spec"]["pool"]["generation"] = generation
            state.put_slice(raw)
    (pool,) = (one for id_, one in state.snapshot().pools.items() if id_.pool == "node-0/gpu")
    assert len(pool.slices) == 3
    assert len(state.snapshot().pools) == before
    assert {one.generation for one in pool.slices} == {4}
    assert pool.slices[0].pool.driver == DRIVER
