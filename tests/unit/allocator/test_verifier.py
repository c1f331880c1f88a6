"""The verifier finds every rule that a proposed allocation breaks."""

import copy
from typing import Any

import pytest

from dragoon.allocator import Allocated, allocate, verify
from tests.unit.allocator.objects import (
    DRIVER,
    GPU_CLASS,
    claim,
    class_of,
    device,
    holding,
    node,
    request,
    slice_of,
)

SLICES = [
    slice_of(
        device("a", nvlinkDomain="x", n=1),
        device("b", nvlinkDomain="x", n=1),
        device("c", nvlinkDomain="y", n=0),
        device("d", nvlinkDomain="x", n=1, taints=[{"key": "k", "effect": "NoSchedule"}]),
    ),
    slice_of(device("e", nvlinkDomain="x", n=1), node="m", name="s1"),
]
CLASSES = [GPU_CLASS, class_of("device.driver == 'other'", name="other")]
WISH = claim(
    request("g", 2, f"device.attributes['{DRIVER}'].n == 1"), same=f"{DRIVER}/nvlinkDomain"
)


def good() -> dict[str, Any]:
    outcome = allocate([WISH], classes=CLASSES, slices=SLICES, allocated_claims=[], node=node())
    assert isinstance(outcome, Allocated)
    return copy.deepcopy(outcome.allocations[0])


def problems(
    allocation: dict[str, Any], *held: dict[str, Any], wish: dict[str, Any] | None = None
) -> list[str]:
    return verify(
        [wish or WISH],
        [allocation],
        classes=CLASSES,
        slices=SLICES,
        allocated_claims=held,
        node=node(),
    )


def with_device(position: int, **changes: str) -> dict[str, Any]:
    allocation = good()
    allocation["devices"]["results"][position].update(changes)
    return allocation


def test_what_the_search_gives_is_right() -> None:
    assert problems(good()) == []


@pytest.mark.parametrize(
    ("allocation", "problem"),
    [
        (with_device(1, device="c"), "does not match"),
        (with_device(1, device="c"), "nvlinkDomain is not the same"),
        (with_device(1, device="d"), "taint k is not tolerated"),
        (with_device(1, device="a"), "is given twice"),
        (with_device(1, device="nope"), "is in no slice"),
        (with_device(1, device="e", pool="m/gpu"), "is in no slice of a usable pool"),
        (with_device(1, request="h"), "there is no request h"),
        (with_device(1, request="h"), "request g has 1 devices, wants 2"),
    ],
)
def test_a_wrong_device_is_found(allocation: dict[str, Any], problem: str) -> None:
    assert any(problem in found for found in problems(allocation))


def test_a_device_that_another_claim_holds_is_found() -> None:
    assert problems(good(), holding("b")) == [
        "device gpu.dragoon.dev/n/gpu/b is given twice: another claim has it"
    ]


@pytest.mark.parametrize("selector", [None, {"nodeSelectorTerms": [{"matchFields": []}]}])
def test_a_node_local_allocation_must_be_pinned_exactly(selector: dict[str, Any] | None) -> None:
    allocation = good()
    del allocation["nodeSelector"]
    if selector is not None:
        allocation["nodeSelector"] = selector
    assert problems(allocation) == ["the node selector is not exactly metadata.name In [n]"]


def test_the_selector_of_the_class_counts() -> None:
    wish = claim(request("g", 2, class_name="other"))
    assert any(
        "does not match device.driver == 'other'" in one for one in problems(good(), wish=wish)
    )
