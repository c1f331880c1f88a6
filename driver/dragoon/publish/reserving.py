"""Nodes for gangs only: all their devices have a taint that only the gang controller ignores. Pure.

There races with kube-scheduler are excluded.
"""

from collections.abc import Sequence

from dragoon.api import names
from dragoon.kube.port import Object
from dragoon.publish.device import Device, Taint


def reserved(devices: Sequence[Device], node: Object) -> tuple[Device, ...]:
    """The devices, with a NoSchedule taint where the node's label says it is for gangs only."""
    labels = node["metadata"].get("labels") or {}
    if labels.get(names.LABEL_GANG_ONLY) != "true":
        return tuple(devices)
    taint = Taint(names.TAINT_GANG_ONLY)
    return tuple(device.tainted(taint) for device in devices)
