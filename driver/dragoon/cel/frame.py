"""The state of one evaluation, and the form of a compiled expression.

A frame is a list, the cheapest mutable thing Python has: the device, what is left of the step
budget, the record of a trace, then one slot per variable of a macro.
"""

from collections.abc import Callable
from typing import Any, Final

from dragoon.cel.errors import CostLimitError

Frame = list[Any]
Evaluate = Callable[[Frame], Any]

DEVICE: Final = 0
BUDGET: Final = 1
RECORD: Final = 2
FIRST_SLOT: Final = 3

PENDING: Final = object()
"""In the slot of a bound variable that has not been read."""

STEP_LIMIT: Final = 1_000_000
"""Steps of one evaluation: the API's cost limit (CELSelectorExpressionMaxCost)."""
_CHARACTERS_PER_STEP: Final = 10
"""Characters that count as one step; an element of a list or map is one each, as in cel-go."""


def charge(frame: Frame, steps: int) -> None:
    """Takes steps from the budget. Raises CostLimitError when it is used up."""
    frame[BUDGET] -= steps
    if frame[BUDGET] < 0:
        raise CostLimitError(f"the evaluation takes more than {STEP_LIMIT} steps")


def charge_sizes(frame: Frame, *values: Any) -> None:
    """Takes steps for the sizes of strings, lists and maps."""
    steps = 1
    for value in values:
        if isinstance(value, str | bytes):
            steps += len(value) // _CHARACTERS_PER_STEP
        elif isinstance(value, tuple | dict):
            steps += len(value)
    charge(frame, steps)
