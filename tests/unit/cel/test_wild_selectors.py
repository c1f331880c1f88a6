"""Case C38: the selectors people write, on the device they write them for (an H100)."""

import pytest

from dragoon.cel import CompileError, DeviceView, compile_selector, device_view

DRIVER = "gpu.nvidia.com"


@pytest.fixture(scope="module")
def h100() -> DeviceView:
    return device_view(
        DRIVER,
        {
            "attributes": {
                "productName": {"string": "NVIDIA H100 80GB HBM3"},
                "architecture": {"string": "Hopper"},
                "type": {"string": "gpu"},
                "driverVersion": {"version": "580.95.5"},
                "cudaComputeCapability": {"version": "9.0.0"},
            },
            "capacity": {"memory": {"value": "81559Mi"}},
        },
    )


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("device.attributes['D'].productName.lowerAscii().matches('^.*h100.*$')", True),
        ("device.attributes['D'].productName == 'H100'", False),
        ("device.capacity['D'].memory.compareTo(quantity('79Gi')) >= 0", True),
        ("'model' in device.attributes['D'] && device.attributes['D'].model == 'H100'", False),
        ("device.attributes['D'].cudaComputeCapability.isGreaterThan(semver('8.9.0'))", True),
    ],
)
def test_c38_expression_matches_or_not(h100: DeviceView, expression: str, expected: bool) -> None:
    program = compile_selector(expression.replace("'D'", f"'{DRIVER}'"))
    assert program.evaluate(h100) is expected


@pytest.mark.parametrize(
    ("expression", "missing", "near"),
    [
        ("device.attributes['D'].memory >= '40Gi'", "memory", "productName"),
        ("device.attributes['D'].model == 'H100'", "model", "productName"),
        ("device.attributes['D'].index < 2", "index", "architecture"),
        ("device.attributes['nvidia.com'].productName.contains('H100')", "productName", "none"),
    ],
)
def test_c38_missing_read_is_named_with_what_is_there(
    h100: DeviceView, expression: str, missing: str, near: str
) -> None:
    trace = compile_selector(expression.replace("'D'", f"'{DRIVER}'")).explain(h100)
    assert trace.result is None
    assert trace.failure is not None
    assert trace.failure.startswith(f"no such key: {missing} ")
    assert near in trace.failure
    assert trace.findings[0].text in expression.replace("'D'", f"'{DRIVER}'")


def test_c38_one_equals_sign_is_a_compile_error_that_says_what_to_write() -> None:
    with pytest.raises(CompileError, match="column 15: '=' is no operator, write '=='") as caught:
        compile_selector("device.driver = 'gpu.nvidia.com'")
    assert caught.value.offset == 14
