"""Types of every part of an expression, or the mistake in it, by the rules of cel-go 0.29.

The checker decides nothing at run time, with two exceptions that it reports: which calls are
calls of a namespaced function (`sets.contains`), and the type of every node.
"""

from dataclasses import dataclass, field
from typing import Final

from dragoon.cel.errors import Source
from dragoon.cel.library import FUNCTIONS, UNSUPPORTED
from dragoon.cel.library.standard import pattern
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
    Transform,
)
from dragoon.cel.types import (
    BOOL,
    BYTES,
    DEVICE,
    DOUBLE,
    DYN,
    ERROR,
    FIELDS,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    Unifier,
    is_open,
    is_parameter,
    list_of,
    map_of,
    optional_of,
    parameter,
    unwrapped,
)
from dragoon.cel.values import ExpressionFailedError, UInt

DEVICE_NAME: Final = "device"
"""The only variable of a device selector."""

_LITERALS: Final[dict[type, Type]] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}
_K: Final = parameter("K")
_V: Final = parameter("V")
_INDEX: Final[tuple[tuple[Type, Type, Type], ...]] = (
    (list_of(_V), INT, _V),
    (map_of(_K, _V), _K, _V),
    (optional_of(list_of(_V)), INT, optional_of(_V)),
    (optional_of(map_of(_K, _V)), _K, optional_of(_V)),
)
"""What `[]` takes and gives: operand, index, result. With `?` every result is optional."""
_IN: Final = (list_of(_K), map_of(_K, _V))


@dataclass(slots=True)
class Checked:
    """What is known of an expression. names: the calls of namespaced functions, by full name."""

    tree: Node
    result: Type
    names: dict[Node, str] = field(default_factory=dict)


def check(source: Source, tree: Node) -> Checked:
    """Checks an expression.

    Raises CompileError for a mistake and for a result that cannot be a bool,
    UnsupportedExpressionError for a function that Dragoon does not have.
    """
    checker = _Checker(source)
    result = checker.resolved(checker.check(tree), final=True)
    if result not in {BOOL, DYN}:
        raise source.wrong(tree.start, f"must be a bool, but is of type {result}")
    return Checked(tree, result, checker.names)


