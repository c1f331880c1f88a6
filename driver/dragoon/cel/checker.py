"""Types of every part of an expression, or the mistake in it, by the rules of cel-go 0.29.

What it finds out about calls decides what runs: the function a call means (`sets.contains` is no
method of `sets`) and the signatures that its types admit.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from dragoon.cel.checked import DEVICE_NAME, Callee, Checked, dotted
from dragoon.cel.errors import Source
from dragoon.cel.format_calls import check_format
from dragoon.cel.library import FUNCTIONS, UNSUPPORTED
from dragoon.cel.matching import Matching
from dragoon.cel.members import Members
from dragoon.cel.signatures import FIELDS, LITERALS, TYPE_NAMES
from dragoon.cel.syntax import (
    Bind,
    Call,
    Conditional,
    Ident,
    Index,
    ListOf,
    Literal,
    Logical,
    MapOf,
    Node,
    OptionalMap,
    Quantifier,
    Select,
    SortBy,
    Transform,
)
from dragoon.cel.types import (
    BOOL,
    DEVICE,
    DYN,
    INT,
    Type,
    Unifier,
    is_open,
    is_parameter,
    list_of,
    map_of,
    optional_of,
    unwrapped,
)


def check(source: Source, tree: Node) -> Checked:
    """Checks an expression.

    Raises CompileError for a mistake and for a result that cannot be a bool,
    UnsupportedExpressionError for a function that Dragoon does not have.
    """
    checker = _Checker(source)
    result = checker.resolved(checker.check(tree), final=True)
    checker.members.check_homogeneous()
    types = {node: checker.resolved(type_, final=True) for node, type_ in checker.types.items()}
    checked = Checked(source, tree, checker.callees, types)
    for node, callee in checker.callees.items():
        if isinstance(node, Call) and callee.name == "format":
            check_format(source, node, types)
    if result not in {BOOL, DYN}:
        raise source.wrong(tree.start, f"must be a bool, but is of type {result}")
    return checked


class _Checker:
    """Walks one tree. Scopes are a stack of variables, innermost last."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._types = Unifier()
        self._matching = Matching(source, self._types)
        self.members = Members(source, self._types)
        self._scope: list[tuple[str, Type]] = [(DEVICE_NAME, DEVICE)]
        self.callees: dict[Node, Callee] = {}
        self.types: dict[Node, Type] = {}
        # What `format` is given may be of mixed types, however deep.
        self._in_format = 0

    def resolved(self, type_: Type, *, final: bool = False) -> Type:
        return self._types.resolved(type_, final=final)

    def check(self, node: Node) -> Type:
        """The type of a node; it may still hold type parameters."""
        type_ = _RULES[type(node)](self, node)
        self.types[node] = type_
        return type_

    def literal(self, node: Literal) -> Type:
        return LITERALS[type(node.value)]

    def variable(self, node: Ident) -> Type:
        for known, type_ in reversed(self._scope):
            if known == node.name:
                return type_
        if node.name in TYPE_NAMES:
            raise self._source.unsupported(node.start, "Dragoon does not compute with types")
        raise self._source.wrong(node.start, f"undeclared reference to {node.name!r}")

    def logical(self, node: Logical) -> Type:
        for operand in node.operands:
            self._expect(operand, BOOL)
        return BOOL

    def quantifier(self, node: Quantifier) -> Type:
        types = self._iteration(node.range, len(node.variables))
        self._scoped(node.variables, types, node.body, BOOL)
        return BOOL

    def bind(self, node: Bind) -> Type:
        return self._scoped((node.name,), (self.check(node.value),), node.body)

    def _expect(self, node: Node, wanted: Type) -> None:
        found = self.check(node)
        if not self._types.assignable((found,), (wanted,)):
            raise self._source.wrong(
                node.start, f"expected type {wanted}, found {self.resolved(found, final=True)}"
            )

    def _scoped(
        self,
        names: tuple[str, ...],
        types: tuple[Type, ...],
        body: Node,
        wanted: Type | None = None,
    ) -> Type:
        """The type of a body in which these names are variables."""
        self._scope.extend(zip(names, types, strict=True))
        if wanted is None:
            result = self.check(body)
        else:
            self._expect(body, wanted)
            result = wanted
        del self._scope[-len(names) :]
        return result

    def select(self, node: Select) -> Type:
        operand = self.resolved(self.check(node.operand))
        target, optional = unwrapped(operand)
        if target.kind == "map":
            result = target.params[1]
        elif target == DEVICE:
            if node.field not in FIELDS:
                raise self._source.wrong(
                    node.start,
                    f"undefined field {node.field!r}, a device has {', '.join(FIELDS)}",
                )
            result = FIELDS[node.field]
        elif is_parameter(target) or is_open(target):
            self._types.assignable((DYN,), (target,))
            result = DYN
        else:
            raise self._source.wrong(
                node.start, f"type {self.resolved(target, final=True)} has no fields"
            )
        if node.test:
            return BOOL
        return optional_of(result) if optional or node.optional else result

    def index(self, node: Index) -> Type:
        return self._matching.index(node, (self.check(node.operand), self.check(node.index)))

    def call(self, node: Call) -> Type:
        self._in_format += node.function == "format"
        result = self._call(node)
        self._in_format -= node.function == "format"
        return result

    def _call(self, node: Call) -> Type:
        types = tuple(self.check(arg) for arg in node.args)
        name = node.function
        if node.target is None:
            if name in {"==", "!="}:
                return self._matching.equality(node, types)
            if name == "in":
                return self._matching.membership(node, types)
            return self._resolve(node, name, node.args, types)
        qualified = dotted(node.target)
        if qualified is not None:
            full = f"{qualified}.{name}"
            if full in FUNCTIONS or full in UNSUPPORTED:
                return self._resolve(node, full, node.args, types)
        types = (self.check(node.target), *types)
        return self._resolve(node, name, node.children(), types, member=True)

    def _resolve(
        self,
        node: Call,
        name: str,
        args: tuple[Node, ...],
        given: tuple[Type, ...],
        *,
        member: bool = False,
    ) -> Type:
        """The result of a call; notes which signatures fit."""
        result, fitting = self._matching.function(node, name, given, member=member)
        self.callees[node] = Callee(name, fitting, args)
        return result

    def conditional(self, node: Conditional) -> Type:
        given = (self.check(node.test), self.check(node.yes), self.check(node.no))
        return self._matching.conditional(node, given)

    def list_of_items(self, node: ListOf) -> Type:
        members = [
            (item.value, self._member_type(item.value, optional=item.optional))
            for item in node.items
        ]
        return list_of(self._joined(members))

    def map_of_entries(self, node: MapOf) -> Type:
        keys = [(entry.key, self.check(entry.key)) for entry in node.entries]
        values = [
            (entry.value, self._member_type(entry.value, optional=entry.optional))
            for entry in node.entries
        ]
        return map_of(self._joined(keys), self._joined(values))

    def _member_type(self, node: Node, *, optional: bool) -> Type:
        type_ = self.resolved(self.check(node))
        if not optional:
            return type_
        inner, is_optional = unwrapped(type_)
        if not is_optional and not is_open(type_):
            raise self._source.wrong(node.start, f"expected an optional value, found {type_}")
        return inner

    def _joined(self, members: Sequence[tuple[Node, Type]]) -> Type:
        return self.members.joined(members, may_differ=self._in_format > 0)

    def _iteration(self, over: Node, variables: int, known: Type | None = None) -> tuple[Type, ...]:
        """The types of the variables of a macro that walks over a list or a map."""
        range_ = self.resolved(self.check(over)) if known is None else known
        if range_.kind == "list":
            return (INT, range_.params[0]) if variables == 2 else range_.params
        if range_.kind == "map":
            return range_.params[:variables]
        if is_open(range_) or is_parameter(range_):
            self._types.assignable((DYN,), (range_,))
            return (DYN,) * variables
        raise self._source.wrong(
            over.start, f"expected a list or a map, found {self.resolved(range_, final=True)}"
        )

    def transform(self, node: Transform) -> Type:
        types = self._iteration(node.range, len(node.variables))
        if node.condition is not None:
            self._scoped(node.variables, types, node.condition, BOOL)
        step = self._scoped(node.variables, types, node.step)
        if node.result == "list":
            return list_of(step)
        if node.result == "map":
            return map_of(types[0], step)
        merged = map_of(self._types.fresh(), self._types.fresh())
        if not self._types.assignable((step,), (merged,)):
            raise self._source.wrong(
                node.step.start, f"expected a map, found {self.resolved(step, final=True)}"
            )
        return self.resolved(merged)

    def sort_by(self, node: SortBy) -> Type:
        items = self.resolved(self.check(node.range))
        types = self._iteration(node.range, 1, items)
        key = self._scoped((node.name,), types, node.key)
        return self._matching.sorting(node, items, list_of(key))

    def optional_map(self, node: OptionalMap) -> Type:
        inner = self._types.fresh()
        self._expect(node.target, optional_of(inner))
        result = self._scoped((node.name,), (self.resolved(inner),), node.body)
        if not node.flat:
            return optional_of(result)
        flat = optional_of(self._types.fresh())
        if not self._types.assignable((result,), (flat,)):
            raise self._source.wrong(
                node.body.start,
                f"expected an optional value, found {self.resolved(result, final=True)}",
            )
        return self.resolved(flat)


_RULES: Final[dict[type[Node], Callable[[_Checker, Any], Type]]] = {
    Literal: _Checker.literal,
    Ident: _Checker.variable,
    Select: _Checker.select,
    Index: _Checker.index,
    Call: _Checker.call,
    Logical: _Checker.logical,
    Conditional: _Checker.conditional,
    ListOf: _Checker.list_of_items,
    MapOf: _Checker.map_of_entries,
    Quantifier: _Checker.quantifier,
    Transform: _Checker.transform,
    SortBy: _Checker.sort_by,
    Bind: _Checker.bind,
    OptionalMap: _Checker.optional_map,
}
