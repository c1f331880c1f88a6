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

    def children(self) -> tuple["Node", ...]:
        """The direct parts, in the order they are written."""
        return ()


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

    def children(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True, eq=False)
class Index(Node):
    """`operand[index]` or `operand[?index]`."""

    operand: Node
    index: Node
    optional: bool = False

    def children(self) -> tuple[Node, ...]:
        return self.operand, self.index


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    """`function(args)`, `target.function(args)`, or an operator under its symbol."""

    function: str
    args: tuple[Node, ...]
    target: Node | None = None

    def children(self) -> tuple[Node, ...]:
        return self.args if self.target is None else (self.target, *self.args)


@dataclass(frozen=True, slots=True, eq=False)
class Logical(Node):
    """`a && b && c` or `a || b || c`; all is True for `&&`."""

    operands: tuple[Node, ...]
    all: bool

    def children(self) -> tuple[Node, ...]:
        return self.operands


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Node):
    """`test ? yes : no`."""

    test: Node
    yes: Node
    no: Node

    def children(self) -> tuple[Node, ...]:
        return self.test, self.yes, self.no


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

    def children(self) -> tuple[Node, ...]:
        return tuple(item.value for item in self.items)


@dataclass(frozen=True, slots=True, eq=False)
class MapOf(Node):
    """`{a: b, ?c: d}`."""

    entries: tuple[Entry, ...]

    def children(self) -> tuple[Node, ...]:
        return tuple(part for entry in self.entries for part in (entry.key, entry.value))


@dataclass(frozen=True, slots=True, eq=False)
class Quantifier(Node):
    """`range.all(x, body)`, `exists`, `existsOne`, each also with two variables.

    macro is `all`, `exists` or `existsOne`.
    """

    macro: str
    range: Node
    variables: tuple[str, ...]
    body: Node

    def children(self) -> tuple[Node, ...]:
        return self.range, self.body


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

    def children(self) -> tuple[Node, ...]:
        condition = () if self.condition is None else (self.condition,)
        return self.range, *condition, self.step


@dataclass(frozen=True, slots=True, eq=False)
class SortBy(Node):
    """`range.sortBy(name, key)`."""

    range: Node
    name: str
    key: Node

    def children(self) -> tuple[Node, ...]:
        return self.range, self.key


@dataclass(frozen=True, slots=True, eq=False)
class Bind(Node):
    """`cel.bind(name, value, body)`."""

    name: str
    value: Node
    body: Node

    def children(self) -> tuple[Node, ...]:
        return self.value, self.body


@dataclass(frozen=True, slots=True, eq=False)
class OptionalMap(Node):
    """`target.optMap(name, body)`; flat for `optFlatMap`."""

    target: Node
    name: str
    body: Node
    flat: bool

    def children(self) -> tuple[Node, ...]:
        return self.target, self.body
