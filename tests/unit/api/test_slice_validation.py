"""The rules of a ResourceSlice: each is broken once, and only it is told."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from dragoon.api.slice_validation import check_pool, check_slice

Object = dict[str, Any]


def slice_(**spec: Any) -> Object:
    """A valid slice with some fields of its spec changed; None removes a field."""
    fields: Object = {
        "driver": "gpu.dragoon.dev",
        "nodeName": "node-a",
        "pool": {"name": "node-a/gpu", "generation": 1, "resourceSliceCount": 1},
        "devices": [device()],
    } | spec
    return {
        "metadata": {"name": "00000-gpu.dragoon.dev-node-a-abcde"},
        "spec": {name: value for name, value in fields.items() if value is not None},
    }


def device(number: int = 0, **fields: Any) -> Object:
    return {
        "name": f"gpu-{number}",
        "attributes": {
            "type": {"string": "gpu"},
            "driverVersion": {"version": "580.95.5"},
            "simulated": {"bool": False},
            "resource.kubernetes.io/numaNode": {"int": 0},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    } | fields


def attribute(name: str, value: Any) -> Object:
    return slice_(devices=[device(attributes={name: value})])


def pool(**fields: Any) -> Object:
    return {"name": "node-a/gpu", "generation": 1, "resourceSliceCount": 1} | fields


def taints(*found: Object) -> Object:
    return slice_(devices=[device(taints=list(found))])


def counter_set(number: int = 0, counters: dict[str, str] | None = None) -> Object:
    values = counters or {"slice-0": "1"}
    return {"name": f"gpu-{number}", "counters": {k: {"value": v} for k, v in values.items()}}


TAINT = {"key": "dragoon.dev/lost", "effect": "NoSchedule"}


def test_a_valid_slice_has_no_findings() -> None:
    assert check_slice(slice_()) == ()


def test_an_empty_slice_is_valid() -> None:
    assert check_slice(slice_(devices=[])) == ()
    assert check_slice(slice_(devices=None)) == ()


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        (slice_(driver="gpu_dragoon"), "spec.driver"),
        (slice_(driver="d" * 64), "spec.driver"),
        (slice_(driver=None), "spec.driver"),
        (slice_(pool=None), "spec.pool"),
        (slice_(pool=pool(name="Node/gpu")), "spec.pool.name"),
        (slice_(pool=pool(generation=-1)), "spec.pool.generation"),
        (slice_(pool=pool(generation=2**63)), "spec.pool.generation"),
        (slice_(pool=pool(generation=True)), "spec.pool.generation"),
        (slice_(pool=pool(resourceSliceCount=0)), "spec.pool.resourceSliceCount"),
        (slice_(pool=pool(resourceSliceCount="1")), "spec.pool.resourceSliceCount"),
        (slice_(nodeName=None), "spec"),
        (slice_(allNodes=True), "spec"),
        (slice_(nodeName="node_a"), "spec.nodeName"),
        (slice_(nodeName=None, nodeSelector={"nodeSelectorTerms": []}), "spec.nodeSelector"),
        (slice_(sharedCounters=[counter_set()]), "spec"),
        (slice_(devices=[device(n) for n in range(129)]), "spec.devices"),
        (slice_(devices=[device(n, taints=[TAINT]) for n in range(65)]), "spec.devices"),
        (slice_(devices=[device(), device()]), "spec.devices[1].name"),
        (slice_(devices=[device(name="GPU-0")]), "spec.devices[0].name"),
        (slice_(devices=["gpu-0"]), "spec.devices[0]"),
        (
            slice_(devices=[device(attributes={f"a{n}": {"int": n} for n in range(32)})]),
            "spec.devices[0]",
        ),
        (attribute("a-b", {"int": 1}), "spec.devices[0].attributes[a-b]"),
        (attribute("a", {}), "spec.devices[0].attributes[a]"),
        (attribute("a", None), "spec.devices[0].attributes[a]"),
        (attribute("a", {"int": 1, "bool": True}), "spec.devices[0].attributes[a]"),
        (attribute("a", {"float": 1.5}), "spec.devices[0].attributes[a]"),
        (attribute("a", {"string": "é" * 33}), "spec.devices[0].attributes[a].string"),
        (attribute("a", {"string": 1}), "spec.devices[0].attributes[a].string"),
        (attribute("a", {"int": 2**63}), "spec.devices[0].attributes[a].int"),
        (attribute("a", {"int": True}), "spec.devices[0].attributes[a].int"),
        (attribute("a", {"bool": 1}), "spec.devices[0].attributes[a].bool"),
        (attribute("a", {"version": "580.159.04"}), "spec.devices[0].attributes[a].version"),
        (attribute("a", {"version": "1.2"}), "spec.devices[0].attributes[a].version"),
        (attribute("a", {"version": f"1.2.3-{'x' * 60}"}), "spec.devices[0].attributes[a].version"),
        (
            slice_(devices=[device(capacity={"memory": {"value": "80 GB"}})]),
            "spec.devices[0].capacity[memory].value",
        ),
        (
            slice_(devices=[device(capacity={"memory": {}})]),
            "spec.devices[0].capacity[memory].value",
        ),
        (
            slice_(devices=[device(capacity={"x y": {"value": "1"}})]),
            "spec.devices[0].capacity[x y]",
        ),
        (taints(*[TAINT] * 17), "spec.devices[0].taints"),
        (taints({**TAINT, "key": ""}), "spec.devices[0].taints[0].key"),
        (taints({**TAINT, "value": "a b"}), "spec.devices[0].taints[0].value"),
        (taints({**TAINT, "effect": "PreferNoSchedule"}), "spec.devices[0].taints[0].effect"),
    ],
)
def test_each_rule_that_is_broken_is_told_with_its_path(broken: Object, path: str) -> None:
    before = copy.deepcopy(broken)
    (finding,) = check_slice(broken)
    assert finding.path == path
    assert finding.allowed
    assert broken == before


@pytest.mark.parametrize(
    "limit",
    [
        lambda: slice_(devices=[device(n) for n in range(128)]),
        lambda: slice_(devices=[device(n, taints=[TAINT]) for n in range(64)]),
        lambda: slice_(devices=[device(attributes={f"a{n}": {"int": n} for n in range(31)})]),
        lambda: attribute("a", {"string": "x" * 64}),
        lambda: attribute("a", {"int": -(2**63)}),
        lambda: attribute("a", {"int": None, "bool": True}),
        lambda: taints(*[TAINT] * 16),
        lambda: slice_(nodeName=None, allNodes=True),
    ],
)
def test_what_is_just_allowed_is_allowed(limit: Callable[[], Object]) -> None:
    assert check_slice(limit()) == ()


def test_a_capacity_may_be_a_number() -> None:
    assert check_slice(slice_(devices=[device(capacity={"memory": {"value": 5}})])) == ()


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({"name": "Upper"}, "metadata.name"),
        ({}, "metadata.generateName"),
        ({"generateName": "Upper-"}, "metadata.generateName"),
    ],
)
def test_a_slice_has_a_name_or_the_beginning_of_one(metadata: Object, path: str) -> None:
    (finding,) = check_slice({**slice_(), "metadata": metadata})
    assert finding.path == path


def test_a_slice_without_spec_is_told() -> None:
    assert [finding.path for finding in check_slice({"metadata": {"name": "a"}})] == ["spec"]


def test_a_finding_says_where_what_and_what_is_allowed() -> None:
    (finding,) = check_slice(slice_(nodeName="node_a"))
    assert str(finding) == "spec.nodeName: found 'node_a', allowed is a DNS subdomain"


def test_findings_about_anything_can_be_told_once() -> None:
    odd = slice_(devices=[device(0, attributes={"a": {"strings": ["x"]}})])
    assert len(dict.fromkeys((*check_slice(odd), *check_slice(odd)))) == len(check_slice(odd)) > 0


def test_one_name_in_two_slices_of_a_pool_is_told() -> None:
    slices = [slice_(), slice_(devices=[device(1), device(0)])]
    assert all(check_slice(each) == () for each in slices)
    (finding,) = check_pool(slices)
    assert finding.found == "gpu-0"
    assert check_pool(slices[:1]) == ()
