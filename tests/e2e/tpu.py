"""A driver that is not ours and whose devices are not GPUs: made up, but the kubelet's own rules hold.

A node has four chips in a mesh of two by two. They are given out singly, in two halves or all
together; counters keep these apart. Nothing of it is known to Dragoon.
"""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from dragoon.api.claims import ClaimRef
from dragoon.kubelet.serving import KubeletPlugin
from dragoon.prepare.port import PreparedDevice
from realcluster.state import Node
from testbed.bed import Bed
from testbed.waiting import until

Object = dict[str, Any]

DRIVER: Final = "tpu.example.com"
"""Also the name of its DeviceClass."""
PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
CHIP, HALF, ALL = "1x1", "2x1", "2x2"
_PLACES: Final[Mapping[str, Sequence[tuple[int, ...]]]] = {
    CHIP: ((0,), (1,), (2,), (3,)),
    HALF: ((0, 1), (2, 3)),
    ALL: ((0, 1, 2, 3),),
}


class Tpus:
    """The driver on all nodes. prepared: UIDs of the claims that kubelets asked it to prepare."""

    def __init__(self) -> None:
        self.prepared: set[str] = set()

    async def prepare(self, claim: ClaimRef) -> tuple[PreparedDevice, ...]:
        """Nothing is done for a container: this driver has no hardware."""
        self.prepared.add(claim.uid)
        return ()

    async def unprepare(self, claim: ClaimRef) -> None:
        """As if it had given something back."""
        self.prepared.discard(claim.uid)


@contextmanager
def tpus(bed: Bed) -> Iterator[Tpus]:
    """The driver, its class and its slices on every node for as long as the context lasts."""
    driver = Tpus()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    ready = threading.Event()
    serving = threading.Thread(
        target=lambda: loop.run_until_complete(_serve(driver, bed.cluster.nodes, ready, stop))
    )
    serving.start()
    try:
        until("the made-up driver is registered", ready.is_set)
        for node in bed.cluster.nodes:
            bed.apply(*slices(node.name, _roots(bed, node.name)))
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        bed.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": DRIVER},
                "spec": {"selectors": [selector]},
            }
        )
        yield driver
    finally:
        bed.kubectl("delete", "resourceslice", "--field-selector", f"spec.driver={DRIVER}")
        bed.kubectl("delete", "deviceclass", DRIVER, "--ignore-not-found")
        loop.call_soon_threadsafe(stop.set)
        serving.join()
        loop.close()


async def _serve(
    driver: Tpus, nodes: Sequence[Node], ready: threading.Event, stop: asyncio.Event
) -> None:
    async with AsyncExitStack() as stack:
        for node in nodes:
            plugin = KubeletPlugin(driver, driver=DRIVER, kubelet_root=Path(node.kubelet_root))
            await stack.enter_async_context(plugin)
            await plugin.wait_registered()
        ready.set()
        await stop.wait()


def _roots(bed: Bed, node: str) -> list[str]:
    """The PCIe roots of the last GPUs of a node, one for each chip: first fit would miss them."""
    found = [
        device["attributes"][PCIE_ROOT]["string"]
        for part in bed.slices(node)
        for device in part["spec"].get("devices") or ()
        if PCIE_ROOT in device["attributes"]
    ]
    return sorted(set(found))[-len(_PLACES[CHIP]) :]


def slices(node: str, roots: Sequence[str]) -> list[Object]:
    """The pool of a node: since 1.35 counters stand in a slice of their own."""
    chips = {f"chip-{number}": {"value": "1"} for number in range(len(_PLACES[CHIP]))}
    devices = [
        _device(node, shape, chips_, roots)
        for shape, places in _PLACES.items()
        for chips_ in places
    ]
    return [
        _slice(node, "counters", {"sharedCounters": [{"name": "chips", "counters": chips}]}),
        _slice(node, "devices", {"devices": devices}),
    ]


def _slice(node: str, part: str, content: Object) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-tpu-{part}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": f"{node}-tpu", "generation": 1, "resourceSliceCount": 2},
            **content,
        },
    }


def _device(node: str, shape: str, chips: tuple[int, ...], roots: Sequence[str]) -> Object:
    attributes: Object = {"shape": {"string": shape}, "mesh": {"string": f"mesh-of-{node}"}}
    if len(chips) == 1:
        attributes[PCIE_ROOT] = {"string": roots[chips[0] % len(roots)]}
    used = {f"chip-{number}": {"value": "1"} for number in chips}
    return {
        "name": f"tpu-{shape}-{chips[0]}",
        "attributes": attributes,
        "consumesCounters": [{"counterSet": "chips", "counters": used}],
    }


def chips_of(device: str) -> set[int]:
    """The chips that a device is made of."""
    _, shape, first = device.split("-")
    return set(next(one for one in _PLACES[shape] if one[0] == int(first)))


def request(shape: str, name: str = "tpu") -> Object:
    """A request for one device of this shape."""
    expression = f'device.attributes["{DRIVER}"].shape == "{shape}"'
    selectors = [{"cel": {"expression": expression}}]
    return {"name": name, "exactly": {"deviceClassName": DRIVER, "selectors": selectors}}
