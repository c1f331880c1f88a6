"""Adds up the costs of a checked tree, with macros as the loops that cel-go makes of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from dragoon.cel.checked import DEVICE_NAME, Checked
from dragoon.cel.costs import LIST, MAP
from dragoon.cel.estimate.bounds import NOTHING, ONE, UNBOUNDED, UNKNOWN, Bounds, exactly
from dragoon.cel.estimate.functions import Estimate, equality, estimate, smaller
from dragoon.cel.estimate.parts import Entries, Part
from dragoon.cel.estimate.sizes import common_size, elements, one_of, own_size, read_from
from dragoon.cel.functions import Overload
from dragoon.cel.library.lists import COMPARABLE
from dragoon.cel.signatures import INDEX
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
from dragoon.cel.types import DYN, Type, Unifier, list_of

_WITH_FIELDS: Final = frozenset(("map", "kubernetes.DRADevice"))


def estimated_cost(checked: Checked) -> int:
    """The most that an evaluation can cost, 2**64 - 1 where there is no limit."""
    return _Walk(checked).part(checked.tree).cost.most


class _Walk:
    """Visits one tree. The scope is a stack of variables, innermost last."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._scope: list[tuple[str, Part]] = []

    def part(self, node: Node) -> Part:
        """What is known of a node; its cost includes that of its parts."""
        part = _RULES[type(node)](self, node)
        if part.size is None:
            part = replace(part, size=own_size(part))
        return part

    def _new(self, node: Node, cost: Bounds) -> Part:
        return Part(node, self._checked.types[node], cost)

    def _within(self, variables: list[tuple[str, Part]], body: Node) -> Part:
        self._scope += variables
        part = self.part(body)
        del self._scope[-len(variables) :]
        return part

    def literal(self, node: Literal) -> Part:
        size = len(node.value) if isinstance(node.value, str | bytes) else 1
        return replace(self._new(node, NOTHING), size=exactly(size))

    def variable(self, node: Ident) -> Part:
        part = self._new(node, ONE)
        for name, known in reversed(self._scope):
            if name == node.name:
                return read_from(known, part)
        return replace(part, path=(DEVICE_NAME,))

    def select(self, node: Select) -> Part:
        operand = self.part(node.operand)
        if node.test:
            return self._new(node, operand.cost)
        if node.optional:
            return self._new(node, operand.cost.plus(ONE))
        cost = operand.cost.plus(ONE if operand.type.kind in _WITH_FIELDS else NOTHING)
        return replace(self._new(node, cost), path=(*(operand.path or ()), node.field))

    def index(self, node: Index) -> Part:
        operand, key = self.part(node.operand), self.part(node.index)
        part = self._new(node, operand.cost.plus(key.cost).plus(ONE))
        if node.optional:
            return part
        fits = [
            step
            for step, signature in zip(("@items", "@values"), INDEX[:2], strict=True)
            if _fits((operand.type, key.type), signature[:2])
        ]
        if not fits:
            return part
        size = None if operand.entries is None else operand.entries.value
        return replace(part, size=size, path=(*(operand.path or ()), fits[-1]))

    def logical(self, node: Logical) -> Part:
        costs = [self.part(operand).cost for operand in node.operands]
        most = min(sum(cost.most for cost in costs), UNBOUNDED)
        return self._new(node, Bounds(costs[0].least, most))

    def conditional(self, node: Conditional) -> Part:
        test, yes, no = self.part(node.test), self.part(node.yes), self.part(node.no)
        part = self._new(node, test.cost.plus(yes.cost.either(no.cost)))
        return one_of(part, yes, no)

    def list_of_items(self, node: ListOf) -> Part:
        items = [self.part(child) for child in node.children()]
        entries = Entries("list", ONE, common_size(items))
        part = self._new(node, _total(items, LIST))
        return replace(part, size=exactly(len(items)), entries=entries)

    def map_of_entries(self, node: MapOf) -> Part:
        parts = [self.part(child) for child in node.children()]
        entries = Entries("map", common_size(parts[::2]), common_size(parts[1::2]))
        part = self._new(node, _total(parts, MAP))
        return replace(part, size=exactly(len(node.entries)), entries=entries)

    def call(self, node: Call) -> Part:
        callee = self._checked.callees.get(node)
        nodes = node.children() if callee is None else callee.args
        args = tuple(map(self.part, nodes))
        part = self._new(node, _total(args, 0))
        if callee is None:
            return part.costing(part.cost.plus(_operator(node.function, args).cost))
        if callee.name == "dyn":
            whole = part.costing(part.cost.plus(ONE))
            return replace(whole, size=args[0].size, entries=args[0].entries)
        return _called(part, callee.name, callee.overloads, args)

    def quantifier(self, node: Quantifier) -> Part:
        over = self.part(node.range)
        body = self._within(elements(node.variables, over), node.body).cost
        if node.macro == "existsOne":
            step, ends = body.plus(Bounds(1, 2)), 2
        else:
            asking = 2 if node.macro == "all" else 3
            step, ends = Bounds(1, min(body.most + 1, UNBOUNDED)).plus(exactly(asking)), 1
        cost = over.cost.plus(exactly(ends)).plus(over.size_or_any.times(step))
        return replace(self._new(node, cost), size=ONE)

    def transform(self, node: Transform) -> Part:
        over = self.part(node.range)
        variables = elements(node.variables, over)
        step = self._within(variables, node.step)
        # Making a list of one and adding it, or inserting, with the outcome so far read.
        extra = {"list": LIST + 2, "map": 3, "entries": 2}[node.result]
        cost = step.cost.plus(exactly(extra))
        if node.condition is not None:
            test = self._within(variables, node.condition)
            cost = test.cost.plus(cost.either(ONE))
        entries = None
        if node.result == "list":
            entries = Entries("list", ONE, step.size_or_any.either(NOTHING))
        start = LIST if node.result == "list" else MAP
        whole = over.cost.plus(exactly(start + 1)).plus(over.size_or_any.times(cost))
        return replace(self._new(node, whole), size=over.size_or_any, entries=entries)

    def sort_by(self, node: SortBy) -> Part:
        over = self.part(node.range)
        read = read_from(over, over.costing(ONE))
        keys = self._within(elements((node.name,), read), node.key)
        rounds = read.size_or_any.times(keys.cost.plus(exactly(LIST + 2)))
        cost = ONE.plus(exactly(LIST + 1)).plus(rounds)
        listed = Part(None, list_of(keys.type), cost, read.size_or_any)
        overloads = tuple(
            Overload((list_of(DYN), list_of(type_)), DYN, _never, member=True)
            for type_ in COMPARABLE
            if keys.type in {type_, DYN}
        )
        whole = over.cost.plus(exactly(LIST)).plus(ONE).plus(cost)
        return _called(self._new(node, whole), "sortBy", overloads, (read, listed))

    def bind(self, node: Bind) -> Part:
        value = self.part(node.value)
        body = self._within([(node.name, value)], node.body)
        cost = value.cost.plus(body.cost).plus(exactly(LIST))
        return replace(self._new(node, cost), size=body.size, entries=body.entries)

    def optional_map(self, node: OptionalMap) -> Part:
        """A conditional that asks the target, and evaluates it again for its value."""
        target = self.part(node.target)
        inner = target.type.params[0] if target.type.params else DYN
        value = Part(None, inner, target.cost.plus(ONE))
        value = replace(value, size=own_size(value))
        body = self._within([(node.name, value)], node.body)
        bound = value.cost.plus(body.cost).plus(exactly(LIST))
        yes = bound if node.flat else bound.plus(ONE)
        part = self._new(node, target.cost.plus(ONE).plus(yes.either(ONE)))
        none = own_size(part) or UNKNOWN
        return replace(part, size=none.either(body.size_or_any) if node.flat else none)


