"""The nodes and pods of the open traces as Kubernetes objects: every card whole or in shares."""

from typing import Final

from benchmarks.openb import CARD, Box, Pod
from dragoon.api.names import DRIVER_NAME
from dragoon.kube.port import Object

MILLI: Final = "milli"
"""The capacity of a card that can be shared, in thousandths of it."""
USED: Final = "card"
"""The counter that keeps a card and its shares apart."""
_A: Final = f'device.attributes["{DRIVER_NAME}"]'


def classes() -> list[Object]:
    """A class for whole cards, one for shares."""
    return [
        {
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": f'{_A}.type == "{name}"'}}]},
        }
        for name in ("gpu", "shared")
    ]


def slices(node: str, box: Box) -> list[Object]:
    """The slices of a node."""
    sets = [{"name": f"gpu-{at}", "counters": {USED: {"value": "1"}}} for at in range(box.cards)]
    devices = [one for at in range(box.cards) for one in _devices(at, box)]
    pool = {"name": f"{node}/gpu", "generation": 1, "resourceSliceCount": 2}
    return [
        {
            "metadata": {"name": f"{node}-{name}"},
            "spec": {"driver": DRIVER_NAME, "nodeName": node, "pool": pool, name: content},
        }
        for name, content in (("sharedCounters", sets), ("devices", devices))
    ]


def claim(pod: Pod, name: str) -> Object:
    """The claim of a pod that wants cards or a share of one."""
    wish: Object = {"deviceClassName": "gpu", "count": pod.cards}
    if pod.milli < CARD:
        requests = {MILLI: str(pod.milli)}
        wish = {"deviceClassName": "shared", "count": 1, "capacity": {"requests": requests}}
    if pod.models:
        expression = f"{_A}.productName in [{', '.join(f'{one!r}' for one in pod.models)}]"
        wish["selectors"] = [{"cel": {"expression": expression}}]
    request = {"name": "gpus", "exactly": {"allocationMode": "ExactCount", **wish}}
    return {
        "metadata": {"namespace": "openb", "name": name, "uid": name},
        "spec": {"devices": {"requests": [request]}},
    }


def _devices(at: int, box: Box) -> list[Object]:
    uses = [{"counterSet": f"gpu-{at}", "counters": {USED: {"value": "1"}}}]
    attributes = {"productName": {"string": box.model}}
    return [
        {
            "name": f"gpu-{at}",
            "attributes": {"type": {"string": "gpu"}, **attributes},
            "consumesCounters": uses,
        },
        {
            "name": f"gpu-{at}-shared",
            "attributes": {"type": {"string": "shared"}, **attributes},
            "allowMultipleAllocations": True,
            "capacity": {MILLI: {"value": str(CARD)}},
            "consumesCounters": uses,
        },
    ]
