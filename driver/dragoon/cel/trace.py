"""Why an expression was false or failed: the smallest parts that decided it, with their values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dragoon.cel.errors import EvaluationError
from dragoon.cel.syntax import (
    Bind,
    Conditional,
    Ident,
    Index,
    Logical,
    Node,
    Select,
)
from dragoon.cel.values import from_key, show

_LONGEST: Final = 120
"""Characters of a value in a message."""


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
    for child in node.children():
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
    values = {
        text[read.start : read.end]: _short(record[read].value)
        for child in node.children()
        for read in _reads(child)
        if read in record and record[read].failure is None
    }
    return Finding(text[node.start : node.end], node.start, failure, tuple(values.items()))


def _reads(node: Node) -> Iterator[Node]:
    """The parts that read the device or a variable, such as `device.attributes["d"].name`."""
    if isinstance(node, Select | Index | Ident):
        yield node
        return
    for child in node.children():
        yield from _reads(child)


def _short(value: Any) -> str:
    """A value for a message; of a map only its keys, long text cut."""
    if isinstance(value, dict):
        return f"a map of {', '.join(map(str, map(from_key, value))) or 'nothing'}"
    text = show(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
