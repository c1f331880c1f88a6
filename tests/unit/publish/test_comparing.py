"""What counts as a difference, and how it is told."""

import copy
from collections.abc import Callable
from typing import Any

from dragoon.publish.comparing import content, differences
from tests.unit.publish.standing import TAINT, device, standing, target

Object = dict[str, Any]

WANTED = target([device(0, taints=[TAINT]), device(1, capacity={"memory": {"value": "80Gi"}})])


def told(change: Callable[[Object], object]) -> list[str]:
    """The differences after a change of the stored slice, in words."""
    sent = WANTED.slice_(0)
    (stored,) = standing(WANTED)
    change(stored)
    return [str(each) for each in differences(content(sent), content(stored))]


def test_what_the_server_adds_is_no_difference() -> None:
    assert told(lambda s: s["metadata"].update(managedFields=[1])) == []
    assert told(lambda s: s["spec"]["pool"].update(generation=9)) == []


def test_dropped_taints_name_their_gate() -> None:
    (text,) = told(lambda s: s["spec"]["devices"][0].pop("taints"))
    assert text == (
        "spec.devices[gpu-0].taints was dropped by the API server: its feature gate "
        "DRADeviceTaints is probably off"
    )


def test_an_emptied_list_of_taints_is_dropped() -> None:
    assert "dropped" in told(lambda s: s["spec"]["devices"][0]["taints"].clear())[0]


def test_a_slice_without_its_pool_is_told() -> None:
    assert told(lambda s: s["spec"].pop("pool")) == ["spec.pool was dropped by the API server"]


def test_a_changed_value_is_told_by_its_path() -> None:
    assert told(lambda s: s["spec"]["devices"][1]["attributes"]["type"].update(string="x")) == [
        "spec.devices[gpu-1].attributes.type.string was changed by the API server or its admission"
    ]
    assert told(lambda s: s["spec"]["devices"][1]["capacity"]["memory"].update(value="81Gi")) == [
        "spec.devices[gpu-1].capacity.memory.value was changed by the API server or its admission"
    ]


def test_an_added_field_is_told() -> None:
    assert told(lambda s: s["spec"].update(allNodes=True)) == [
        "spec.allNodes was changed by the API server or its admission"
    ]


def test_a_removed_device_is_told() -> None:
    assert told(lambda s: s["spec"]["devices"].pop()) == [
        "spec.devices was changed by the API server or its admission",
        "spec.devices[gpu-1] was dropped by the API server",
    ]


def test_comparing_changes_nothing() -> None:
    (stored,) = standing(WANTED)
    before = copy.deepcopy(stored)
    content(stored)
    assert stored == before
