"""Counters of partitionable devices (C.7), and what MIG makes of them (case C19)."""

import itertools
from typing import Any

import pytest

from dragoon.allocator import Kind
from tests.unit.allocator.attempts import attempt, chosen, refusal
from tests.unit.allocator.objects import (
    DRIVER,
    PLACEMENTS,
    Raw,
    claim,
    counters,
    device,
    holding,
    request,
    slice_of,
    uses,
)


def mig_card(name: str = "card") -> tuple[Raw, list[Raw]]:
    """Counter set and placements of one card: each memory part is a counter of its own."""
    amounts = {f"memory-{part}": "1" for part in range(8)} | {"compute": "7"}
    placements = [
        device(
            f"{profile}-{start}",
            profile=profile,
            consumesCounters=uses(
                name,
                compute=compute,
                **{f"memory_{part}": 1 for part in range(start, start + memory)},
            ),
        )
        for profile, (compute, memory, starts) in PLACEMENTS.items()
        for start in starts
    ]
    return counters((name, amounts)), placements


def profile(name: str, count: int = 1) -> Raw:
    return request("g", count, f"device.attributes['{DRIVER}'].profile == '{name}'")


def free(held: tuple[str, ...]) -> dict[str, list[str]]:
    """Per profile, the placements that a next claim could get."""
    sets, placements = mig_card()
    found: dict[str, list[str]] = {name: [] for name in PLACEMENTS}
    for one in placements:
        wish = claim(profile(one["attributes"]["profile"]["string"]))
        # Alone in the slice, so that the placement is not hidden by an earlier one.
        others = [other for other in placements if other["name"] in held]
        slices = [sets, slice_of(*others, *([] if one in others else [one]), count=2)]
        outcome = attempt(wish, slices=slices, held=[holding(*held)])
        if getattr(outcome, "kind", None) is None:
            found[one["attributes"]["profile"]["string"]] += chosen(outcome)[0]
    return found


@pytest.mark.parametrize("order", list(itertools.permutations(("1g-0", "1g-1", "1g-5"))))
def test_c19_with_1g_at_0_1_and_5_a_2g_fits_only_at_2(order: tuple[str, ...]) -> None:
    left = free(order)
    assert left["2g"] == ["2g-2"]
    assert left["3g"] == left["4g"] == left["7g"] == []


@pytest.mark.parametrize(
    ("held", "wanted", "fits"),
    [
        (("3g-0",), "3g-4", True),
        (("4g-0",), "4g-0", False),
        (("4g-0",), "3g-4", True),
        (("3g-0",), "4g-0", False),
        (tuple(f"1g-{i}" for i in range(6)), "1g-6", True),
        (tuple(f"1g-{i}" for i in range(7)), "7g-0", False),
        (("1g-0", "1g-1", "2g-2"), "3g-4", True),
        (("1g-0", "1g-1", "2g-2"), "3g-0", False),
    ],
)
def test_c19_valid_combinations(held: tuple[str, ...], wanted: str, fits: bool) -> None:
    assert (wanted in free(held)[wanted.partition("-")[0]]) is fits


def test_c19_an_eighth_1g_does_not_fit() -> None:
    sets, placements = mig_card()
    slices = [sets, slice_of(*placements, count=2)]
    assert len(chosen(attempt(claim(profile("1g", 7)), slices=slices))[0]) == 7
    assert refusal(attempt(claim(profile("1g", 8)), slices=slices)).kind is Kind.NO_FIT


def test_c19_requests_of_one_claim_do_not_overlap() -> None:
    sets, placements = mig_card()
    slices = [sets, slice_of(*placements, count=2)]
    wish = claim(
        {**profile("3g"), "name": "x"},
        {**profile("1g", 2), "name": "y"},
        {**profile("2g"), "name": "z"},
    )
    (names,) = chosen(attempt(wish, slices=slices))
    taken = [
        part
        for name in names
        for part in range(int(name[-1]), int(name[-1]) + PLACEMENTS[name.partition("-")[0]][1])
    ]
    assert len(set(taken)) == len(taken)


def two_forms(**extra: Any) -> list[Raw]:
    whole = device("whole", kind="whole", consumesCounters=uses("card", memory=80))
    shared = device(
        "whole-shared",
        kind="shared",
        allowMultipleAllocations=True,
        consumesCounters=uses("card", memory=80),
        **extra,
    )
    return [counters(("card", {"memory": "80"})), slice_of(whole, shared, count=2)]


def kind(name: str, request_name: str = "g") -> Raw:
    return request(request_name, 1, f"device.attributes['{DRIVER}'].kind == '{name}'")


