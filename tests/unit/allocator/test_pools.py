"""Pools: generations, completeness, mistakes and node selection (case C15)."""

import itertools
from typing import Any

import pytest

from dragoon.allocator import Kind
from dragoon.errors import InvalidInputError
from tests.unit.allocator.attempts import attempt, chosen, refusal
from tests.unit.allocator.objects import claim, device, node, request, slice_of


def problems(slices: list[dict[str, Any]]) -> set[str]:
    """What is said about the pool, for every order in which the slices may come."""
    said: set[str] = set()
    for order in itertools.permutations(slices):
        outcome = refusal(attempt(claim(request()), slices=list(order)))
        assert outcome.kind is Kind.NO_FIT
        said.update(note.problem for note in outcome.explanation.pools)
    return said


def test_c15_counts_that_disagree_make_a_pool_unusable_in_every_order() -> None:
    slices = [slice_of(device("a"), name="s0", count=1), slice_of(device("b"), name="s1", count=2)]
    assert problems(slices) == {"being updated: generation 1 has 2 slices, expected 1 or 2"}


@pytest.mark.parametrize(("count", "number"), [(2, 1), (1, 2), (3, 2)])
def test_c15_too_few_or_too_many_slices_make_a_pool_unusable(count: int, number: int) -> None:
    slices = [slice_of(device(f"d{i}"), name=f"s{i}", count=count) for i in range(number)]
    assert problems(slices) == {
        f"being updated: generation 1 has {number} slices, expected {count}"
    }


def test_c15_only_the_highest_generation_counts_in_every_order() -> None:
    slices = [
        slice_of(device("old"), name="s0"),
        slice_of(device("new1"), name="s1", generation=2, count=2),
        slice_of(device("new2"), name="s2", generation=2, count=2),
    ]
    for order in itertools.permutations(slices):
        assert chosen(attempt(claim(request(count=2)), slices=list(order))) == [["new1", "new2"]]


def test_c15_a_newer_generation_elsewhere_hides_the_pool() -> None:
    slices = [
        slice_of(device("a"), name="s0", count=2, pool="p"),
        slice_of(device("b"), name="s1", generation=2, node="m", pool="p"),
    ]
    outcome = refusal(attempt(claim(request()), slices=slices))
    assert "there are 0 in the pools of the node" in outcome.message
    assert outcome.explanation.pools == ()


def test_c15_duplicate_device_name_makes_a_pool_invalid() -> None:
    slices = [slice_of(device("a"), name="s0", count=2), slice_of(device("a"), name="s1", count=2)]
    assert problems(slices) == {"invalid: duplicate device name a"}


COUNTERS = [{"name": "card", "counters": {"memory": {"value": "1"}}}]


def counters(name: str, sets: list[dict[str, Any]], count: int) -> dict[str, Any]:
    raw = slice_of(name=name, count=count, sharedCounters=sets)
    del raw["spec"]["devices"]
    return raw


@pytest.mark.parametrize(
    ("consumed", "sets", "problem"),
    [
        (
            {"counterSet": "nope", "counters": {"memory": {"value": "1"}}},
            COUNTERS,
            "counter set nope not found",
        ),
        (
            {"counterSet": "card", "counters": {"x": {"value": "1"}}},
            COUNTERS,
            "counter x not found in counter set card",
        ),
        (
            {"counterSet": "card", "counters": {"memory": {"value": "1"}}},
            COUNTERS * 2,
            "duplicate counter set name card",
        ),
    ],
)
def test_counters_that_do_not_resolve_make_a_pool_invalid(
    consumed: dict[str, Any], sets: list[dict[str, Any]], problem: str
) -> None:
    slices = [slice_of(device("a", consumesCounters=[consumed]), count=2), counters("s1", sets, 2)]
    assert problems(slices) == {f"invalid: {problem}"}


def test_a_broken_pool_does_not_hide_a_good_one() -> None:
    slices = [
        slice_of(device("a"), pool="bad", name="s0", count=2),
        slice_of(device("b"), pool="good", name="s1"),
    ]
    assert chosen(attempt(claim(request()), slices=slices)) == [["b"]]


