"""The state kept up by events, its snapshots, and own writes before any watch shows them (C37)."""

from collections.abc import Callable

import pytest

from dragoon.allocator import (
    Allocated,
    Answer,
    ClusterState,
    Kind,
    Snapshot,
    allocate_anywhere,
    allocate_on,
    allocate_over,
)
from dragoon.allocator.interning import Interner
from dragoon.allocator.model import PoolId
from dragoon.allocator.slices import slice_record
from dragoon.errors import InvalidInputError
from tests.reachable import reachable
from tests.unit.allocator.objects import (
    DRIVER,
    GPU_CLASS,
    Raw,
    claim,
    device,
    node,
    request,
    slice_of,
)


def cluster(*slices: Raw) -> ClusterState:
    state = ClusterState()
    state.put_class(GPU_CLASS)
    for one in slices:
        state.put_slice(one)
    return state


def versioned(raw: Raw, version: int, allocation: Raw | None = None) -> Raw:
    found: Raw = {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(version)}}
    if allocation is not None:
        found["status"] = {"allocation": allocation}
    return found


def decide(state: ClusterState | Snapshot, wish: Raw, where: str = "n") -> Answer:
    snapshot = state.snapshot() if isinstance(state, ClusterState) else state
    return allocate_on(snapshot, [wish], node(where))


def allocation(answer: Answer | None) -> Raw:
    assert isinstance(answer, Allocated), answer
    return answer.allocations[0]


def device_of(answer: Answer | None) -> str:
    return str(allocation(answer)["devices"]["results"][0]["device"])


ONE, TWO, THREE = (claim(request(), name=name) for name in ("one", "two", "three"))


def test_c37_an_assumed_allocation_is_seen_by_the_next_decision() -> None:
    state = cluster(slice_of(device("a"), device("b")))
    for one in (ONE, TWO, THREE):
        state.put_claim(versioned(one, 1))
    first = decide(state, ONE)
    state.assume(ONE, allocation(first))
    second = decide(state, TWO)
    state.assume(TWO, allocation(second))
    assert [device_of(first), device_of(second)] == ["a", "b"]
    assert not isinstance(decide(state, THREE), Allocated)


def test_c37_the_answer_of_the_write_takes_over_and_an_older_event_does_not_undo_it() -> None:
    state = cluster(slice_of(device("a")))
    state.put_claim(versioned(ONE, 5))
    given = allocation(decide(state, ONE))
    state.assume(ONE, given)
    state.confirm(versioned(ONE, 9, given))
    state.put_claim(versioned(ONE, 7))
    assert not isinstance(decide(state, TWO), Allocated)
    state.put_claim(versioned(ONE, 11))
    assert device_of(decide(state, TWO)) == "a"


def test_c37_a_write_that_failed_holds_nothing_any_more() -> None:
    state = cluster(slice_of(device("a")))
    state.assume(ONE, allocation(decide(state, ONE)))
    state.forget(ONE)
    assert device_of(decide(state, TWO)) == "a"


def test_c37_a_claim_deleted_while_its_write_is_in_flight_leaves_nothing() -> None:
    state = cluster(slice_of(device("a")))
    state.put_claim(versioned(ONE, 1))
    given = allocation(decide(state, ONE))
    state.assume(ONE, given)
    state.drop_claim("default", "one")
    assert not isinstance(decide(state, TWO), Allocated)
    state.confirm(versioned(ONE, 2, given))
    assert device_of(decide(state, TWO)) == "a"


def test_c37_a_share_both_seen_and_assumed_counts_once() -> None:
    card = device("a", allowMultipleAllocations=True, capacity={"memory": {"value": "10Gi"}})
    state = cluster(slice_of(card))
    state.put_claim(versioned(ONE, 1))
    wish = claim(request(capacity={"requests": {"memory": "6Gi"}}), name="one")
    given = allocation(decide(state, wish))
    state.assume(wish, given)
    state.put_claim(versioned(wish, 2, given))
    four = claim(request(capacity={"requests": {"memory": "4Gi"}}), name="two")
    assert device_of(decide(state, four)) == "a"
    state.confirm(versioned(wish, 2, given))
    assert device_of(decide(state, four)) == "a"
    five = claim(request(capacity={"requests": {"memory": "5Gi"}}), name="two")
    assert not isinstance(decide(state, five), Allocated)


def test_c37_n_claims_on_m_devices_give_exactly_m_all_different() -> None:
    state = cluster(slice_of(*map(device, "abcde")))
    given: list[str] = []
    for number in range(9):
        wish = claim(request(), name=f"c{number}")
        state.put_claim(versioned(wish, 1))
        answer = decide(state, wish)
        if isinstance(answer, Allocated):
            state.assume(wish, allocation(answer))
            given.append(device_of(answer))
    assert sorted(given) == list("abcde")


def test_a_device_that_two_claims_hold_is_in_use_until_both_are_gone() -> None:
    state = cluster(slice_of(device("a")))
    given = allocation(decide(state, ONE))
    state.put_claim(versioned(ONE, 1, given))
    state.put_claim(versioned(TWO, 2, given))
    state.drop_claim("default", "one")
    assert not isinstance(decide(state, THREE), Allocated)
    state.drop_claim("default", "two")
    assert device_of(decide(state, THREE)) == "a"


