"""Macros: calls that are syntax (`has`, `exists`, `map`, `cel.bind`), turned into nodes.

Source of the list: cel-go 0.29 with the libraries of k8s.io/apiserver 0.37.
"""

from collections.abc import Callable
from typing import Final

from dragoon.cel.errors import Source
from dragoon.cel.syntax import (
    Bind,
    Call,
    Ident,
    Literal,
    MapOf,
    Node,
    OptionalMap,
    Quantifier,
    Select,
    SortBy,
    Transform,
)

_Macro = Callable[[Source, Call, Node], Node]


def expanded(source: Source, call: Call) -> Node:
    """The node that a call means: itself, unless it is a macro.

    Raises CompileError where a macro's arguments do not fit.
    """
    count = len(call.args)
    if call.target is None:
        return _has(source, call) if (call.function, count) == ("has", 1) else call
    if (call.function, count) == ("bind", 3):
        return _bind(source, call)
    macro = _MACROS.get((call.function, count))
    return call if macro is None else macro(source, call, call.target)


def _has(source: Source, call: Call) -> Node:
    field = call.args[0]
    if not isinstance(field, Select) or field.optional or field.test:
        raise source.wrong(field.start, "has() needs a field, such as has(a.b)")
    return Select(call.start, call.end, field.operand, field.field, test=True)


def _bind(source: Source, call: Call) -> Node:
    name, value, body = call.args
    if not isinstance(call.target, Ident) or call.target.name != "cel":
        return call
    return Bind(call.start, call.end, _names(source, (name,))[0], value, body)


def _names(source: Source, arguments: tuple[Node, ...]) -> tuple[str, ...]:
    """The variable names that a macro introduces."""
    names: list[str] = []
    for argument in arguments:
        if not isinstance(argument, Ident):
            raise source.wrong(argument.start, "a macro's variable must be a simple name")
        if argument.name in names:
            raise source.wrong(argument.start, f"duplicate variable name: {argument.name}")
        names.append(argument.name)
    return tuple(names)


def _quantifier(macro: str, variables: int) -> _Macro:
    def expand(source: Source, call: Call, over: Node) -> Node:
        names = _names(source, call.args[:variables])
        return Quantifier(call.start, call.end, macro, over, names, call.args[-1])

    return expand


def _transform(result: str, variables: int, *, condition: bool) -> _Macro:
    def expand(source: Source, call: Call, over: Node) -> Node:
        names = _names(source, call.args[:variables])
        test = call.args[variables] if condition else None
        return Transform(call.start, call.end, result, over, names, test, call.args[-1])

    return expand


def _filter(source: Source, call: Call, over: Node) -> Node:
    name, test = call.args
    names = _names(source, (name,))
    return Transform(call.start, call.end, "list", over, names, test, name)


def _optional(*, flat: bool) -> _Macro:
    def expand(source: Source, call: Call, target: Node) -> Node:
        (name,) = _names(source, call.args[:1])
        return OptionalMap(call.start, call.end, target, name, call.args[1], flat)

    return expand


def _sort_by(source: Source, call: Call, over: Node) -> Node:
    if isinstance(over, Literal | MapOf):
        raise source.wrong(over.start, "sortBy() needs a list, not a constant or a map")
    (name,) = _names(source, call.args[:1])
    return SortBy(call.start, call.end, over, name, call.args[1])


_MACROS: Final[dict[tuple[str, int], _Macro]] = {
    ("all", 2): _quantifier("all", 1),
    ("all", 3): _quantifier("all", 2),
    ("exists", 2): _quantifier("exists", 1),
    ("exists", 3): _quantifier("exists", 2),
    ("exists_one", 2): _quantifier("existsOne", 1),
    ("exists_one", 3): _quantifier("existsOne", 2),
    ("existsOne", 3): _quantifier("existsOne", 2),
    ("map", 2): _transform("list", 1, condition=False),
    ("map", 3): _transform("list", 1, condition=True),
    ("filter", 2): _filter,
    ("transformList", 3): _transform("list", 2, condition=False),
    ("transformList", 4): _transform("list", 2, condition=True),
    ("transformMap", 3): _transform("map", 2, condition=False),
    ("transformMap", 4): _transform("map", 2, condition=True),
    ("transformMapEntry", 3): _transform("entries", 2, condition=False),
    ("transformMapEntry", 4): _transform("entries", 2, condition=True),
    ("optMap", 2): _optional(flat=False),
    ("optFlatMap", 2): _optional(flat=True),
    ("sortBy", 2): _sort_by,
}
