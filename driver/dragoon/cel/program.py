"""A selector ready to be evaluated, and why it was false or failed on a device."""

import contextlib
from functools import cached_property, lru_cache
from typing import Any, Final

from dragoon.cel.checked import Checked
from dragoon.cel.checker import check
from dragoon.cel.compiler import Compiler
from dragoon.cel.device import DeviceView
from dragoon.cel.errors import EvaluationError, ExpressionFailedError, Source
from dragoon.cel.estimate import estimated_cost
from dragoon.cel.frame import BUDGET, COST_LIMIT, RECORD, Evaluate, Frame, check_budget
from dragoon.cel.parser import parse
from dragoon.cel.reads import Read, reads
from dragoon.cel.trace import Outcome, Record, Trace, findings
from dragoon.cel.values import type_name

_KEPT: Final = 512
"""Programs kept compiled; a cluster has a handful of different selectors."""


class Program:
    """One compiled selector. Has no state that an evaluation changes."""

    def __init__(self, checked: Checked) -> None:
        self.text = checked.source.text
        self._checked = checked
        compiler = Compiler(checked)
        self._run = compiler.build(checked.tree)
        self._frame: Frame = [None, COST_LIMIT, None]
        self._frame += [None] * compiler.slots

    def evaluate(self, device: DeviceView) -> bool:
        """Whether the device matches.

        Raises EvaluationError where kube-scheduler's evaluation fails too: a missing key, values
        of the wrong type, a result that is no bool, a cost of more than 1,000,000.
        """
        frame = self._frame.copy()
        frame[0] = device.variables
        value = self._run(frame)
        if frame[BUDGET] < 0:
            check_budget(frame)
        return value if value is True or value is False else _as_bool(value)

    @cached_property
    def reads(self) -> frozenset[Read] | None:
        """The attributes and capacities that an evaluation may read, None where it may read all.

        For a cache of verdicts (the allocator's): devices of one driver that are equal in these
        and in allowMultipleAllocations give the same verdict, or fail alike.
        """
        return reads(self._checked.tree)

    @cached_property
    def estimated_cost(self) -> int:
        """The most that an evaluation on any device may cost, 2**64 - 1 where there is no limit.

        The API server refuses an expression in a new object where this is over COST_LIMIT.
        """
        return estimated_cost(self._checked)

    def cost(self, device: DeviceView) -> int:
        """What one evaluation costs, whatever its outcome, in CEL's units as cel-go counts them."""
        frame = self._frame.copy()
        frame[0] = device.variables
        with contextlib.suppress(EvaluationError):
            self._run(frame)
        return COST_LIMIT - int(frame[BUDGET])

    def explain(self, device: DeviceView) -> Trace:
        """The same evaluation with its reasons. Never raises EvaluationError."""
        record: Record = {}
        frame = self._frame.copy()
        frame[0], frame[RECORD] = device.variables, record
        run = Compiler(self._checked, _observed).build(self._checked.tree)
        result: bool | None = None
        failure: EvaluationError | None = None
        try:
            value = run(frame)
            check_budget(frame)
            result = _as_bool(value)
        except EvaluationError as error:
            failure = error
        found = () if result else findings(self.text, self._checked.tree, record, failure)
        return Trace(result, None if failure is None else failure.message, found)

    def __repr__(self) -> str:
        return f"Program({self.text!r})"


@lru_cache(maxsize=_KEPT)
def compile_selector(text: str) -> Program:
    """Compiles a device selector.

    Raises CompileError with the position of a mistake, UnsupportedExpressionError for what
    Kubernetes can do and Dragoon cannot.
    """
    source = Source(text)
    return Program(check(source, parse(text)))


def _as_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise ExpressionFailedError(f"the result is of type {type_name(value)}, not bool")
    return value


def _observed(node: Any, run: Evaluate) -> Evaluate:
    """The closure of a node that also writes its outcome into the frame's record."""

    def observed(frame: Frame) -> Any:
        try:
            value = run(frame)
        except EvaluationError as error:
            frame[RECORD][node] = Outcome(None, error)
            raise
        frame[RECORD][node] = Outcome(value, None)
        return value

    return observed
