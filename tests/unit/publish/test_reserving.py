"""Nodes that are for gangs only."""

import pytest

from dragoon.api import names
from dragoon.publish.device import Device, Taint
from dragoon.publish.reserving import reserved

_LOST = Taint(names.TAINT_LOST)
_DEVICES = (Device("gpu-0", {}, {}), Device("gpu-1", {}, {}, taints=(_LOST,)))


def test_all_devices_of_a_node_for_gangs_only_are_tainted() -> None:
    node = {"metadata": {"name": "n", "labels": {"dragoon.dev/gang-only": "true"}}}

    found = reserved(_DEVICES, node)

    assert [device.raw()["taints"] for device in found] == [
        [{"key": "dragoon.dev/gang-only", "effect": "NoSchedule"}],
        [
            {"key": "dragoon.dev/lost", "effect": "NoSchedule"},
            {"key": "dragoon.dev/gang-only", "effect": "NoSchedule"},
        ],
    ]


@pytest.mark.parametrize("labels", [None, {}, {"dragoon.dev/gang-only": "yes"}])
def test_devices_of_other_nodes_are_left_as_they_are(labels: dict[str, str] | None) -> None:
    assert reserved(_DEVICES, {"metadata": {"name": "n", "labels": labels}}) == _DEVICES
