"""Decisions of the reconciler, one rule at a time."""

import copy
from typing import Any

import pytest

from dragoon.publish import comparing
from dragoon.publish.reconciling import Adoption, Memory, Plan, decide, remembered
from tests.unit.publish.standing import TAINT, applied, device, standing, stored, target

Object = dict[str, Any]

ONE = target([device(0), device(1)])
TWO = target([device(0)], [device(1)])
TAINTED = target([device(0, taints=[TAINT]), device(1)])


def writes(plan: Plan) -> list[tuple[str, int]]:
    return [("create" if each.creates else "update", each.index) for each in plan.writes]


def generations(plan: Plan) -> set[int]:
    return {each.body["spec"]["pool"]["generation"] for each in plan.writes}


def edited(slice_: Object, **spec: Any) -> Object:
    changed = copy.deepcopy(slice_)
    changed["spec"] |= spec
    return changed


def test_nothing_there_is_created_with_the_first_generation() -> None:
    plan = decide(TWO, [])
    assert writes(plan) == [("create", 0), ("create", 1)]
    assert generations(plan) == {1} == {plan.generation}
    assert {each.body["spec"]["pool"]["resourceSliceCount"] for each in plan.writes} == {2}


@pytest.mark.parametrize("wanted", [ONE, TWO, TAINTED, target([])])
def test_what_is_as_it_should_be_is_left_alone(wanted: Any) -> None:
    plan = decide(wanted, standing(wanted, 7))
    assert plan.actions == ()
    assert plan.generation == 7


def test_one_update_keeps_the_generation() -> None:
    plan = decide(ONE, standing(target([device(0)]), 7))
    assert writes(plan) == [("update", 0)]
    assert generations(plan) == {7}


