"""Admin access (C.8): beside other claims, but not beyond taints, counters and the own claim."""

from typing import Any

from dragoon.allocator import Allocated, Kind
from tests.unit.allocator.attempts import attempt, chosen, refusal
from tests.unit.allocator.objects import (
    Raw,
    claim,
    counters,
    device,
    holding,
    request,
    slice_of,
    uses,
)


def admin(name: str = "g", count: int = 1, **fields: Any) -> Raw:
    return request(name, count, adminAccess=True, **fields)


def test_admin_access_takes_devices_in_use_and_says_so_in_the_result() -> None:
    outcome = attempt(claim(admin()), slices=[slice_of(device("a"))], held=[holding("a")])
    assert chosen(outcome) == [["a"]]
    assert isinstance(outcome, Allocated)
    assert outcome.allocations[0]["devices"]["results"][0]["adminAccess"] is True


def test_without_admin_access_the_result_does_not_mention_it() -> None:
    outcome = attempt(claim(request()), slices=[slice_of(device("a"))])
    assert isinstance(outcome, Allocated)
    assert "adminAccess" not in outcome.allocations[0]["devices"]["results"][0]


def test_one_claim_does_not_get_a_device_twice_even_with_admin_access() -> None:
    slices = [slice_of(device("a"))]
    assert refusal(attempt(claim(admin("x"), admin("y")), slices=slices)).kind is Kind.NO_FIT
    assert refusal(attempt(claim(request("x"), admin("y")), slices=slices)).kind is Kind.NO_FIT


def test_in_a_pod_admin_access_before_a_normal_claim_blocks_it_and_after_it_does_not() -> None:
    slices = [slice_of(device("a"))]
    normal, free = claim(request(), name="normal"), claim(admin(), name="admin")
    assert refusal(attempt(free, normal, slices=slices)).kind is Kind.NO_FIT
    assert chosen(attempt(normal, free, slices=slices)) == [["a"], ["a"]]


def test_admin_access_of_two_claims_of_a_pod_meets_on_one_device() -> None:
    slices = [slice_of(device("a"))]
    claims = claim(admin(), name="one"), claim(admin(), name="two")
    assert chosen(attempt(*claims, slices=slices)) == [["a"], ["a"]]


def test_admin_access_needs_tolerations() -> None:
    slices = [slice_of(device("a", taints=[{"key": "k", "effect": "NoSchedule"}]))]
    assert refusal(attempt(claim(admin()), slices=slices)).kind is Kind.NO_FIT
    tolerant = admin(tolerations=[{"operator": "Exists"}])
    assert chosen(attempt(claim(tolerant), slices=slices)) == [["a"]]


def test_admin_access_needs_counters_once_more() -> None:
    def slices(memory: str) -> list[Raw]:
        return [
            counters(("card", {"memory": memory})),
            slice_of(device("a", consumesCounters=uses("card", memory=1)), count=2),
        ]

    held = [holding("a")]
    assert refusal(attempt(claim(admin()), slices=slices("1"), held=held)).kind is Kind.NO_FIT
    assert chosen(attempt(claim(admin()), slices=slices("2"), held=held)) == [["a"]]


def test_all_with_admin_access_is_all_whoever_has_them() -> None:
    wish = admin(allocationMode="All")
    del wish["exactly"]["count"]
    slices = [slice_of(device("a"), device("b"))]
    assert chosen(attempt(claim(wish), slices=slices, held=[holding("b")])) == [["a", "b"]]
