"""Case C05, and names of NVLink domains that stay."""

from typing import Any

from dragoon.publish import domains
from tests.unit.publish.nodes import NODE, address, attribute, machine, published

A, B, C, D, E, F = (address(n) for n in range(6))


def value_of(device: object) -> object:
    return attribute(device, "nvlinkDomain")  # type: ignore[arg-type]


def test_c05_a_gpu_off_nvlink_is_offered_outside_the_group_of_seven() -> None:
    found = list(published(machine("hgx-b200-one-gpu-off-nvlink")).values())
    values = [value_of(device) for device in found]
    assert len(values) == 8
    assert values[2] is None
    assert len(set(values) - {None}) == 1


def test_pairs_by_bridge_are_domains_of_their_own() -> None:
    values = [value_of(device) for device in published(machine("a40-8way-bridge-pairs")).values()]
    assert sorted(values.count(value) for value in set(values)) == [2, 2, 2, 2]


def test_a_new_group_is_named_after_its_node_and_lowest_member() -> None:
    named = domains.assign([(B, A)], node=NODE, previous={})
    assert named[A] == named[B]
    assert named[A].endswith("-0000-10-00-0")
    assert named != domains.assign([(B, A)], node="node-b", previous={})


def test_the_name_stays_when_the_lowest_member_drops_out_and_when_it_returns() -> None:
    before = domains.assign([(A, B, C)], node=NODE, previous={})
    without = domains.assign([(B, C)], node=NODE, previous=before)
    assert without == {B: before[B], C: before[C]}
    assert domains.assign([(A, B, C)], node=NODE, previous={**before, **without}) == before


def test_a_group_that_falls_apart_leaves_its_name_with_the_larger_part() -> None:
    before = domains.assign([(A, B, C, D, E)], node=NODE, previous={})
    after = domains.assign([(A, B), (C, D, E)], node=NODE, previous=before)
    assert after[C] == after[D] == after[E] == before[C]
    assert after[A] == after[B] != after[C]


def test_equal_parts_leave_the_name_with_the_lower_address() -> None:
    before = domains.assign([(A, B, C, D)], node=NODE, previous={})
    after = domains.assign([(C, D), (A, B)], node=NODE, previous=before)
    assert after[A] == before[A]
    assert after[C] != before[C]


def test_groups_that_join_take_the_name_of_most() -> None:
    before = domains.assign([(A, B), (C, D, E)], node=NODE, previous={})
    after = domains.assign([(A, B, C, D, E)], node=NODE, previous=before)
    assert set(after.values()) == {before[C]}


def test_a_card_that_left_a_group_does_not_take_its_name_to_a_new_one() -> None:
    before = domains.assign([(A, B, C)], node=NODE, previous={})
    after = domains.assign([(B, C), (A, F)], node=NODE, previous=before)
    assert after[B] == before[B]
    assert after[A] == after[F] != before[A]


def test_a_name_that_this_node_cannot_have_given_is_not_taken_over() -> None:
    foreign = domains.assign([(A, B)], node="node-b", previous={})
    assert domains.assign([(A, B)], node=NODE, previous=foreign)[A] != foreign[A]


def test_names_are_read_back_from_published_devices() -> None:
    found = published(machine("dgx-h100"))
    values = domains.published(found.values())
    assert {str(where): value for where, value in values.items()} == {
        attribute(device, "resource.kubernetes.io/pciBusID"): value_of(device)
        for device in found.values()
    }


def test_nonsense_in_published_devices_is_not_read() -> None:
    where = "resource.kubernetes.io/pciBusID"
    odd: list[dict[str, Any]] = [
        {"name": "a"},
        {"name": "b", "attributes": {where: {"string": "?"}, "nvlinkDomain": {"string": "x"}}},
        {"name": "c", "attributes": {where: {"int": 1}, "nvlinkDomain": {"string": "x"}}},
    ]
    assert domains.published(odd) == {}