class _Checker:
    """Walks one tree. Scopes are a stack of variables, innermost last."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._types = Unifier()
        self._scope: list[tuple[str, Type]] = [(DEVICE_NAME, DEVICE)]
        self.names: dict[Node, str] = {}

    def resolved(self, type_: Type, *, final: bool = False) -> Type:
        return self._types.resolved(type_, final=final)

    def check(self, node: Node) -> Type:
        """The type of a node; it may still hold type parameters."""
        match node:
            case Literal(value=value):
                return _LITERALS[type(value)]
            case Ident(name=name):
                return self._variable(node, name)
            case Select():
                return self._select(node)
            case Index():
                return self._index(node)
            case Call():
                return self._call(node)
            case Logical(operands=operands):
                for operand in operands:
                    self._expect(operand, BOOL)
                return BOOL
            case Conditional():
                return self._conditional(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Quantifier():
                with_types = self._iteration(node.range, len(node.variables))
                self._scoped(node.variables, with_types, node.body, BOOL)
                return BOOL
            case Transform():
                return self._transform(node)
            case Bind(name=name, value=value, body=body):
                return self._scoped((name,), (self.check(value),), body)
            case OptionalMap():
                return self._optional_map(node)
            case _:
                raise AssertionError(f"unknown node {node}")

    def _variable(self, node: Node, name: str) -> Type:
        for known, type_ in reversed(self._scope):
            if known == name:
                return type_
        raise self._source.wrong(node.start, f"undeclared reference to {name!r}")

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

    def _select(self, node: Select) -> Type:
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

    def _index(self, node: Index) -> Type:
        given = (self.check(node.operand), self.check(node.index))
        found: Type | None = None
        for signature in _INDEX:
            operand, index, result = self._types.instance(signature)
            if self._types.assignable(given, (operand, index)):
                result = self.resolved(result)
                if node.optional:
                    result = optional_of(unwrapped(result)[0])
                found = result if found in {None, result} else DYN
        if found is None:
            raise self._no_overload(node, "[]", given)
        return found

    def _call(self, node: Call) -> Type:
        args = tuple(self.check(arg) for arg in node.args)
        name = node.function
        if node.target is None:
            if name in {"==", "!="}:
                return self._equality(node, args)
            if name == "in":
                return self._membership(node, args)
            return self._overload(node, name, args, member=False)
        qualified = _dotted(node.target)
        if qualified is not None:
            full = f"{qualified}.{name}"
            if full in FUNCTIONS or full in UNSUPPORTED:
                self.names[node] = full
                return self._overload(node, full, args, member=False)
        return self._overload(node, name, (self.check(node.target), *args), member=True)

    def _overload(self, node: Call, name: str, given: tuple[Type, ...], *, member: bool) -> Type:
        if name in UNSUPPORTED:
            raise self._source.unsupported(node.start, f"Dragoon does not evaluate {name}()")
        overloads = FUNCTIONS.get(name)
        if overloads is None:
            raise self._source.wrong(node.start, f"undeclared reference to {name!r}")
        found: Type | None = None
        for overload in overloads:
            if overload.member != member:
                continue
            *params, result = self._types.instance((*overload.params, overload.result))
            if self._types.assignable(given, params):
                result = self.resolved(result)
                found = result if found in {None, result} else DYN
        if found is None:
            raise self._no_overload(node, name, given)
        self._check_pattern(node, name)
        return found

    def _check_pattern(self, node: Call, name: str) -> None:
        """A constant regular expression must be valid: the API server says so at creation."""
        last = node.args[-1] if node.args else None
        if name == "matches" and isinstance(last, Literal) and isinstance(last.value, str):
            try:
                pattern(last.value)
            except ExpressionFailedError as error:
                raise self._source.wrong(last.start, error.message) from error

    def _no_overload(self, node: Node, name: str, given: tuple[Type, ...]) -> Exception:
        types = ", ".join(str(self.resolved(type_, final=True)) for type_ in given)
        return self._source.wrong(node.start, f"no matching overload for {name!r} on ({types})")

    def _equality(self, node: Call, given: tuple[Type, ...]) -> Type:
        fresh = self._types.fresh()
        if not self._types.assignable(given, (fresh, fresh)):
            raise self._no_overload(node, node.function, given)
        return BOOL

    def _membership(self, node: Call, given: tuple[Type, ...]) -> Type:
        fits = False
        for container in _IN:
            fits |= self._types.assignable(given, self._types.instance((_K, container)))
        if not fits:
            raise self._no_overload(node, "in", given)
        return BOOL

    def _conditional(self, node: Conditional) -> Type:
        given = (self.check(node.test), self.check(node.yes), self.check(node.no))
        result = self._types.fresh()
        if not self._types.assignable(given, (BOOL, result, result)):
            raise self._no_overload(node, "?:", given)
        return self.resolved(result)

    def _list(self, node: ListOf) -> Type:
        element: Type | None = None
        for item in node.items:
            type_ = self._member_type(item.value, optional=item.optional)
            element = self._joined(item.value, element, type_)
        return list_of(element if element is not None else self._types.fresh())

    def _map(self, node: MapOf) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._joined(entry.key, key, self.check(entry.key))
            type_ = self._member_type(entry.value, optional=entry.optional)
            value = self._joined(entry.value, value, type_)
        if key is None or value is None:
            return map_of(self._types.fresh(), self._types.fresh())
        return map_of(key, value)

    def _member_type(self, node: Node, *, optional: bool) -> Type:
        type_ = self.resolved(self.check(node))
        if not optional:
            return type_
        inner, is_optional = unwrapped(type_)
        if not is_optional and not is_open(type_):
            raise self._source.wrong(node.start, f"expected an optional value, found {type_}")
        return inner

    def _joined(self, node: Node, before: Type | None, type_: Type) -> Type:
        if before is None:
            return type_
        joined = self._types.joined(before, type_)
        if joined is None:
            raise self._source.wrong(
                node.start,
                f"expected type {self.resolved(before, final=True)} as before it, "
                f"found {self.resolved(type_, final=True)}",
            )
        return joined

    def _iteration(self, over: Node, variables: int) -> tuple[Type, ...]:
        """The types of the variables of a macro that walks over a list or a map."""
        range_ = self.resolved(self.check(over))
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

    def _transform(self, node: Transform) -> Type:
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

    def _optional_map(self, node: OptionalMap) -> Type:
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


def _dotted(node: Node) -> str | None:
    """A name such as `sets` or `a.b`, None for anything else."""
    match node:
        case Ident(name=name):
            return name
        case Select(operand=operand, field=name, optional=False, test=False):
            prefix = _dotted(operand)
            return None if prefix is None else f"{prefix}.{name}"
        case _:
            return None


__all__ = ["DEVICE_NAME", "ERROR", "Checked", "check"]
