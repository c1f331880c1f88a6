"""Program.reads names what an expression may look at, or nothing where it may be all."""

import pytest

from dragoon.cel import Read, compile_selector

A, C = "attributes", "capacity"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", set()),
        ("device.driver == 'd' && !device.allowMultipleAllocations", set()),
        ("device.attributes['d'].x", {Read(A, "d", "x")}),
        ("device.attributes.d.x", {Read(A, "d", "x")}),
        ("device.attributes['d']['x'] == 1", {Read(A, "d", "x")}),
        ("has(device.attributes['d'].x)", {Read(A, "d", "x")}),
        ("'x' in device.capacity['d']", {Read(C, "d", "x")}),
        ("device.attributes[?'d'].?x.hasValue()", {Read(A, "d", "x")}),
        (
            "cel.bind(a, device.attributes['d'], a.x && a['y'])",
            {Read(A, "d", "x"), Read(A, "d", "y")},
        ),
        ("cel.bind(a, device, a.attributes['d'].x)", {Read(A, "d", "x")}),
        ("cel.bind(a, device.attributes['d'].x, a == 1)", {Read(A, "d", "x")}),
        ("device.attributes['d'].x.exists(v, v == device.driver)", {Read(A, "d", "x")}),
        ("[1].all(x, device.attributes['d'].y == x)", {Read(A, "d", "y")}),
    ],
)
def test_these_attributes_and_capacities_are_read(expression: str, expected: set[Read]) -> None:
    assert compile_selector(expression).reads == frozenset(expected)


@pytest.mark.parametrize(
    "expression",
    [
        "device.attributes['d'].exists(name, name == 'x')",
        "device.attributes.all(domain, domain == 'd')",
        "device.attributes[device.driver].x",
        "device.attributes['d'][device.driver] == 1",
        "device.driver in device.attributes",
        "'d' in device.attributes",
        "device.attributes['d'].size() > 0",
        "cel.bind(a, device.attributes['d'], a.size() > 0)",
        "cel.bind(a, device.attributes, a['d'].exists(name, name == 'x'))",
    ],
)
def test_all_counts_where_more_is_read_than_is_named(expression: str) -> None:
    assert compile_selector(expression).reads is None