def _never(*_: Any) -> Any:
    raise AssertionError("a signature for its types only")


def _total(parts: tuple[Part, ...] | list[Part], more: int) -> Bounds:
    total = exactly(more)
    for part in parts:
        total = total.plus(part.cost)
    return total


def _fits(given: tuple[Type, ...], wanted: tuple[Type, ...]) -> bool:
    types = Unifier()
    return types.assignable(given, types.instance(wanted))


def _operator(function: str, args: tuple[Part, ...]) -> Estimate:
    left, right = args
    if function == "==":
        return equality(left, right)
    if function == "!=":
        return smaller(left, right)
    in_list = right.size_or_any.scaled(1)
    if right.type.kind == "list":
        return Estimate(in_list)
    return Estimate(ONE if right.type.kind == "map" else in_list.either(ONE))


def _called(part: Part, name: str, overloads: tuple[Overload, ...], args: tuple[Part, ...]) -> Part:
    """A call; the part's cost is that of its arguments so far."""
    costs: Bounds | None = None
    size: Bounds | None = None
    entries = part.entries
    for overload in overloads:
        found = estimate(name, overload, args)
        costs = found.cost if costs is None else costs.either(found.cost)
        if found.size is not None:
            size = found.size if size is None else size.either(found.size)
        if size is None:
            size = own_size(part)
        if name == "+" and args[0].entries is not None and found.size is not None:
            entries = args[0].entries.either(args[1].entries) or entries
    return replace(part, cost=part.cost.plus(costs or NOTHING), size=size, entries=entries)


_RULES: Final[dict[type[Node], Callable[[_Walk, Any], Part]]] = {
    Literal: _Walk.literal,
    Ident: _Walk.variable,
    Select: _Walk.select,
    Index: _Walk.index,
    Call: _Walk.call,
    Logical: _Walk.logical,
    Conditional: _Walk.conditional,
    ListOf: _Walk.list_of_items,
    MapOf: _Walk.map_of_entries,
    Quantifier: _Walk.quantifier,
    Transform: _Walk.transform,
    SortBy: _Walk.sort_by,
    Bind: _Walk.bind,
    OptionalMap: _Walk.optional_map,
}