def test_a_claim_made_anew_under_its_name_replaces_the_old_one() -> None:
    state = cluster(slice_of(device("a")))
    state.put_claim(versioned(ONE, 9, allocation(decide(state, ONE))))
    reborn = {**ONE, "metadata": {**ONE["metadata"], "uid": "another"}}
    state.put_claim(versioned(reborn, 3))
    assert device_of(decide(state, TWO)) == "a"


def test_a_snapshot_does_not_change_with_later_events() -> None:
    state = cluster(slice_of(device("a")))
    before = state.snapshot()
    state.put_claim(versioned(ONE, 1, allocation(decide(state, ONE))))
    state.put_slice(slice_of(device("b"), name="s1", pool="p"))
    state.drop_class("gpu.dragoon.dev")
    assert device_of(decide(before, TWO)) == "a"
    assert decide(state, TWO).kind is Kind.FAILED  # type: ignore[union-attr]


def test_without_events_the_snapshot_is_the_same_object() -> None:
    state = cluster(slice_of(device("a")))
    assert state.snapshot() is state.snapshot()


def test_a_changed_slice_takes_effect_and_a_dropped_one_too() -> None:
    state = cluster(slice_of(device("a")))
    state.put_slice(slice_of(device("b"), generation=2))
    assert device_of(decide(state, ONE)) == "b"
    state.put_slice(slice_of(device("c"), generation=3, node="m"))
    assert not isinstance(decide(state, ONE), Allocated)
    assert device_of(decide(state, ONE, "m")) == "c"
    state.drop_slice("s0")
    assert not isinstance(decide(state, ONE, "m"), Allocated)


def test_a_slice_that_cannot_be_read_leaves_its_pool_incomplete() -> None:
    state = cluster(slice_of(device("a"), count=2), slice_of(device("b"), count=2, name="s1"))
    assert device_of(decide(state, ONE)) == "a"
    broken = slice_of(device("b", capacity={"memory": {"value": "80 GB"}}), count=2, name="s1")
    with pytest.raises(InvalidInputError, match="ResourceSlice s1: device b: capacity memory"):
        state.put_slice(broken)
    answer = decide(state, ONE)
    assert "generation 1 has 1 slices, expected 2" in answer.explanation.pools[0].problem


def rule(selector: Raw | None, name: str = "r") -> Raw:
    spec: Raw = {"taint": {"key": "k", "effect": "NoSchedule"}}
    return {
        "metadata": {"name": name},
        "spec": spec if selector is None else {**spec, "deviceSelector": selector},
    }


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        (None, "a"),
        ({}, None),
        ({"driver": DRIVER}, None),
        ({"driver": "other.example"}, "a"),
        ({"pool": "n/gpu"}, None),
        ({"pool": "m/gpu"}, "a"),
        ({"driver": DRIVER, "pool": "n/gpu", "device": "a"}, "b"),
        ({"device": "b"}, "a"),
    ],
)
def test_a_taint_rule_taints_what_it_selects_and_nothing_without_a_selector(
    selector: Raw | None, taken: str | None
) -> None:
    state = cluster(slice_of(device("a"), device("b")))
    state.put_rule(rule(selector))
    answer = decide(state, ONE)
    assert (device_of(answer) if isinstance(answer, Allocated) else None) == taken
    tolerant = claim(request(tolerations=[{"key": "k", "operator": "Exists"}]))
    assert device_of(decide(state, tolerant)) == "a"
    state.drop_rule("r")
    assert device_of(decide(state, ONE)) == "a"


def test_a_rule_is_there_for_slices_that_come_later() -> None:
    state = ClusterState()
    state.put_class(GPU_CLASS)
    state.put_rule(rule({"pool": "n/gpu"}))
    state.put_slice(slice_of(device("a")))
    answer = decide(state, ONE)
    assert not isinstance(answer, Allocated)
    assert "taint k:NoSchedule is not tolerated" in answer.message


def test_a_rule_that_cannot_be_read_stays_as_it_was() -> None:
    state = cluster(slice_of(device("a")))
    state.put_rule(rule({}))
    with pytest.raises(InvalidInputError, match="DeviceTaintRule r: taint is missing"):
        state.put_rule({"metadata": {"name": "r"}, "spec": {}})
    assert not isinstance(decide(state, ONE), Allocated)


def test_a_claim_that_cannot_be_read_is_named() -> None:
    state = cluster(slice_of(device("a")))
    given = {"devices": {"results": [{"driver": DRIVER, "pool": "n/gpu"}]}}
    message = "ResourceClaim default/one: status.allocation: device is missing"
    with pytest.raises(InvalidInputError, match=message):
        state.put_claim(versioned(ONE, 1, given))


