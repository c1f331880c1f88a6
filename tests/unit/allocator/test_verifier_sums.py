"""The verifier on shares, counters, admin access, alternatives, All, and what a result copies."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from dragoon.allocator import Allocated, allocate, verify
from tests.unit.allocator.objects import (
    DRIVER,
    Raw,
    claim,
    class_of,
    counters,
    device,
    holding,
    node,
    opaque,
    request,
    slice_of,
    uses,
)

MEMORY: Raw = {
    "value": "10Gi",
    "requestPolicy": {"default": "2Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"}},
}
SIZES: Raw = {"value": "8", "requestPolicy": {"default": "2", "validValues": ["2", "4", "8"]}}
CLASSES = [class_of(f"device.driver == '{DRIVER}'", config=[opaque(DRIVER, n=1)])]
SLICES = [
    counters(("card", {"memory": "2"})),
    slice_of(
        device("a", kind="whole", domain="x", consumesCounters=uses("card", memory=2)),
        device("b", kind="part", domain="x", consumesCounters=uses("card", memory=1)),
        device("c", kind="part", domain="y", consumesCounters=uses("card", memory=1)),
        device("s", kind="shared", allowMultipleAllocations=True, capacity={"memory": MEMORY}),
        device("t", kind="sized", allowMultipleAllocations=True, capacity={"size": SIZES}),
        device("u", kind="plain", bindingConditions=["r"], bindingFailureConditions=["f"]),
        count=2,
    ),
    slice_of(
        device("far", kind="far", nodeName="m"),
        device("near", kind="far", nodeName="n"),
        pool="own",
        name="s2",
        perDeviceNodeSelection=True,
    ),
]


def of_kind(kind: str, name: str = "g", count: int = 1, **fields: Any) -> Raw:
    selector = f"device.attributes['{DRIVER}'].?kind.orValue('') == '{kind}'"
    return request(name, count, selector, **fields)


def problems(
    wish: Raw,
    change: Callable[[Raw], object],
    *held: Raw,
    taint_rules: tuple[Raw, ...] = (),
) -> list[str]:
    """What the verifier says of a right allocation after a change of it."""
    given: dict[str, Any] = {"classes": CLASSES, "slices": SLICES, "node": node()}
    outcome = allocate([wish], allocated_claims=[], **given)
    assert isinstance(outcome, Allocated), outcome
    assert verify([wish], outcome.allocations, allocated_claims=[], **given) == []
    allocation = copy.deepcopy(outcome.allocations[0])
    change(allocation)
    return verify([wish], [allocation], allocated_claims=held, taint_rules=taint_rules, **given)


def result(position: int = 0, **changes: Any) -> Callable[[Raw], object]:
    return lambda allocation: allocation["devices"]["results"][position].update(changes)


def share(**consumed: str) -> Callable[[Raw], object]:
    return result(consumedCapacity=consumed)


SHARE = claim(of_kind("shared", capacity={"requests": {"memory": "3Gi"}}))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (share(memory="2Gi"), "memory is 2Gi, wanted is 3Gi"),
        (share(memory="4Gi"), "memory is 4Gi, wanted is 3Gi"),
        (share(memory="3500Mi"), "memory is 3500Mi, wanted is 3Gi"),
        (share(memory="11Gi"), "memory is 11Gi of 10Gi"),
        (share(), "consumes [], not ['memory']"),
        (result(shareID=None), "the share ID None is not fresh"),
    ],
)
def test_a_wrong_share_is_found(change: Callable[[Raw], object], problem: str) -> None:
    assert any(problem in one for one in problems(SHARE, change))


@pytest.mark.parametrize(("amount", "right"), [("2", False), ("4", True), ("8", False)])
def test_of_the_valid_values_only_the_next_is_right(amount: str, right: bool) -> None:
    wish = claim(of_kind("sized", capacity={"requests": {"size": "3"}}))
    assert (problems(wish, share(size=amount)) == []) is right


def test_without_a_request_only_the_default_is_right() -> None:
    assert problems(claim(of_kind("shared")), share(memory="1Gi")) == [
        f"device {DRIVER}/n/gpu/s: memory is 1Gi, by default 2Gi"
    ]


def test_shares_of_other_claims_count() -> None:
    held = holding(
        "s", shareID="00000000-0000-4000-8000-000000000001", consumedCapacity={"memory": "8Gi"}
    )
    assert problems(SHARE, lambda _: None, held) == [
        f"device {DRIVER}/n/gpu/s: memory is 11Gi of 10Gi"
    ]
    reused = result(shareID="00000000-0000-4000-8000-000000000001")
    assert any("is not fresh" in one for one in problems(SHARE, reused, held))


def test_a_share_of_a_device_held_as_a_whole_is_found() -> None:
    assert any(
        "another claim has it" in one for one in problems(SHARE, lambda _: None, holding("s"))
    )


def test_a_whole_device_has_no_share() -> None:
    found = problems(claim(of_kind("whole")), result(shareID="x"))
    assert found == [f"device {DRIVER}/n/gpu/a cannot be shared, and has a share"]


@pytest.mark.parametrize("held", [["b"], ["b", "c"]])
def test_counters_that_others_took_are_found(held: list[str]) -> None:
    (found,) = problems(claim(of_kind("whole")), lambda _: None, holding(*held))
    assert found == f"counter memory of card in pool {DRIVER}/n/gpu is at -{len(held)}"


def test_counters_within_one_claim_are_added_up() -> None:
    wish = claim(
        of_kind("part", "x"),
        request("y", 1, f"device.attributes['{DRIVER}'].?domain.orValue('') == 'y'"),
    )
    swapped = result(0, device="a")
    assert any("is at -1" in one for one in problems(wish, swapped))


def test_admin_access_may_stand_beside_others_but_not_twice_in_a_claim() -> None:
    wish = claim(request("x", 1, "!has(device.attributes['other.example'].n)", adminAccess=True))
    assert (
        problems(
            wish,
            result(
                pool="n/gpu", device="u", bindingConditions=["r"], bindingFailureConditions=["f"]
            ),
            holding("u"),
        )
        == []
    )
    both = claim(*wish["spec"]["devices"]["requests"], of_kind("plain", "y"))
    taken = result(
        pool="n/gpu", device="u", bindingConditions=["r"], bindingFailureConditions=["f"]
    )
    assert f"device {DRIVER}/n/gpu/u is given twice" in problems(both, taken)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"adminAccess": True}, "adminAccess is True, not False"),
        ({"bindingConditions": None}, "bindingConditions is None, not ['r']"),
        ({"tolerations": [{"operator": "Exists"}]}, "tolerations is"),
    ],
)
def test_what_a_result_copies_has_to_be_right(changes: Raw, problem: str) -> None:
    found = problems(claim(of_kind("plain")), result(**changes))
    assert any(problem in one for one in found)


def test_a_device_of_another_node_is_found() -> None:
    found = problems(claim(of_kind("far")), result(device="far"))
    assert f"device {DRIVER}/own/far cannot be used on this node" in found


def test_all_means_all() -> None:
    wish = of_kind("part", allocationMode="All")
    del wish["exactly"]["count"]
    found = problems(claim(wish), lambda allocation: allocation["devices"]["results"].pop())
    assert found == [f"request g wants all devices, {DRIVER}/n/gpu/c is missing"]


def test_only_one_alternative_may_be_granted() -> None:
    subs = [{"name": name, **of_kind("part", count=2)["exactly"]} for name in ("p", "q")]
    wish = claim({"name": "g", "firstAvailable": subs})
    found = problems(wish, result(1, request="g/q"))
    assert "request g is met 2 times: g/p, g/q" in found
    assert "request g/nope" in str(problems(wish, result(1, request="g/nope")))


def test_a_distinct_attribute_that_is_there_twice_is_found() -> None:
    wish = claim(of_kind("part", count=2), same=[{"distinctAttribute": f"{DRIVER}/domain"}])
    found = problems(wish, result(1, device="b"))
    assert any("domain is there twice" in one for one in found)


def test_a_taint_of_a_rule_counts() -> None:
    rule = {
        "metadata": {"name": "r"},
        "spec": {
            "deviceSelector": {"pool": "n/gpu"},
            "taint": {"key": "k", "effect": "NoExecute"},
        },
    }
    found = problems(claim(of_kind("plain")), lambda _: None, taint_rules=(rule,))
    assert found == [f"device {DRIVER}/n/gpu/u: taint k is not tolerated"]


def test_configuration_that_is_missing_is_found() -> None:
    wish = claim(of_kind("plain"), config=[{**opaque(DRIVER, n=2), "requests": ["g"]}])
    assert problems(wish, lambda allocation: allocation["devices"].pop("config")) == [
        "the configuration of the class of request g is missing",
        "the claim's configuration for request g is missing",
    ]


def test_more_devices_than_a_claim_can_have_are_found() -> None:
    def many(allocation: Raw) -> None:
        allocation["devices"]["results"] *= 33

    assert "33 devices, a claim can have 32" in problems(claim(of_kind("plain")), many)
