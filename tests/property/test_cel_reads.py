"""What Program.reads does not name has no part in the verdict."""

from typing import Any

from hypothesis import assume, given, settings

from dragoon.cel import compile_selector
from dragoon.cel.device import split_name
from dragoon.cel.program import Program
from dragoon.errors import DragoonError
from tests.oracle.expressions import devices, expressions
from tests.unit.cel.conformance import answer

DRIVER = "d"
_PARTS = ("attributes", "capacity")


def _compiled(expression: str) -> Program | None:
    try:
        return compile_selector(expression)
    except DragoonError:
        return None


def _only(device: dict[str, Any], part: str, program: Program, *, named: bool) -> dict[str, Any]:
    """The attributes or capacities of a device that the program names, or does not."""
    wanted = {(read.domain, read.name) for read in program.reads or () if read.part == part}
    return {
        name: value
        for name, value in device[part].items()
        if (split_name(name, DRIVER) in wanted) is named
    }


@settings(deadline=None)
@given(expression=expressions(), device=devices(), other=devices())
def test_devices_that_are_equal_in_what_is_read_get_the_same_verdict(
    expression: str, device: dict[str, Any], other: dict[str, Any]
) -> None:
    program = _compiled(expression)
    assume(program is not None and program.reads is not None)
    assert program is not None
    mixed = {
        **device,
        **{
            part: {
                **_only(device, part, program, named=True),
                **_only(other, part, program, named=False),
            }
            for part in _PARTS
        },
    }
    assert answer(expression, DRIVER, mixed) == answer(expression, DRIVER, device)
