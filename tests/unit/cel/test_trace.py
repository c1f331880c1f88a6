"""A trace names the smallest parts that decided, with what they read."""

import pytest

from dragoon.cel import DeviceView, compile_selector, device_view


@pytest.fixture(scope="module")
def device() -> DeviceView:
    return device_view(
        "d",
        {
            "attributes": {"name": {"string": "L4"}, "count": {"int": 3}},
            "capacity": {"memory": {"value": "24Gi"}},
        },
    )


def told(expression: str, device: DeviceView) -> list[str]:
    return [str(finding) for finding in compile_selector(expression).explain(device).findings]


def test_a_true_expression_has_no_findings(device: DeviceView) -> None:
    assert told("device.driver == 'd'", device) == []


def test_of_a_conjunction_only_the_false_part_is_told(device: DeviceView) -> None:
    expression = "device.driver == 'd' && device.attributes['d'].count > 5"
    assert told(expression, device) == [
        "device.attributes['d'].count > 5 is false: device.attributes['d'].count is 3"
    ]


def test_of_a_disjunction_every_part_is_told(device: DeviceView) -> None:
    assert told("device.driver == 'x' || device.attributes['d'].name == 'H100'", device) == [
        "device.driver == 'x' is false: device.driver is \"d\"",
        "device.attributes['d'].name == 'H100' is false: device.attributes['d'].name is \"L4\"",
    ]


def test_a_quantity_is_shown_as_it_is_written(device: DeviceView) -> None:
    expression = "device.capacity['d'].memory.compareTo(quantity('40Gi')) >= 0"
    assert told(expression, device) == [
        f"{expression} is false: device.capacity['d'].memory is 24Gi"
    ]


def test_the_branch_that_was_taken_is_told(device: DeviceView) -> None:
    expression = "device.driver == 'd' ? device.attributes['d'].count == 4 : false"
    assert told(expression, device)[0].startswith("device.attributes['d'].count == 4 is false")


def test_the_body_of_a_binding_is_told_with_its_variable(device: DeviceView) -> None:
    expression = "cel.bind(a, device.attributes['d'], a.count == 4)"
    assert told(expression, device) == ["a.count == 4 is false: a.count is 3"]


def test_a_failure_is_told_at_its_innermost_part_with_its_offset(device: DeviceView) -> None:
    expression = "device.driver == 'd' && device.attributes['d'].model == 'x'"
    (finding,) = compile_selector(expression).explain(device).findings
    assert finding.text == "device.attributes['d'].model"
    assert finding.offset == expression.index("device.attributes")
    assert finding.failure == "no such key: model (there are: count, name)"


def test_an_absorbed_failure_is_not_told(device: DeviceView) -> None:
    expression = "device.attributes['d'].model == 'x' && device.attributes['d'].count == 4"
    assert told(expression, device) == [
        "device.attributes['d'].count == 4 is false: device.attributes['d'].count is 3"
    ]


def test_a_non_bool_result_is_told(device: DeviceView) -> None:
    trace = compile_selector("device.attributes['d'].count").explain(device)
    assert trace.failure == "the result is of type int, not bool"


def test_brackets_belong_to_the_part_they_enclose(device: DeviceView) -> None:
    assert told("!(device.driver == 'd')", device) == [
        "!(device.driver == 'd') is false: device.driver is \"d\""
    ]
