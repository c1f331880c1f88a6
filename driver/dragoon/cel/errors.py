"""What can go wrong with an expression: it does not compile, we do not support it, it fails."""

from dataclasses import dataclass

from dragoon.errors import DragoonError, InvalidInputError, UnsupportedError


class CompileError(InvalidInputError):
    """The expression is wrong: kube-scheduler and the API server refuse it too.

    offset: where, in characters from the start of the expression.
    """

    code = "CelCompile"
    offset: int = 0


class UnsupportedExpressionError(UnsupportedError):
    """The expression may be right, but Dragoon does not evaluate it; it is never `false`."""

    code = "CelUnsupported"
    offset: int = 0


class EvaluationError(DragoonError):
    """The expression failed on one device. kube-scheduler gives up the pod's whole attempt."""

    code = "CelEvaluation"


class ExpressionFailedError(EvaluationError):
    """A step failed, such as a missing key. `&&`, `||` and the quantifiers may absorb it."""


class CostLimitError(EvaluationError):
    """The evaluation cost more than is allowed. Nothing absorbs it."""

    code = "CelCostLimit"


class SizeLimitError(EvaluationError):
    """A value would be larger than Dragoon makes one; Kubernetes might. Nothing absorbs it."""

    code = "CelSizeLimit"


@dataclass(frozen=True, slots=True)
class Source:
    """The text of an expression, which every message about it quotes by position."""

    text: str

    def wrong(self, offset: int, message: str) -> CompileError:
        """The error for a mistake at this offset."""
        error = CompileError(f"{self._place(offset)}: {message}")
        error.offset = offset
        return error

    def unsupported(self, offset: int, message: str) -> UnsupportedExpressionError:
        """The error for something legal at this offset that Dragoon does not do."""
        error = UnsupportedExpressionError(f"{self._place(offset)}: {message}")
        error.offset = offset
        return error

    def _place(self, offset: int) -> str:
        before = self.text[:offset]
        line = before.count("\n") + 1
        column = offset - (before.rfind("\n") + 1) + 1
        return f"CEL expression, line {line}, column {column}"
