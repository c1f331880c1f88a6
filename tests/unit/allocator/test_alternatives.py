"""Allocation mode All and firstAvailable."""

from typing import Any

import pytest

from dragoon.allocator import Allocated, Kind
from tests.unit.allocator.attempts import attempt, chosen, refusal
from tests.unit.allocator.objects import (
    DRIVER,
    GPU_CLASS,
    Raw,
    claim,
    class_of,
    device,
    holding,
    opaque,
    request,
    slice_of,
)

DOMAIN = f"{DRIVER}/domain"
BIG = f"device.attributes['{DRIVER}'].size > 1"


def everything(name: str = "g", *selectors: str, **fields: Any) -> Raw:
    raw = request(name, 1, *selectors, allocationMode="All", **fields)
    del raw["exactly"]["count"]
    return raw


def first_of(name: str = "g", **alternatives: Raw) -> Raw:
    subs = [{"name": sub, **wish["exactly"]} for sub, wish in alternatives.items()]
    return {"name": name, "firstAvailable": subs}


def requests_of(outcome: object) -> list[str]:
    assert isinstance(outcome, Allocated), outcome
    return [result["request"] for result in outcome.allocations[0]["devices"]["results"]]


def test_all_takes_every_device_that_the_selectors_leave() -> None:
    slices = [slice_of(device("a", size=1), device("b", size=2), device("c", size=3))]
    assert chosen(attempt(claim(everything("g", BIG)), slices=slices)) == [["b", "c"]]


def test_all_with_no_device_at_all_cannot_be_met() -> None:
    slices = [slice_of(device("a", size=1))]
    outcome = refusal(attempt(claim(everything("g", BIG)), slices=slices))
    assert outcome.kind is Kind.NO_FIT
    assert "needs all 1 device" in outcome.message


def test_all_fails_while_one_of_them_is_in_use() -> None:
    slices = [slice_of(device("a"), device("b"))]
    outcome = refusal(attempt(claim(everything()), slices=slices, held=[holding("b")]))
    assert outcome.kind is Kind.NO_FIT
    assert "held by claim default/other" in outcome.message


def test_all_fails_while_one_of_them_has_a_taint_that_is_not_tolerated() -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    slices = [slice_of(device("a"), device("b", taints=[taint]))]
    assert refusal(attempt(claim(everything()), slices=slices)).kind is Kind.NO_FIT
    tolerant = everything(tolerations=[{"key": "k", "operator": "Exists"}])
    assert chosen(attempt(claim(tolerant), slices=slices)) == [["a", "b"]]


def test_all_leaves_out_devices_whose_whole_capacity_is_too_little() -> None:
    slices = [
        slice_of(
            device("a", capacity={"memory": {"value": "40Gi"}}),
            device("b", capacity={"memory": {"value": "80Gi"}}),
        )
    ]
    wish = everything(capacity={"requests": {"memory": "60Gi"}})
    assert chosen(attempt(claim(wish), slices=slices)) == [["b"]]


def test_all_ends_the_attempt_where_a_pool_is_being_updated() -> None:
    slices = [slice_of(device("a"), pool="a", name="s0"), slice_of(device("b"), count=2, name="s1")]
    outcome = refusal(attempt(claim(everything()), slices=slices))
    assert outcome.kind is Kind.FAILED
    assert "asks for all devices, but pool gpu.dragoon.dev/n/gpu is not complete" in outcome.message


def test_all_ends_the_attempt_where_a_constraint_does_not_hold() -> None:
    slices = [slice_of(device("a", domain="x"), device("b", domain="y"))]
    outcome = refusal(attempt(claim(everything(), same=DOMAIN), slices=slices))
    assert outcome.kind is Kind.FAILED
    assert "the constraint on gpu.dragoon.dev/domain does not hold" in outcome.message


def test_all_evaluates_devices_in_use_too_so_a_failing_selector_ends_the_attempt() -> None:
    slices = [slice_of(device("a"), device("b", size=2))]
    outcome = refusal(attempt(claim(everything("g", BIG)), slices=slices, held=[holding("a")]))
    assert outcome.kind is Kind.FAILED


def test_more_than_32_of_all_devices_is_an_error() -> None:
    slices = [slice_of(*(device(f"d{i:02}") for i in range(33)))]
    outcome = refusal(attempt(claim(everything()), slices=slices))
    assert "asks for 33 devices" in outcome.message


def test_the_first_alternative_that_fits_is_taken_and_named() -> None:
    slices = [slice_of(device("a", size=1), device("b", size=1))]
    wish = claim(first_of(big=request("x", 1, BIG), two=request("x", 2), one=request("x", 1)))
    outcome = attempt(wish, slices=slices)
    assert requests_of(outcome) == ["g/two", "g/two"]


def test_an_alternative_gives_way_where_a_later_request_would_have_nothing() -> None:
    slices = [slice_of(device("a", size=1), device("b", size=2))]
    wish = claim(first_of(big=request("x", 1, BIG), any=request("x", 1)), request("other", 1, BIG))
    assert requests_of(attempt(wish, slices=slices)) == ["g/any", "other"]