def test_the_first_node_in_the_given_order_that_fits_is_taken() -> None:
    state = cluster(
        *(slice_of(device("a"), node=name, name=name) for name in "nmo"),
    )
    order = [node("o"), node("n"), node("m")]
    for expected, wish in zip("onm", (ONE, TWO, THREE), strict=True):
        answer = allocate_anywhere(state.snapshot(), [wish], order)
        assert answer is not None
        assert answer.node == expected
        state.assume(wish, allocation(answer))
    last = allocate_anywhere(state.snapshot(), [claim(request(), name="four")], order)
    assert last is not None
    assert last.node == "m"
    assert "held by claim default/three" in last.message  # type: ignore[union-attr]


def test_where_no_node_is_given_there_is_no_answer() -> None:
    assert allocate_anywhere(cluster().snapshot(), [ONE], []) is None


def test_an_attempt_that_fails_on_a_node_ends_the_search_over_nodes() -> None:
    state = cluster(
        slice_of(device("a"), name="s0"),
        slice_of(device("a", model="x"), node="m", name="s1"),
    )
    wish = claim(request("g", 1, f"device.attributes['{DRIVER}'].model == 'x'"))
    answer = allocate_anywhere(state.snapshot(), [wish], [node("n"), node("m")])
    assert answer is not None
    assert (answer.node, getattr(answer, "kind", None)) == ("n", Kind.FAILED)


def test_all_nodes_are_answered_each_when_it_is_asked_for() -> None:
    state = cluster(slice_of(device("a")), slice_of(device("a"), node="m", name="s1"))
    answers = list(allocate_over(state.snapshot(), [ONE], [node("n"), node("x"), node("m")]))
    assert [isinstance(one, Allocated) for one in answers] == [True, False, True]


def free_again(state: ClusterState) -> None:
    state.drop_claim("default", "one")


def another_pool(state: ClusterState) -> None:
    state.put_slice(slice_of(device("z"), name="s1", pool="p"))


def nothing_of_interest(state: ClusterState) -> None:
    state.put_claim(versioned(THREE, 1))


@pytest.mark.parametrize(
    ("change", "fits"), [(free_again, True), (another_pool, True), (nothing_of_interest, False)]
)
def test_what_did_not_fit_is_tried_again_once_the_node_has_changed(
    change: Callable[[ClusterState], None], fits: bool
) -> None:
    state = cluster(slice_of(device("a")))
    state.put_claim(versioned(ONE, 1, allocation(decide(state, ONE))))
    for _ in range(2):
        answer = allocate_anywhere(state.snapshot(), [TWO], [node()])
        assert not isinstance(answer, Allocated)
        assert answer is not None
        assert "held by claim default/one" in answer.message
    change(state)
    answer = allocate_anywhere(state.snapshot(), [TWO], [node()])
    assert isinstance(answer, Allocated) is fits


def test_labels_of_a_node_that_changed_are_looked_at_again() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}
    state = cluster(slice_of(device("a"), nodeSelector={"nodeSelectorTerms": [term]}))
    assert not isinstance(allocate_on(state.snapshot(), [ONE], node(zone="y")), Allocated)
    assert isinstance(allocate_on(state.snapshot(), [ONE], node(zone="z")), Allocated)
    state.forget_node("n", ())
    assert isinstance(allocate_on(state.snapshot(), [ONE], node(zone="z")), Allocated)


def test_a_class_that_changed_is_looked_at_again() -> None:
    state = cluster(slice_of(device("a")))
    state.put_class({**GPU_CLASS, "spec": {"selectors": [{"cel": {"expression": "false"}}]}})
    assert not isinstance(allocate_anywhere(state.snapshot(), [ONE], [node()]), Allocated)
    state.put_class(GPU_CLASS)
    assert isinstance(allocate_anywhere(state.snapshot(), [ONE], [node()]), Allocated)


@pytest.mark.parametrize("is_shown", [False, True])
def test_nodes_that_came_and_went_leave_nothing_whether_anybody_looked_or_not(
    is_shown: bool,
) -> None:
    state = cluster()
    for index in range(100):
        found = slice_of(device("gpu-0"), node=f"node-{index}", name=f"slice-{index}")
        found["spec"]["pool"]["name"] = f"node-{index}/gpu"
        state.put_slice_record(slice_record(found, Interner()))
        if is_shown:
            state.snapshot()
        state.drop_slice(f"slice-{index}")
    if is_shown:
        state.snapshot()
    assert not [one for one in reachable(state) if isinstance(one, PoolId)]


def test_decisions_under_way_while_their_node_goes_leave_little_of_all_such_nodes() -> None:
    state = cluster()
    for index in range(50):
        found = slice_of(device("gpu-0"), node=f"node-{index}", name=f"slice-{index}")
        found["spec"]["pool"]["name"] = f"node-{index}/gpu"
        state.put_slice_record(slice_record(found, Interner()))
        before = state.snapshot()
        state.drop_slice(f"slice-{index}")
        state.forget_node(f"node-{index}", ["other"])
        for wish in (ONE, claim(request(count=2))):
            allocate_anywhere(before, [wish], [node(f"node-{index}")])
    # Of the last one all may still be there.
    names = {one.pool for one in reachable(state) if isinstance(one, PoolId)}
    assert len(names) <= 3
