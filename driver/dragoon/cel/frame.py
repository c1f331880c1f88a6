"""The state of one evaluation, and the form of a compiled expression.

A frame is a list, the cheapest mutable thing Python has: the device, what is left of the cost
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

COST_LIMIT: Final = 1_000_000
"""Of one evaluation: the API's limit (resource.k8s.io/v1 CELSelectorExpressionMaxCost)."""


def check_budget(frame: Frame) -> None:
    """Raises CostLimitError when the budget is used up.

    Costs only add up, so it is enough to look where an evaluation could go on for long, and at
    its end.
    """
    if frame[BUDGET] < 0:
        raise CostLimitError(f"the evaluation costs more than {COST_LIMIT}")
