"""Devices that are equal in what a selector reads are evaluated once for it."""

from typing import Any

import pytest

from dragoon.allocator.amounts import Capacity
from dragoon.allocator.model import Attribute, Facts
from dragoon.allocator.selection import Selector
from dragoon.cel import EvaluationError
from dragoon.quantity import nanos, parse

A = "device.attributes['d.x']"


def facts(driver: str = "d.x", /, unreadable: str = "", **attributes: Any) -> Facts:
    listed = tuple(Attribute(name.replace("__", "/"), "int", n) for name, n in attributes.items())
    capacity = (("memory", Capacity("1Gi", parse("1Gi"), nanos(parse("1Gi")))),)
    return Facts(driver, listed, capacity, unreadable=unreadable)


def test_devices_that_are_equal_in_what_is_read_are_evaluated_once() -> None:
    selector = Selector(f"{A}.?n.orValue(0) == 1")
    assert selector.matches(facts(n=1, serial=1))
    assert selector.matches(facts(n=1, serial=2))
    assert not selector.matches(facts(n=2, serial=3))
    assert not selector.matches(facts(n=3))
    assert selector.evaluations == 3


@pytest.mark.parametrize("name", ["n", "d__n"])
def test_a_driver_may_publish_with_its_domain_or_without(name: str) -> None:
    selector = Selector("device.attributes['d'].?n.orValue(0) == 1")
    assert not selector.matches(facts("d"))
    published: dict[str, Any] = {name: 1}
    assert selector.matches(facts("d", **published))
    assert not selector.matches(facts("e", n=1))


def test_a_failure_is_raised_each_time_and_is_no_verdict() -> None:
    selector = Selector(f"{A}.n == 1")
    for _ in range(2):
        with pytest.raises(EvaluationError, match="no such key: n"):
            selector.matches(facts(m=1))
    assert selector.matches(facts(n=1))


def test_an_attribute_that_cannot_be_read_fails_every_selector_of_its_device() -> None:
    selector = Selector(f"{A}.n == 1")
    assert selector.matches(facts(n=1))
    with pytest.raises(EvaluationError, match="attribute v"):
        selector.matches(facts(n=1, unreadable="attribute v: not a version"))
