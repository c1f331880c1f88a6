"""Why an expression was false or failed: the smallest parts that decided it, with their values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dragoon.cel.errors import EvaluationError
from dragoon.cel.syntax import Bind, Conditional, Literal, Logical, Node, children
from dragoon.cel.values import show


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one node gave: a value, or a failure."""

    value: Any
    failure: EvaluationError | None


Record = dict[Node, Outcome]
"""The last outcome of every node that was evaluated."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of the expression that decided the result.

    text: the part as it is written. offset: where it begins. failure: why it failed, None where
    it was false. values: what the parts it is made of were, as (text, value in CEL's notation).
    """

    text: str
    offset: int
    failure: str | None
    values: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        if self.failure is not None:
            return f"{self.text} failed: {self.failure}"
        values = ", ".join(f"{text} is {value}" for text, value in self.values)
        return f"{self.text} is false" + (f": {values}" if values else "")


@dataclass(frozen=True, slots=True)
class Trace:
    """result: None where the evaluation failed with `failure`. findings: empty for true."""

    result: bool | None
    failure: str | None
    findings: tuple[Finding, ...]


def findings(
    text: str, tree: Node, record: Record, failure: EvaluationError | None
) -> tuple[Finding, ...]:
    """The parts that made the tree false, or made it fail."""
    if failure is not None:
        node = _origin(tree, record, failure)
        return (_finding(text, node, record, failure.message),)
    return tuple(_finding(text, node, record, None) for node in _deciders(tree, record))


def _origin(node: Node, record: Record, failure: EvaluationError) -> Node:
    """The innermost node that ended with this very failure."""
    for child in children(node):
        outcome = record.get(child)
        if outcome is not None and outcome.failure is failure:
            return _origin(child, record, failure)
    return node


def _deciders(node: Node, record: Record) -> Iterator[Node]:
    """The nodes that made this one false."""
    match node:
        case Logical(operands=operands, all=True):
            for operand in operands:
                outcome = record.get(operand)
                if outcome is not None and outcome.value is False:
                    yield from _deciders(operand, record)
                    return
            yield node
        case Logical(operands=operands):
            for operand in operands:
                yield from _deciders(operand, record)
        case Conditional(test=test, yes=yes, no=no):
            yield from _deciders(yes if record[test].value is True else no, record)
        case Bind(body=body):
            yield from _deciders(body, record)
        case _:
            yield node


def _finding(text: str, node: Node, record: Record, failure: str | None) -> Finding:
    values = tuple(
        (text[child.start : child.end], show(record[child].value))
        for child in children(node)
        if not isinstance(child, Literal) and child in record and record[child].failure is None
    )
    return Finding(text[node.start : node.end], node.start, failure, values)