def test_counters_of_a_shared_device_are_charged_once() -> None:
    wish = claim(kind("shared", "x"), kind("shared", "y"))
    assert chosen(attempt(wish, slices=two_forms())) == [["whole-shared", "whole-shared"]]
    held = [holding("whole-shared", shareID="00000000-0000-4000-8000-000000000001")]
    assert chosen(attempt(claim(kind("shared")), slices=two_forms(), held=held)) == [
        ["whole-shared"]
    ]


def test_forms_of_one_card_exclude_each_other() -> None:
    held = [holding("whole-shared", shareID="00000000-0000-4000-8000-000000000001")]
    outcome = refusal(attempt(claim(kind("whole")), slices=two_forms(), held=held))
    assert (
        "whole: counter memory of card: 80 wanted, 0 left, the rest held by claim default/other"
        in outcome.message
    )
    assert refusal(attempt(claim(kind("shared")), slices=two_forms(), held=[holding("whole")]))


def test_what_a_request_took_of_a_card_is_given_back_when_it_takes_another() -> None:
    slices = [
        counters(("one", {"memory": "1"}), ("two", {"memory": "1"})),
        slice_of(
            device("a", consumesCounters=uses("one", memory=1)),
            device("b", consumesCounters=uses("two", memory=1)),
            device("c", only=1, consumesCounters=uses("one", memory=1)),
            count=2,
        ),
    ]
    wish = claim(request("any"), request("only", 1, f"'only' in device.attributes['{DRIVER}']"))
    assert chosen(attempt(wish, slices=slices)) == [["b", "c"]]


def test_one_overdrawn_set_blocks_every_device_of_the_pool_that_has_counters() -> None:
    slices = [
        counters(("one", {"memory": "1"}), ("two", {"memory": "1"})),
        slice_of(
            device("a", consumesCounters=uses("one", memory=1)),
            device("b", consumesCounters=uses("one", memory=1)),
            device("c", consumesCounters=uses("two", memory=1)),
            device("plain"),
            count=2,
        ),
    ]
    assert chosen(attempt(claim(request()), slices=slices, held=[holding("a", "b")])) == [["plain"]]
    outcome = refusal(attempt(claim(request(count=2)), slices=slices, held=[holding("a", "b")]))
    assert "c: counter memory of one is overdrawn, which blocks all of the pool" in str(
        outcome.lines()
    )


def test_devices_on_other_nodes_are_charged_to_the_pool_too() -> None:
    slices = [
        counters(("card", {"memory": "1"}), count=3),
        slice_of(device("a", consumesCounters=uses("card", memory=1)), count=3, name="s0"),
        slice_of(
            device("b", consumesCounters=uses("card", memory=1)),
            count=3,
            name="s1",
            node="m",
            pool="n/gpu",
        ),
    ]
    assert chosen(attempt(claim(request()), slices=slices)) == [["a"]]
    assert refusal(attempt(claim(request()), slices=slices, held=[holding("b")]))


def test_an_allocated_device_that_is_not_published_any_more_consumes_nothing() -> None:
    slices = [
        counters(("card", {"memory": "1"})),
        slice_of(device("a", consumesCounters=uses("card", memory=1)), count=2),
    ]
    assert chosen(attempt(claim(request()), slices=slices, held=[holding("gone")])) == [["a"]]


def test_pools_of_two_drivers_with_one_name_have_counters_of_their_own() -> None:
    slices = [
        counters(("card", {"memory": "1"})),
        slice_of(device("a", consumesCounters=uses("card", memory=1)), count=2),
        {**counters(("card", {"memory": "1"}), name="y")},
        slice_of(
            device("a", consumesCounters=uses("card", memory=1)),
            count=2,
            name="x",
            driver="other.example",
        ),
    ]
    slices[2]["spec"]["driver"] = "other.example"
    held = holding("a")
    held["status"]["allocation"]["devices"]["results"][0]["driver"] = "other.example"
    assert chosen(attempt(claim(request()), slices=slices, held=[held])) == [["a"]]


def test_fractions_of_counters_are_exact() -> None:
    slices = [
        counters(("card", {"share": "1"})),
        slice_of(
            *(device(f"d{i}", consumesCounters=uses("card", share="333m")) for i in range(4)),
            count=2,
        ),
    ]
    assert len(chosen(attempt(claim(request(count=3)), slices=slices))[0]) == 3
    assert refusal(attempt(claim(request(count=4)), slices=slices)).kind is Kind.NO_FIT
