"""How a cluster stands: what is free, used, tainted or blocked, and what waits."""

from typing import Any

import pytest

from dragoon.diagnose.installed import COMPONENT, OURS, PART_OF
from dragoon.diagnose.standing import (
    BLOCKED,
    CLOSED,
    FREE,
    TAINTED,
    USED,
    DeviceStanding,
    standing,
)
from tests.unit.diagnose.cases import Raw, claim, exactly, gpu, slice_
from tests.unit.diagnose.scenes import gpus, holding, node, snapshot, wanting

TAKES = [{"counterSet": "card", "counters": {"gpu": {"value": "1"}}}]


def states(*objects: Raw) -> dict[str, str]:
    (found,) = standing(snapshot(node(), *objects)).nodes
    return {one.name: one.state for one in found.devices}


def test_a_device_is_free_used_or_tainted() -> None:
    devices = gpus(3)
    devices[2]["taints"] = [{"key": "dragoon.dev/xid", "value": "79", "effect": "NoSchedule"}]
    found = standing(snapshot(node(), slice_(*devices), holding("has", "gpu-0")))
    (one,) = found.nodes
    assert one.devices == (
        DeviceStanding("gpu-0", "whole", USED, ("default/has",)),
        DeviceStanding("gpu-1", "whole", FREE),
        DeviceStanding("gpu-2", "whole", TAINTED, (), ("dragoon.dev/xid=79:NoSchedule",)),
    )
    assert found.totals == {"whole": {USED: 1, FREE: 1, TAINTED: 1}}
    assert (found.allocated, found.pending) == (1, 0)


def test_a_taint_without_effect_and_a_used_device_with_a_taint_count_as_before() -> None:
    devices = gpus(2)
    devices[0]["taints"] = [{"key": "a", "effect": "None"}]
    devices[1]["taints"] = [{"key": "a", "effect": "NoSchedule"}]
    assert states(slice_(*devices), holding("has", "gpu-1")) == {"gpu-0": FREE, "gpu-1": USED}


def test_what_is_in_use_in_another_form_is_not_free() -> None:
    whole = gpu("card-a", "H100", "80Gi") | {"consumesCounters": TAKES}
    part = gpu("card-b", "H100", "80Gi", type="mig") | {"consumesCounters": TAKES}
    two: Raw = {"resourceSliceCount": 2}
    counters = slice_(**two)
    counters["metadata"]["name"] = "counters"
    counters["spec"] |= {
        "devices": [],
        "sharedCounters": [{"name": "card", "counters": {"gpu": {"value": "1"}}}],
    }
    assert states(slice_(whole, part, **two), counters, holding("has", "card-a")) == {
        "card-a": USED,
        "card-b": BLOCKED,
    }


def test_a_pool_that_is_half_there_is_closed_and_said_so() -> None:
    (found,) = standing(snapshot(node(), slice_(*gpus(1), resourceSliceCount=2))).nodes
    assert [one.state for one in found.devices] == [CLOSED]
    assert "being updated" in found.problem


def test_a_rule_on_a_pool_taints_its_devices() -> None:
    rule: Raw = {
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {
            "deviceSelector": {"driver": "gpu.dragoon.dev", "pool": "n/gpu"},
            "taint": {"key": "dragoon.dev/gang", "effect": "NoSchedule"},
        },
    }
    assert states(slice_(*gpus(1)), rule) == {"gpu-0": TAINTED}


def process(name: str, component: str, *, ready: bool, version: str) -> Raw:
    labels = {PART_OF: OURS, COMPONENT: component, "app.kubernetes.io/version": version}
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return {"kind": "Pod", "metadata": {"name": name, "labels": labels}, "status": status}


def test_processes_are_counted_with_their_versions() -> None:
    found = standing(
        snapshot(
            process("a", "plugin", ready=True, version="0.1.0"),
            process("b", "plugin", ready=False, version="0.2.0"),
            process("c", "controller", ready=True, version="0.2.0"),
        )
    )
    assert [str(one) for one in found.processes] == [
        "plugin: 1 of 2 ready (0.1.0, 0.2.0)",
        "controller: 1 of 1 ready (0.2.0)",
    ]


def test_gangs_that_run_are_counted_and_the_others_named() -> None:
    def gang(name: str, **status: Any) -> Raw:
        meta = {"name": name, "namespace": "team"}
        return {"kind": "Gang", "metadata": meta, "status": status}

    found = standing(
        snapshot(
            gang("a", phase="Running"),
            gang("b", phase="Waiting", waitingFor="room"),
            gang("c", phase="Finished"),
            gang("d"),
        )
    )
    assert found.running_gangs == 1
    assert [(one.name, one.phase, one.waiting_for) for one in found.gangs] == [
        ("b", "Waiting", "room"),
        ("d", "", ""),
    ]


@pytest.mark.parametrize(("name", "count"), [("n", 1), ("m", 1), ("x", 0)])
def test_one_node_can_be_asked_about(name: str, count: int) -> None:
    known = snapshot(
        node("n"),
        node("m"),
        slice_(*gpus(1), node="n"),
        slice_(*gpus(1), node="m"),
        holding("has", "gpu-0", at="n"),
        wanting(exactly()),
        claim(exactly(), name="other"),
    )
    found = standing(known, node=name)
    assert len(found.nodes) == count
    assert found.allocated == (1 if name == "n" else 0)