def test_two_drivers_may_use_one_pool_name() -> None:
    slices = [
        slice_of(device("a"), name="s0"),
        slice_of(device("a"), name="s1", driver="other.example"),
    ]
    assert chosen(attempt(claim(request()), slices=slices)) == [["a"]]


def test_slices_of_other_nodes_are_not_used() -> None:
    slices = [slice_of(device("a"), node="m", name="s0"), slice_of(device("b"), name="s1")]
    assert chosen(attempt(claim(request()), slices=slices)) == [["b"]]


def test_a_pool_with_devices_that_wait_for_conditions_comes_last() -> None:
    waiting = device("a", bindingConditions=["x/ready"], bindingFailureConditions=["x/failed"])
    slices = [slice_of(waiting, pool="a", name="s0"), slice_of(device("b"), pool="b", name="s1")]
    outcome = attempt(claim(request(count=2)), slices=slices)
    assert chosen(outcome) == [["b", "a"]]
    result = outcome.allocations[0]["devices"]["results"][1]  # type: ignore[union-attr]
    assert result["bindingConditions"] == ["x/ready"]
    assert result["bindingFailureConditions"] == ["x/failed"]


def term(key: str, operator: str, *values: str, part: str = "matchExpressions") -> dict[str, Any]:
    requirement: dict[str, Any] = {"key": key, "operator": operator}
    if values:
        requirement["values"] = list(values)
    return {"nodeSelectorTerms": [{part: [requirement]}]}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (term("zone", "In", "a", "b"), True),
        (term("zone", "In", "b"), False),
        (term("zone", "NotIn", "b"), True),
        (term("zone", "NotIn", "a"), False),
        (term("rack", "NotIn", "a"), True),
        (term("zone", "Exists"), True),
        (term("rack", "Exists"), False),
        (term("rack", "DoesNotExist"), True),
        (term("zone", "DoesNotExist"), False),
        (term("size", "Gt", "4"), True),
        (term("size", "Gt", "5"), False),
        (term("size", "Lt", "6"), True),
        (term("zone", "Lt", "6"), False),
        (term("rack", "Lt", "6"), False),
        (term("metadata.name", "In", "n", part="matchFields"), True),
        (term("metadata.name", "In", "m", part="matchFields"), False),
        ({"nodeSelectorTerms": [{}]}, False),
        ({"nodeSelectorTerms": []}, False),
    ],
)
def test_node_selector_admits_the_node_or_not(selector: dict[str, Any], matches: bool) -> None:
    slices = [slice_of(device("a"), nodeSelector=selector)]
    outcome = attempt(claim(request()), slices=slices, on=node(zone="a", size="5"))
    assert (outcome.__class__.__name__ == "Allocated") is matches


def test_an_unknown_operator_ends_the_attempt_and_those_there_are_are_named() -> None:
    slices = [slice_of(device("a"), nodeSelector=term("zone", "Like", "a"))]
    outcome = refusal(attempt(claim(request()), slices=slices))
    assert outcome.kind is Kind.FAILED
    assert "operator 'Like', allowed are In, NotIn, Exists" in outcome.message


def test_each_device_may_have_a_node_selection_of_its_own() -> None:
    devices = [device("a", nodeName="m"), device("b", nodeName="n"), device("c", allNodes=True)]
    slices = [slice_of(*devices, perDeviceNodeSelection=True)]
    assert chosen(attempt(claim(request(count=2)), slices=slices)) == [["b", "c"]]


def test_a_slice_without_any_known_selection_is_ignored() -> None:
    raw = slice_of(device("a"), allNodes=False)
    assert "there are 0" in refusal(attempt(claim(request()), slices=[raw])).message


def test_a_slice_that_lacks_a_field_is_named() -> None:
    raw = slice_of(device("a"))
    del raw["spec"]["driver"]
    with pytest.raises(InvalidInputError, match="ResourceSlice s0: driver is missing"):
        attempt(claim(request()), slices=[raw])
