"""The tree of an expression. Macros have nodes of their own, so that a trace can name them.

Nodes compare by identity: the checker and the trace keep what they know about a node beside it.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """start and end: the part of the text this node was written as."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    """A constant; the runtime value says its type."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Ident(Node):
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select(Node):
    """`operand.field`, `operand.?field` (optional) or `has(operand.field)` (test)."""

    operand: Node
    field: str
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Index(Node):
    """`operand[index]` or `operand[?index]`."""

    operand: Node
    index: Node
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    """`function(args)`, `target.function(args)`, or an operator under its symbol."""

    function: str
    args: tuple[Node, ...]
    target: Node | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Logical(Node):
    """`a && b && c` or `a || b || c`; all is True for `&&`."""

    operands: tuple[Node, ...]
    all: bool


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Node):
    """`test ? yes : no`."""

    test: Node
    yes: Node
    no: Node


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One element of a list; optional with `?` before it."""

    value: Node
    optional: bool


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One entry of a map; optional with `?` before its key."""

    key: Node
    value: Node
    optional: bool


@dataclass(frozen=True, slots=True, eq=False)
class ListOf(Node):
    """`[a, ?b]`."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MapOf(Node):
    """`{a: b, ?c: d}`."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Quantifier(Node):
    """`range.all(x, body)`, `exists`, `existsOne`, each also with two variables.

    macro is `all`, `exists` or `existsOne`.
    """

    macro: str
    range: Node
    variables: tuple[str, ...]
    body: Node


@dataclass(frozen=True, slots=True, eq=False)
class Transform(Node):
    """`map`, `filter`, `transformList`, `transformMap`, `transformMapEntry`.

    result says what is collected: `list`, `map` (the first variable is the key) or `entries`
    (each step gives a map). condition: which elements take part.
    """

    result: str
    range: Node
    variables: tuple[str, ...]
    condition: Node | None
    step: Node


@dataclass(frozen=True, slots=True, eq=False)
class Bind(Node):
    """`cel.bind(name, value, body)`."""

    name: str
    value: Node
    body: Node


@dataclass(frozen=True, slots=True, eq=False)
class OptionalMap(Node):
    """`target.optMap(name, body)`; flat for `optFlatMap`."""

    target: Node
    name: str
    body: Node
    flat: bool


def children(node: Node) -> tuple[Node, ...]:
    """The direct parts of a node, in the order they are written."""
    match node:
        case Select(operand=operand):
            return (operand,)
        case Index(operand=operand, index=index):
            return operand, index
        case Call(target=target, args=args):
            return args if target is None else (target, *args)
        case Logical(operands=operands):
            return operands
        case Conditional(test=test, yes=yes, no=no):
            return test, yes, no
        case ListOf(items=items):
            return tuple(item.value for item in items)
        case MapOf(entries=entries):
            return tuple(part for entry in entries for part in (entry.key, entry.value))
        case Quantifier(range=over, body=body):
            return over, body
        case Transform(range=over, condition=condition, step=step):
            return (over, step) if condition is None else (over, condition, step)
        case Bind(value=value, body=body):
            return value, body
        case OptionalMap(target=target, body=body):
            return target, body
        case _:
            return ()
