"""The rules of shared counters: each is broken once, and only it is told."""

from typing import Any

import pytest

from dragoon.api.counter_validation import check_consumption, check_counter_sets
from dragoon.api.slice_validation import check_pool, check_slice
from tests.unit.api.test_slice_validation import counter_set, device, slice_

Object = dict[str, Any]


def consumption(name: str = "gpu-0", **counters: str) -> Object:
    values = counters or {"slice-0": "1"}
    return {"counterSet": name, "counters": {k: {"value": v} for k, v in values.items()}}


def many(count: int) -> dict[str, str]:
    return {f"slice-{number}": "1" for number in range(count)}


def test_limits_of_counters_are_allowed() -> None:
    sets = [counter_set(number, many(32)) for number in range(8)]
    assert check_slice(slice_(devices=None, sharedCounters=sets)) == ()
    consumed = [consumption(name, **many(32)) for name in ("gpu-0", "gpu-1")]
    assert check_slice(slice_(devices=[device(consumesCounters=consumed)])) == ()


@pytest.mark.parametrize(
    ("sets", "path"),
    [
        ([counter_set(n) for n in range(9)], "c"),
        ([counter_set(), counter_set()], "c[1].name"),
        ([{**counter_set(), "name": "GPU"}], "c[0].name"),
        ([{**counter_set(), "name": None}], "c[0].name"),
        ([{"name": "gpu-0"}], "c[0].counters"),
        ([counter_set(counters=many(33))], "c[0].counters"),
        ([counter_set(counters={"Upper": "1"})], "c[0].counters"),
        ([counter_set(counters={"a": "one"})], "c[0].counters[a].value"),
        ([{"name": "gpu-0", "counters": {"a": None}}], "c[0].counters[a].value"),
        (["gpu-0"], "c[0]"),
    ],
)
def test_each_rule_of_a_counter_set_is_told_with_its_path(sets: Any, path: str) -> None:
    (finding,) = check_counter_sets(sets, "c")
    assert finding.path == path


@pytest.mark.parametrize(
    ("consumed", "path"),
    [
        ([consumption(f"gpu-{n}") for n in range(3)], "c"),
        ([consumption(), consumption()], "c[1].counterSet"),
        ([consumption("")], "c[0].counterSet"),
        ([consumption(**many(33))], "c[0].counters"),
        ([{"counterSet": "gpu-0"}], "c[0].counters"),
        ([consumption(a="")], "c[0].counters[a].value"),
    ],
)
def test_each_rule_of_consumption_is_told_with_its_path(consumed: Any, path: str) -> None:
    (finding,) = check_consumption(consumed, "c")
    assert finding.path == path


def test_devices_that_consume_counters_are_64_in_a_slice() -> None:
    consuming = [device(n, consumesCounters=[consumption()]) for n in range(65)]
    (finding,) = check_slice(slice_(devices=consuming))
    assert finding.path == "spec.devices"
    assert check_slice(slice_(devices=consuming[:64])) == ()


def test_a_pool_is_valid_when_its_devices_consume_what_is_there() -> None:
    sets = slice_(devices=None, sharedCounters=[counter_set()])
    assert check_pool([sets, slice_(devices=[device(consumesCounters=[consumption()])])]) == ()


@pytest.mark.parametrize(
    ("consumed", "found"),
    [(consumption("gpu-1"), "gpu-1"), (consumption(other="1"), "other")],
    ids=["a set that is not there", "a counter that is not there"],
)
def test_consumption_of_what_is_not_there_makes_a_pool_invalid(
    consumed: Object, found: str
) -> None:
    sets = slice_(devices=None, sharedCounters=[counter_set()])
    pool = [sets, slice_(devices=[device(consumesCounters=[consumed])])]
    assert all(check_slice(each) == () for each in pool)
    (finding,) = check_pool(pool)
    assert finding.found == found


def test_a_counter_set_given_twice_makes_a_pool_invalid() -> None:
    sets = slice_(devices=None, sharedCounters=[counter_set()])
    (finding,) = check_pool([sets, sets])
    assert finding.found == "gpu-0"
