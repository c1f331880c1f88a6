"""Devices that several claims share, and what each takes of their capacity (C.2, C.6; case C26)."""

import itertools
import uuid
from typing import Any

import pytest

from dragoon.allocator import Allocated, Kind, allocate
from tests.unit.allocator.attempts import attempt, chosen, refusal
from tests.unit.allocator.objects import (
    DRIVER,
    GPU_CLASS,
    Raw,
    claim,
    device,
    holding,
    node,
    request,
    slice_of,
)

MEMORY: Raw = {
    "value": "80Gi",
    "requestPolicy": {"default": "80Gi", "validRange": {"min": "512Mi", "step": "1Mi"}},
}
CORES: Raw = {
    "value": "100",
    "requestPolicy": {"default": "0", "validRange": {"min": "0", "max": "100", "step": "1"}},
}


def card(name: str = "a", **capacity: Raw) -> Raw:
    return device(
        name, allowMultipleAllocations=True, capacity=capacity or {"memory": MEMORY, "cores": CORES}
    )


def wish(name: str = "g", count: int = 1, **amounts: Any) -> Raw:
    fields: Raw = {"capacity": {"requests": amounts}} if amounts else {}
    return request(name, count, **fields)


def share(device_: str = "a", number: int = 1, **consumed: str) -> Raw:
    return holding(
        device_,
        name=f"share-{number}",
        shareID=f"00000000-0000-4000-8000-{number:012}",
        consumedCapacity=consumed,
    )


def consumed(outcome: object) -> list[dict[str, str]]:
    assert isinstance(outcome, Allocated), outcome
    return [
        result.get("consumedCapacity", {})
        for allocation in outcome.allocations
        for result in allocation["devices"]["results"]
    ]


def test_c26_without_a_request_the_default_is_taken_which_is_the_full_card() -> None:
    slices = [slice_of(card())]
    assert consumed(attempt(claim(wish()), slices=slices)) == [{"memory": "80Gi", "cores": "0"}]


def test_c26_the_default_fits_only_on_an_empty_card() -> None:
    slices = [slice_of(card())]
    outcome = refusal(attempt(claim(wish()), slices=slices, held=[share(memory="512Mi")]))
    assert "memory: 80Gi wanted, 81408Mi of 80Gi left, the rest held by claim" in outcome.message


def test_c26_an_amount_is_consumed_exactly_with_a_share_id_of_its_own() -> None:
    slices = [slice_of(card())]
    ids = map("00000000-0000-4000-8000-{:012}".format, itertools.count(1))
    outcome = allocate(
        [claim(wish("x", memory="4Gi"), wish("y", memory="8Gi"))],
        classes=[GPU_CLASS],
        slices=slices,
        allocated_claims=[],
        node=node(),
        share_ids=lambda: next(ids),
    )
    assert consumed(outcome) == [{"memory": "4Gi", "cores": "0"}, {"memory": "8Gi", "cores": "0"}]
    assert isinstance(outcome, Allocated)
    assert [one["shareID"] for one in outcome.allocations[0]["devices"]["results"]] == [
        "00000000-0000-4000-8000-000000000001",
        "00000000-0000-4000-8000-000000000002",
    ]


def test_share_ids_are_random_uuids_in_lower_case() -> None:
    outcome = attempt(claim(wish(memory="4Gi")), slices=[slice_of(card())])
    assert isinstance(outcome, Allocated)
    text = outcome.allocations[0]["devices"]["results"][0]["shareID"]
    assert str(uuid.UUID(text, version=4)) == text


def test_c26_the_sum_over_all_claims_is_never_above_the_capacity() -> None:
    held = [share(number=i, memory="20Gi") for i in range(3)]
    slices = [slice_of(card("a"), card("b"))]
    assert chosen(attempt(claim(wish(memory="20Gi")), slices=slices, held=held)) == [["a"]]
    assert chosen(attempt(claim(wish(memory="20481Mi")), slices=slices, held=held)) == [["b"]]


def test_c26_sums_beyond_64_bits_are_exact() -> None:
    huge = card(memory={"value": "9223372036854775807"})
    held = [share(memory="9223372036854775806")]
    slices = [slice_of(huge)]
    assert chosen(attempt(claim(wish(memory="1")), slices=slices, held=held)) == [["a"]]
    assert refusal(attempt(claim(wish(memory="2")), slices=slices, held=held)).kind is Kind.NO_FIT


