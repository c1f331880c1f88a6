"""What a request policy may say: each rule is broken once, and only it is told."""

from typing import Any

import pytest

from dragoon.api.policy_validation import check_policy

Object = dict[str, Any]

PLACE = "c.requestPolicy"


def memory(value: str = "80Gi", default: str | None = "80Gi", **range_: str) -> Object:
    policy: Object = {"validRange": {"min": "512Mi", "step": "1Mi"} | range_}
    if default is not None:
        policy["default"] = default
    return {"value": value, "requestPolicy": policy}


def choice(*values: str, default: str = "1") -> Object:
    return {"value": "10", "requestPolicy": {"default": default, "validValues": list(values)}}


@pytest.mark.parametrize(
    "capacity",
    [
        {"value": "80Gi"},
        memory(),
        memory(default="513Mi"),
        memory(max="80Gi"),
        memory("513Mi", "512Mi"),
        {
            "value": "100",
            "requestPolicy": {
                "default": "0",
                "validRange": {"min": "0", "max": "100", "step": "1"},
            },
        },
        {"value": "100", "requestPolicy": {"default": "100"}},
        choice("1", "5", "10"),
        memory(default="81Gi"),  # Without a max nothing compares the default with the value.
    ],
)
def test_a_policy_within_the_rules_has_no_findings(capacity: Object) -> None:
    assert list(check_policy(capacity, "c", shared=True)) == []


@pytest.mark.parametrize(
    ("capacity", "path"),
    [
        (memory(default=None), f"{PLACE}.default"),
        (memory(default="-1Gi"), f"{PLACE}.default"),
        (memory(default="511Mi"), f"{PLACE}.validRange"),
        (memory(default="81Gi", max="80Gi"), f"{PLACE}.validRange"),
        (memory(max="81Gi"), f"{PLACE}.validRange"),
        (memory(default="80Gi", max="79Gi"), f"{PLACE}.validRange"),
        (memory(default="524289Ki"), f"{PLACE}.validRange.step"),
        (memory(max="83886079Ki", default="1Gi"), f"{PLACE}.validRange.step"),
        (memory(step="0"), f"{PLACE}.validRange.step"),
        (memory("512Mi", "512Mi"), f"{PLACE}.validRange.step"),
        (memory(step="500m"), f"{PLACE}.validRange.step"),
        (memory(min="x"), f"{PLACE}.validRange.min"),
        (memory(value="10E"), PLACE),
        (
            {"value": "10", "requestPolicy": {"default": "1", "validRange": {"max": "5"}}},
            f"{PLACE}.validRange.min",
        ),
        (
            {"value": "10", "requestPolicy": {"default": "1", "validRange": {}}},
            f"{PLACE}.validRange.min",
        ),
        (choice("5", "1"), f"{PLACE}.validValues"),
        (choice("1", "1"), f"{PLACE}.validValues"),
        (choice("1", "11"), f"{PLACE}.validValues"),
        (choice("2", "3"), f"{PLACE}.validValues"),
        (choice("1", "x"), f"{PLACE}.validValues"),
        (choice(*map(str, range(11)), default="1") | {"value": "20"}, f"{PLACE}.validValues"),
        (
            {
                "value": "9",
                "requestPolicy": {"default": "1", "validValues": ["1"], "validRange": {"min": "1"}},
            },
            PLACE,
        ),
    ],
)
def test_each_rule_of_a_policy_is_told_with_its_path(capacity: Object, path: str) -> None:
    (finding,) = check_policy(capacity, "c", shared=True)
    assert finding.path == path
    assert finding.allowed


def test_only_a_device_that_can_be_given_away_several_times_has_a_policy() -> None:
    (finding,) = check_policy(memory(), "c", shared=False)
    assert finding.path == PLACE
