"""What is known of an expression before it is evaluated: constants, and calls on them.

To cel-go fewer parts are constants than have a known value: `quantity("1Gi")` is worked out once
here, and charged for each time all the same.
"""

from typing import Any, Final

from dragoon.cel import calls, costs
from dragoon.cel.checked import Callee
from dragoon.cel.errors import EvaluationError, ExpressionFailedError, Source
from dragoon.cel.frame import BUDGET, Evaluate, Frame
from dragoon.cel.syntax import Call, ListOf, Literal, MapOf, Node

_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint")
)
"""Functions that cel-go evaluates at compile time when their argument is constant."""
_FOLDED: Final = _CONVERSIONS | {"quantity", "semver"}
"""Those, and the ones worth it. A failure of the latter stays one of the evaluation."""


class Known:
    """The known parts of one expression. Mutable: grows while it is compiled, from the leaves up."""

    def __init__(self, source: Source) -> None:
        self._source = source
        # What cel-go takes for constants.
        self._constants: set[Node] = set()
        self._values: dict[Node, calls.Constant] = {}

    def is_constant(self, *nodes: Node) -> bool:
        """Whether all of these are constants to cel-go."""
        return self._constants.issuperset(nodes)

    def value(self, node: Node) -> calls.Constant | None:
        """The value of a part and what reading it costs, None where it is not known."""
        return self._values.get(node)

    def literal(self, node: Literal) -> Evaluate:
        """The closure of a literal."""
        return self.constant(node, node.value)

    def constant(self, node: Node, value: Any) -> Evaluate:
        """The closure of a part that cel-go takes for a constant."""
        self._constants.add(node)
        return self._known(node, calls.Constant(value))

    def aggregate(self, node: ListOf | MapOf, run: Evaluate) -> Evaluate:
        """The closure of a list or map; one of constants is made once and costs nothing."""
        if not self.is_constant(*node.children()):
            return run
        self._constants.add(node)
        try:
            value = calls.constant(run)
        except EvaluationError:
            return run
        return self._known(node, calls.Constant(value))

    def call(self, node: Call, callee: Callee, run: Evaluate) -> Evaluate:
        """The closure of a call; one on constants is computed once where that is worth it.

        cel-go charges for it each time, unless it converts. Raises CompileError for a conversion
        that fails.
        """
        if callee.name not in _FOLDED or not self.is_constant(*callee.args):
            return run
        try:
            value = calls.constant(run)
        except ExpressionFailedError as error:
            if callee.name in _CONVERSIONS:
                raise self._source.wrong(node.start, error.message) from error
            return run
        if callee.name in _CONVERSIONS:
            return self.constant(node, value)
        args = [self._values[arg].value for arg in callee.args]
        price = costs.cost_of(callee)
        return self._known(
            node, calls.Constant(value, price if isinstance(price, int) else price(*args))
        )

    def _known(self, node: Node, constant: calls.Constant) -> Evaluate:
        self._values[node] = constant
        value, cost = constant.value, constant.cost
        if not cost:
            return lambda _: value

        def run(frame: Frame) -> Any:
            frame[BUDGET] -= cost
            return value

        return run