def test_requests_of_one_pod_share_a_device_and_add_up() -> None:
    slices = [slice_of(card("a"), card("b"))]
    two = claim(wish("x", memory="50Gi"), wish("y", memory="50Gi"), name="two")
    other = claim(wish("z", memory="30Gi"), name="other")
    assert chosen(attempt(two, other, slices=slices)) == [["a", "b"], ["a"]]


def test_one_request_never_takes_the_same_device_twice() -> None:
    slices = [slice_of(card())]
    outcome = refusal(attempt(claim(wish(count=2, memory="1Gi")), slices=slices))
    assert outcome.kind is Kind.NO_FIT


def test_a_device_held_as_a_whole_is_not_shared() -> None:
    slices = [slice_of(card())]
    assert refusal(attempt(claim(wish(memory="1Gi")), slices=slices, held=[holding("a")]))


def test_a_capacity_is_asked_for_by_the_very_key() -> None:
    slices = [slice_of(card())]
    amounts: Raw = {f"{DRIVER}/memory": "1Gi"}
    outcome = refusal(attempt(claim(wish(**amounts)), slices=slices))
    assert f"has no capacity {DRIVER}/memory (there are: cores, memory)" in outcome.message


POLICY: dict[str, Raw | None] = {
    "none": None,
    "range": {"default": "4Gi", "validRange": {"min": "2Gi", "max": "8Gi", "step": "1Gi"}},
    "no step": {"default": "4Gi", "validRange": {"min": "2Gi"}},
    "values": {"default": "2Gi", "validValues": ["2Gi", "4Gi", "8Gi"]},
    "default": {"default": "3Gi"},
    "fraction": {"default": "500m", "validRange": {"min": "500m", "step": "500m"}},
}


@pytest.mark.parametrize(
    ("policy", "asked", "taken"),
    [
        ("none", None, "10Gi"),
        ("none", "1500Mi", "1500Mi"),
        ("none", "10241Mi", None),
        ("range", None, "4Gi"),
        ("range", "1Mi", "2Gi"),
        ("range", "2Gi", "2Gi"),
        ("range", "2049Mi", "3Gi"),
        ("range", "8Gi", "8Gi"),
        ("range", "8193Mi", None),
        ("no step", "3000000001", "3000000001"),
        ("values", None, "2Gi"),
        ("values", "1", "2Gi"),
        ("values", "4G", "4Gi"),
        ("values", "9Gi", None),
        ("default", None, "3Gi"),
        ("default", "5Gi", "5Gi"),
        ("fraction", None, "500m"),
        ("fraction", "501m", "1"),
        ("fraction", "1100m", "1500m"),
    ],
)
def test_an_amount_is_rounded_up_as_the_policy_says(
    policy: str, asked: str | None, taken: str | None
) -> None:
    capacity: Raw = {"value": "10Gi"}
    if POLICY[policy] is not None:
        capacity["requestPolicy"] = POLICY[policy]
    slices = [slice_of(card(memory=capacity))]
    amounts: Raw = {"memory": asked} if asked else {}
    outcome = attempt(claim(wish(**amounts)), slices=slices)
    if taken is None:
        assert refusal(outcome).kind is Kind.NO_FIT
    else:
        assert consumed(outcome) == [{"memory": taken}]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("-1", "capacity memory: -1 is negative"),
        ("9223372036854775808", "cannot be counted in milli units"),
    ],
)
def test_an_amount_that_no_arithmetic_can_hold_ends_the_attempt(asked: str, message: str) -> None:
    capacity: Raw = {"value": "10Gi"}
    if not asked.startswith("-"):
        capacity["requestPolicy"] = POLICY["range"]
    outcome = refusal(attempt(claim(wish(memory=asked)), slices=[slice_of(card(memory=capacity))]))
    assert outcome.kind is Kind.FAILED
    assert message in outcome.message


def test_of_a_device_that_is_not_shared_the_request_is_only_a_filter() -> None:
    slices = [
        slice_of(
            device("a", capacity={"memory": {"value": "40Gi"}}),
            device("b", capacity={"memory": {"value": "80Gi"}}),
        )
    ]
    outcome = attempt(claim(wish(memory="60Gi")), slices=slices)
    assert chosen(outcome) == [["b"]]
    assert isinstance(outcome, Allocated)
    (result,) = outcome.allocations[0]["devices"]["results"]
    assert not result.keys() & {"shareID", "consumedCapacity"}


def test_a_shared_device_without_capacity_still_gets_a_share_id() -> None:
    slices = [slice_of(device("a", allowMultipleAllocations=True))]
    outcome = attempt(claim(request("x"), request("y")), slices=slices)
    assert chosen(outcome) == [["a", "a"]]
    assert consumed(outcome) == [{}, {}]
