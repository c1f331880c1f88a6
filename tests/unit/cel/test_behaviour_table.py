"""How Kubernetes 1.37.2 answers expressions, tried there one by one."""

import pytest

from dragoon.cel import (
    CompileError,
    DeviceView,
    EvaluationError,
    UnsupportedExpressionError,
    compile_selector,
    device_view,
)


@pytest.fixture(scope="module")
def device() -> DeviceView:
    return device_view(
        "d",
        {
            "attributes": {
                "text": {"string": "a"},
                "number": {"int": 3},
                "ok": {"bool": True},
                "version": {"version": "1.2.3"},
                "list": {"ints": [1, 2]},
            },
            "capacity": {"memory": {"value": "141Gi"}},
        },
    )


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.attributes["nodomain"].size() == 0', True),
        ('"nodomain" in device.attributes', False),
        ('"missing" in device.attributes["d"]', False),
        ('has(device.attributes["d"].missing)', False),
        ('has(device.attributes["nodomain"].missing)', False),
        ('device.attributes["d"].missing == "a" && false', False),
        ('false && device.attributes["d"].missing == "a"', False),
        ('device.attributes["d"].missing == "a" || true', True),
        ('device.attributes["d"].text == 3', False),
        ('device.attributes["d"].number > 2.5', True),
        ('device.attributes["d"].ok', True),
        ('device.attributes["d"].?missing.orValue("d") == "d"', True),
        ('device.attributes[?"x"].?y.orValue("d") == "d"', True),
        ('device.capacity["d"].memory == quantity("144384Mi")', True),
        ('device.attributes["d"].version == semver("1.2.3")', True),
        ('cel.bind(a, device.attributes["d"], a.ok && a.number == 3)', True),
        ('device.attributes["d"].exists(k, v, k == "number" && v == 3)', True),
        # In the environment for stored expressions, which the scheduler uses.
        ('device.attributes["d"].list.includes(2)', True),
        ("device.allowMultipleAllocations", False),
    ],
)
def test_expression_has_this_value(device: DeviceView, expression: str, expected: bool) -> None:
    assert compile_selector(expression).evaluate(device) is expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('device.attributes["d"].missing == "a"', "no such key: missing"),
        ('device.attributes["nodomain"].missing == "a"', "no such key: missing"),
        ('device.attributes["d"].missing == "a" || false', "no such key: missing"),
        ('device.attributes["d"].number > "a"', "no such overload"),
        ('device.attributes["d"].text', "not bool"),
        ("device.attributes['d'].number / 0 == 1", "division by zero"),
    ],
)
def test_expression_fails_at_evaluation(device: DeviceView, expression: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        compile_selector(expression).evaluate(device)


@pytest.mark.parametrize(
    "expression",
    [
        'device.attributes["d"]',
        'device.capacity["d"].memory >= quantity("1Gi")',
        'semver("1.0.0") > semver("0.9.0")',
        "device.name == 'x'",
        "device.pool == 'x'",
        "device.driver = 'd'",
        "device.driver",
    ],
)
def test_expression_does_not_compile(expression: str) -> None:
    with pytest.raises(CompileError):
        compile_selector(expression)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("type(device.driver) == string", "cannot bound their cost"),
        ("timestamp(0).getHours('Europe/Berlin') == 1", "does not know time zones"),
        ("device.driver.check('get').allowed()", "does not ask an authorizer"),
    ],
)
def test_what_dragoon_does_not_do_is_refused_with_the_reason(expression: str, reason: str) -> None:
    with pytest.raises(UnsupportedExpressionError, match=reason):
        compile_selector(expression)
