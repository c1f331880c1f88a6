"""The device variable is read from a raw slice entry."""

import pytest

from dragoon.cel import compile_selector, device_view
from dragoon.errors import InvalidInputError


def test_unprefixed_names_stand_under_the_driver_and_others_under_their_domain() -> None:
    view = device_view(
        "d",
        {
            "attributes": {"a": {"int": 1}, "o.x/a": {"int": 2}},
            "capacity": {"o.x/m": {"value": "1"}},
        },
    )
    expression = (
        "device.attributes['d'].a == 1 && device.attributes['o.x'].a == 2 "
        "&& device.capacity['o.x'].m == quantity('1') && device.capacity['d'].size() == 0"
    )
    assert compile_selector(expression).evaluate(view)


@pytest.mark.parametrize(
    ("attribute", "expression"),
    [
        ({"int": 1}, "x == 1"),
        ({"bool": False}, "x == false"),
        ({"string": "s"}, "x == 's'"),
        ({"version": "1.0.0-rc.1"}, "x.isLessThan(semver('1.0.0'))"),
        ({"ints": [1, 2]}, "2 in x"),
        ({"bools": [True]}, "x.all(b, b)"),
        ({"strings": ["a"]}, "x == ['a']"),
        ({"versions": ["1.0.0"]}, "x[0] == semver('1.0.0')"),
    ],
)
def test_every_kind_of_attribute_can_be_read(attribute: dict[str, object], expression: str) -> None:
    view = device_view("d", {"attributes": {"x": attribute}})
    assert compile_selector(f"cel.bind(x, device.attributes['d'].x, {expression})").evaluate(view)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ({"attributes": {"x": {"version": "1.0"}}}, "attribute x: version: found '1.0'"),
        ({"attributes": {"x": {}}}, "attribute x: found nothing"),
        ({"attributes": {"x": {"float": 1}}}, "attribute x: found float"),
        ({"capacity": {"m": {"value": "lots"}}}, "capacity m: quantity: found 'lots'"),
        ({"capacity": {"m": {}}}, "capacity m"),
    ],
)
def test_a_value_that_cannot_be_read_is_named(device: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        device_view("d", device)