def test_alternatives_that_are_too_large_for_a_claim_are_skipped() -> None:
    slices = [slice_of(*(device(f"d{i:02}") for i in range(40)))]
    wish = claim(request("many", 20), first_of(large=request("x", 20), small=request("x", 12)))
    outcome = attempt(wish, slices=slices)
    assert requests_of(outcome)[20:] == ["g/small"] * 12


def test_an_earlier_request_takes_a_smaller_alternative_for_the_sake_of_the_limit() -> None:
    slices = [slice_of(*(device(f"d{i:02}") for i in range(40)))]
    wish = claim(first_of(large=request("x", 20), small=request("x", 2)), request("many", 20))
    assert requests_of(attempt(wish, slices=slices))[:2] == ["g/small"] * 2


def test_a_claim_in_which_every_alternative_is_too_large_ends_the_attempt() -> None:
    slices = [slice_of(device("a"))]
    outcome = refusal(
        attempt(claim(first_of(a=request("x", 33), b=request("x", 40))), slices=slices)
    )
    assert outcome.kind is Kind.FAILED
    assert "asks for 33 devices, a claim can have 32" in outcome.message


def test_constraints_and_configuration_name_a_request_or_one_alternative_of_it() -> None:
    slices = [slice_of(device("a", domain="x"), device("b", domain="y"), device("c", domain="x"))]
    wish = first_of("g", two=request("x", 2), one=request("x", 1))
    bound = claim(wish, same=[{"matchAttribute": DOMAIN, "requests": ["g/two"]}])
    assert chosen(attempt(bound, slices=slices)) == [["a", "c"]]
    not_bound = claim(wish, same=[{"matchAttribute": DOMAIN, "requests": ["g/one"]}])
    assert chosen(attempt(not_bound, slices=slices)) == [["a", "b"]]


@pytest.mark.parametrize(
    ("scope", "applies"), [(["g"], True), (["g/two"], True), (["g/one"], False), ([], True)]
)
def test_c42_configuration_scoped_to_an_alternative_applies_only_to_it(
    scope: list[str], applies: bool
) -> None:
    slices = [slice_of(device("a"), device("b"))]
    wish = claim(
        first_of("g", two=request("x", 2), one=request("x", 1)),
        config=[{**opaque(DRIVER, n=1), **({"requests": scope} if scope else {})}],
    )
    outcome = attempt(wish, slices=slices)
    assert isinstance(outcome, Allocated)
    found = outcome.allocations[0]["devices"].get("config", [])
    # It covers all that was granted, so no request is listed.
    assert found == ([{"source": "FromClaim", **opaque(DRIVER, n=1)}] if applies else [])


def test_configuration_of_the_class_is_that_of_the_chosen_alternative() -> None:
    classes = [
        class_of("device.driver == 'no'", name="first", config=[opaque(DRIVER, n=1)]),
        class_of(name="second", config=[opaque(DRIVER, n=2)]),
        GPU_CLASS,
    ]
    wish = claim(
        first_of(a=request("x", class_name="first"), b=request("x", class_name="second")),
        request("plain"),
    )
    outcome = attempt(wish, slices=[slice_of(device("a"), device("b"))], classes=classes)
    assert isinstance(outcome, Allocated)
    assert outcome.allocations[0]["devices"]["config"] == [
        {"source": "FromClass", "requests": ["g/b"], **opaque(DRIVER, n=2)}
    ]


def test_a_refusal_of_all_alternatives_says_why_of_each() -> None:
    wish = claim(first_of(big=request("x", 1, BIG), two=request("x", 2)))
    outcome = refusal(attempt(wish, slices=[slice_of(device("a", size=1))]))
    assert outcome.message.startswith("none of the alternatives fits: request g/big of claim")
    assert "request g/two of claim default/c needs 2 devices, there are 1" in outcome.message
    assert [funnel.alternative_of for funnel in outcome.explanation.funnels] == ["g", "g"]


def test_distinct_attribute_takes_no_value_twice() -> None:
    slices = [
        slice_of(
            device("none"),
            device("a", domain="x"),
            device("b", domain="x"),
            device("c", domain="y"),
        )
    ]
    distinct = [{"distinctAttribute": DOMAIN}]
    assert chosen(attempt(claim(request(count=2), same=distinct), slices=slices)) == [["a", "c"]]
    outcome = refusal(attempt(claim(request(count=3), same=distinct), slices=slices))
    assert "needs 3 devices with different gpu.dragoon.dev/domain" in outcome.message
    assert "the candidates have 2 different values" in outcome.message


def test_values_of_different_types_are_distinct_and_never_the_same() -> None:
    slices = [slice_of(device("a", domain="1"), device("b", domain=1))]
    distinct = [{"distinctAttribute": DOMAIN}]
    assert chosen(attempt(claim(request(count=2), same=distinct), slices=slices)) == [["a", "b"]]
    assert refusal(attempt(claim(request(count=2), same=DOMAIN), slices=slices)).kind is Kind.NO_FIT