def test_an_update_keeps_what_others_noted_on_the_slice() -> None:
    (there,) = standing(target([device(0)]))
    there["metadata"] |= {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    (write,) = decide(ONE, [there]).writes
    meta = write.body["metadata"]
    assert meta["labels"] == {"team": "a"}
    assert meta["annotations"] == {"note": "b"}
    assert (meta["uid"], meta["resourceVersion"]) == (
        there["metadata"]["uid"],
        there["metadata"]["resourceVersion"],
    )


def test_two_updates_raise_the_generation_of_all() -> None:
    before = target([device(0)], [device(1)], [device(2)])
    after = target([device(1)], [device(0)], [device(2)])
    plan = decide(after, standing(before, 7))
    assert writes(plan) == [("update", 0), ("update", 1), ("update", 2)]
    assert generations(plan) == {8}


def test_c16_a_deleted_slice_comes_back_and_all_get_a_higher_generation() -> None:
    plan = decide(TWO, standing(TWO, 7)[1:])
    assert writes(plan) == [("update", 1), ("create", 0)]
    assert generations(plan) == {8}


def test_c16_a_wiped_pool_comes_back_with_a_higher_generation() -> None:
    plan = decide(TWO, [], Memory(generation=7))
    assert writes(plan) == [("create", 0), ("create", 1)]
    assert generations(plan) == {8}


@pytest.mark.parametrize(
    "spec",
    [
        {"devices": []},
        {"devices": None},
        {"devices": [device(1), device(0)]},
        {"devices": [device(0), device(1, allowMultipleAllocations=True)]},
        {"devices": [device(0), device(1, attributes={"type": {"string": "other"}})]},
        {"devices": [device(0), device(1, taints=[TAINT])]},
        {"perDeviceNodeSelection": True},
        {"sharedCounters": [{"name": "c", "counters": {"a": {"value": "1"}}}]},
        {"pool": {"name": "node-a/gpu", "generation": 1, "resourceSliceCount": 3}},
    ],
)
def test_c16_an_edit_by_others_is_undone(spec: Object) -> None:
    (there,) = standing(ONE)
    plan = decide(ONE, [edited(there, **spec)])
    assert writes(plan) == [("update", 0)]
    assert comparing.content(plan.writes[0].body) == comparing.content(there)


def test_c16_lost_owners_are_put_back() -> None:
    (there,) = standing(ONE)
    del there["metadata"]["ownerReferences"]
    (write,) = decide(ONE, [there]).writes
    assert write.body["metadata"]["ownerReferences"] == ONE.pool.owners


def test_obsolete_slices_go_first_then_updates_then_creations() -> None:
    old = standing(target([device(0)], [device(1)]), 3)
    foreign = stored(ONE.slice_(0, 3))
    foreign["spec"]["pool"]["name"] = "node-a"
    plan = decide(target([device(0)], [device(1)], [device(2)]), [foreign, *old])
    kinds = [type(action).__name__ for action in plan.actions]
    assert kinds == ["Delete", "Write", "Write", "Write"]
    assert writes(plan) == [("update", 0), ("update", 1), ("create", 2)]


def test_slices_too_many_are_deleted_and_the_count_is_corrected() -> None:
    there = standing(TWO, 7)
    plan = decide(target([device(0)]), there)
    assert [each.uid for each in plan.deletes] == [there[1]["metadata"]["uid"]]
    assert writes(plan) == [("update", 0)]
    assert plan.generation == 7


def test_deletions_name_the_version_that_was_seen() -> None:
    (there,) = standing(ONE)
    there["spec"]["pool"]["name"] = "node-a"
    (delete,) = decide(ONE, [there]).deletes
    meta = there["metadata"]
    assert (delete.name, delete.uid, delete.resource_version) == (
        meta["name"],
        meta["uid"],
        meta["resourceVersion"],
    )


def test_of_two_equal_slices_the_older_stays() -> None:
    older, newer = standing(ONE), standing(ONE)
    older[0]["metadata"]["creationTimestamp"] = "2026-11-29T10:00:00Z"
    newer[0]["metadata"]["creationTimestamp"] = "2026-11-29T10:00:01Z"
    plan = decide(ONE, [*newer, *older])
    assert [each.uid for each in plan.deletes] == [newer[0]["metadata"]["uid"]]
    assert plan.writes == ()


def test_of_two_slices_the_right_one_stays_even_if_younger() -> None:
    (wrong,), (right,) = standing(target([device(5)])), standing(ONE)
    wrong["metadata"]["creationTimestamp"] = "2026-11-29T10:00:00Z"
    right["metadata"]["creationTimestamp"] = "2026-11-29T10:00:01Z"
    plan = decide(ONE, [wrong, right])
    assert [each.uid for each in plan.deletes] == [wrong["metadata"]["uid"]]
    assert plan.writes == ()


def test_slices_of_an_older_generation_or_without_our_name_are_obsolete() -> None:
    (old,), (new,), (odd,) = standing(ONE, 1), standing(ONE, 2), standing(ONE, 2)
    odd["metadata"]["name"] = "made-by-hand"
    plan = decide(ONE, [old, odd, new])
    assert {each.uid for each in plan.deletes} == {
        old["metadata"]["uid"],
        odd["metadata"]["uid"],
    }
    assert plan.writes == ()


def test_a_slice_that_waits_for_a_finalizer_is_replaced_and_not_deleted_again() -> None:
    (there,) = standing(ONE, 4)
    there["metadata"]["deletionTimestamp"] = "2026-11-29T10:00:00Z"
    plan = decide(ONE, [there])
    assert plan.deletes == ()
    assert writes(plan) == [("create", 0)]
    assert generations(plan) == {5}
    assert decide(ONE, applied([there], plan)).actions == ()


def test_a_generation_at_its_end_starts_again() -> None:
    there = standing(TWO, 2**63 - 1)
    plan = decide(TWO, there[1:])
    assert [each.uid for each in plan.deletes] == [there[1]["metadata"]["uid"]]
    assert writes(plan) == [("create", 0), ("create", 1)]
    assert generations(plan) == {1}


def test_a_new_node_of_the_same_name_becomes_the_owner() -> None:
    there = standing(ONE)
    there[0]["metadata"]["ownerReferences"][0]["uid"] = "the-node-before"
    assert writes(decide(ONE, there)) == [("update", 0)]


def test_the_servers_time_of_a_taint_is_no_difference_and_is_kept() -> None:
    (there,) = standing(TAINTED)
    there["spec"]["devices"][0]["taints"][0]["timeAdded"] = "2026-11-28T00:00:00Z"
    assert decide(TAINTED, [there]).actions == ()
    more = target([device(0, taints=[TAINT]), device(1), device(2)])
    (write,) = decide(more, [there]).writes
    (taint,) = write.body["spec"]["devices"][0]["taints"]
    assert taint == {**TAINT, "timeAdded": "2026-11-28T00:00:00Z"}


def test_a_new_taint_does_not_take_the_time_of_another() -> None:
    other = {"key": "dragoon.dev/other-owner", "effect": "NoSchedule"}
    (write,) = decide(target([device(0, taints=[other]), device(1)]), standing(TAINTED)).writes
    assert write.body["spec"]["devices"][0]["taints"] == [other]


@pytest.mark.parametrize(
    ("ours", "same"),
    [
        ("2026-11-29T10:00:00.9Z", True),
        ("2026-11-29T09:59:59Z", True),
        ("2026-11-29T10:00:02Z", False),
    ],
)
def test_our_own_time_of_a_taint_counts_up_to_a_second(ours: str, *, same: bool) -> None:
    wanted = target([device(0, taints=[{**TAINT, "timeAdded": ours}]), device(1)])
    assert (decide(wanted, standing(TAINTED)).actions == ()) is same


def test_quantities_are_compared_by_value() -> None:
    wanted = target([device(0, capacity={"memory": {"value": "81559Mi"}})])
    (there,) = standing(wanted)
    there["spec"]["devices"][0]["capacity"]["memory"]["value"] = "85520809984"
    assert decide(wanted, [there]).actions == ()
    there["spec"]["devices"][0]["capacity"]["memory"]["value"] = "81560Mi"
    assert writes(decide(wanted, [there])) == [("update", 0)]


def test_what_a_server_made_of_a_slice_is_accepted_until_we_want_something_else() -> None:
    (there,) = standing(ONE)
    del there["spec"]["devices"][1]
    sent, kept = comparing.content(ONE.slice_(0)), comparing.content(there)
    memory = Memory(adopted={0: Adoption(sent, kept)})
    assert decide(ONE, [there], memory).actions == ()
    assert writes(decide(target([device(0)]), [there], memory)) == []
    assert writes(decide(target([device(3)]), [there], memory)) == [("update", 0)]
    there["spec"]["devices"] = []
    assert writes(decide(ONE, [there], memory)) == [("update", 0)]


def test_the_time_of_a_taint_is_remembered_until_it_is_not_wanted_any_more() -> None:
    (there,) = standing(TAINTED)
    there["spec"]["devices"][0]["taints"][0]["timeAdded"] = "2026-11-28T00:00:00Z"
    memory = remembered(TAINTED, [there], Memory())
    assert remembered(TAINTED, [], memory) == memory
    (write,) = decide(TAINTED, [], memory).writes
    assert write.body["spec"]["devices"][0]["taints"] == [
        {**TAINT, "timeAdded": "2026-11-28T00:00:00Z"}
    ]
    assert not remembered(ONE, [there], memory).times
