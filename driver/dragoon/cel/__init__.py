"""CEL as kube-scheduler evaluates device selectors, with a trace of why an expression was false.

May import dragoon.errors, dragoon.quantity, dragoon.semver and google-re2. Pure: no I/O, no clock.

Invariants: an expression that this package cannot evaluate exactly is refused at compile time
(UnsupportedExpressionError), never false; a failure (EvaluationError) is never false either;
every evaluation ends at a cost of 1,000,000, counted as kube-scheduler counts it.

Compiled is the environment of Kubernetes 1.37 for stored expressions, which is what the scheduler
uses. Program.estimated_cost is what the API server refuses new ones by. Refused are
types as values, the authorizer, time zones by name or offset, message objects, and what nests too
deeply for Python. Known to differ: the wording of what `validate()` of a format finds, the order of
equal keys in a sort of more than 12 elements, and SizeLimitError for values that double until they
fill the memory.
"""

from dragoon.cel.device import DeviceView, device_view
from dragoon.cel.errors import (
    CompileError,
    CostLimitError,
    EvaluationError,
    SizeLimitError,
    UnsupportedExpressionError,
)
from dragoon.cel.frame import COST_LIMIT
from dragoon.cel.program import Program, compile_selector
from dragoon.cel.reads import Read
from dragoon.cel.trace import Finding, Trace

__all__ = [
    "COST_LIMIT",
    "CompileError",
    "CostLimitError",
    "DeviceView",
    "EvaluationError",
    "Finding",
    "Program",
    "Read",
    "SizeLimitError",
    "Trace",
    "UnsupportedExpressionError",
    "compile_selector",
    "device_view",
]
