"""A checked tree to nested Python closures: no tree is walked during an evaluation.

Shapes that selectors are full of get closures of their own: a path from the device, a comparison
with a constant, two operands. With an observer every node reports its outcome, and nothing is
fused, so that a trace shows each part.
"""

from collections.abc import Callable
from typing import Any, Final

from dragoon.cel import aggregates, calls, comparisons, costs, loops, optionals, paths
from dragoon.cel.checked import DEVICE_NAME, Callee, Checked
from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.folding import Known
from dragoon.cel.frame import BUDGET, DEVICE, FIRST_SLOT, Evaluate, Frame
from dragoon.cel.library.lists import COMPARABLE
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
    SortBy,
    Transform,
)
from dragoon.cel.values import INDEXES

Observer = Callable[[Node, Evaluate], Evaluate]
"""Wraps the closure of a node, to see what it gives."""

_WITH_PATTERN: Final = frozenset(("matches", "find", "findAll"))


class Compiler:
    """Compiles one expression. slots: how many variables its macros have."""

    def __init__(self, checked: Checked, observer: Observer | None = None) -> None:
        self._source = checked.source
        self._callees = checked.callees
        self._types = checked.types
        self._known = Known(checked.source)
        self._observer = observer
        self._scope: list[tuple[str, int]] = [(DEVICE_NAME, DEVICE)]
        self._bound: dict[int, Evaluate] = {}
        self.slots = 0

    def build(self, node: Node) -> Evaluate:
        """The closure that evaluates a node."""
        run = _BUILDERS[type(node)](self, node)
        return run if self._observer is None else self._observer(node, run)

    def literal(self, node: Literal) -> Evaluate:
        return self._known.literal(node)

    def variable(self, node: Ident) -> Evaluate:
        slot = self._slot(node.name)
        return self._bound.get(slot) or calls.variable(slot)

    def logical(self, node: Logical) -> Evaluate:
        return calls.logical(tuple(map(self.build, node.operands)), decided=not node.all)

    def _slot(self, name: str) -> int:
        return next(slot for known, slot in reversed(self._scope) if known == name)

    def _enter(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """New variables, each in a slot of its own: a bound value may be computed late."""
        first = FIRST_SLOT + self.slots
        slots = tuple(range(first, first + len(names)))
        self._scope.extend(zip(names, slots, strict=True))
        self.slots += len(names)
        return slots

    def _leave(self, count: int) -> None:
        del self._scope[-count:]

    def _path(self, node: Node) -> tuple[str, ...] | None:
        """The constant keys that lead from the device to this node, if it is such a path."""
        match node:
            case Ident(name=name) if self._slot(name) == DEVICE:
                return ()
            case Select(operand=operand, field=key, optional=False, test=False):
                start = self._path(operand)
            case Index(operand=operand, index=Literal(value=str(key)), optional=False):
                start = self._path(operand)
            case _:
                return None
        return None if start is None else (*start, key)

    def _fused(self, node: Node) -> Evaluate | None:
        """One closure for a path such as device.attributes["d"].name."""
        path = self._path(node) if self._observer is None else None
        return None if path is None else paths.fused(path)

    def select(self, node: Select) -> Evaluate:
        fused = self._fused(node)
        if fused is not None:
            return fused
        operand, root = self._root(node.operand)
        if node.test:
            return paths.presence(operand, node.field, root)
        return paths.selection(operand, node.field, root, optional=node.optional)

    def _root(self, operand: Node) -> tuple[Evaluate, int]:
        """What a field is read of, and what that costs more if it is no path of its own."""
        return self.build(operand), 0 if isinstance(operand, _PATHS) else 1

    def index(self, node: Index) -> Evaluate:
        fused = self._fused(node)
        if fused is not None:
            return fused
        operand, root = self._root(node.operand)
        key = self.build(node.index)
        if not self._known.is_constant(node.index):
            # A path as an index costs as much as an index.
            saved = 1 if isinstance(node.index, _VARIABLES) else 0
            return paths.indexing(operand, key, root, saved, optional=node.optional)
        if type(calls.constant(key)) not in INDEXES:
            raise self._source.wrong(node.index.start, "this cannot be an index")
        return paths.indexing(operand, key, root, 0, optional=node.optional)

    def conditional(self, node: Conditional) -> Evaluate:
        test, yes, no = self.build(node.test), self.build(node.yes), self.build(node.no)
        # A path as a branch costs less than by itself.
        saved_yes = 1 if _is_plain_path(node.yes) else 0
        saved_no = 1 if _is_plain_path(node.no) else 0

        def run(frame: Frame) -> Any:
            if loops.is_true(test(frame)):
                frame[BUDGET] += saved_yes
                return yes(frame)
            frame[BUDGET] += saved_no
            return no(frame)

        return run

    def list_of_items(self, node: ListOf) -> Evaluate:
        items = [(self.build(item.value), item.optional) for item in node.items]
        return self._known.aggregate(node, aggregates.list_of(items))

    def map_of_entries(self, node: MapOf) -> Evaluate:
        entries = [
            (self.build(entry.key), self.build(entry.value), entry.optional)
            for entry in node.entries
        ]
        return self._known.aggregate(node, aggregates.map_of(entries))

    def quantifier(self, node: Quantifier) -> Evaluate:
        over = self.build(node.range)
        slots = self._enter(node.variables)
        body = self.build(node.body)
        self._leave(len(slots))
        return loops.quantifier(node.macro, loops.walk(over, slots), body)

    def transform(self, node: Transform) -> Evaluate:
        over = self.build(node.range)
        slots = self._enter(node.variables)
        condition = None if node.condition is None else self.build(node.condition)
        step = self.build(node.step)
        self._leave(len(slots))
        walk, first = loops.walk(over, slots), slots[0]
        if node.result == "list":
            return loops.transform(walk, condition, list, self._into_list(node.step, step))
        if node.result == "map":
            collect = loops.into_map(lambda frame: frame[first], step)
        else:
            collect = loops.into_entries(step)
        return loops.transform(walk, condition, dict, collect)

    def _into_list(self, node: Node, step: Evaluate) -> loops.Collect:
        return loops.into_list(step, 2 if self._known.is_constant(node) else 2 + costs.LIST)

    def sort_by(self, node: SortBy) -> Evaluate:
        """The range is evaluated once; what is no list has keys, but no order."""
        (whole,) = self._enter(("",))
        over = calls.once(whole, self.build(node.range))
        slots = self._enter((node.name,))
        key = self.build(node.key)
        self._leave(2)
        keys = loops.transform(loops.walk(over, slots), None, list, self._into_list(node.key, key))
        known = self._types[node.key] in COMPARABLE
        return loops.sort_by(over, whole, keys, known=known)

    def bind(self, node: Bind) -> Evaluate:
        """The value is evaluated, or fails, where the variable is first read."""
        value = self.build(node.value)
        (slot,) = self._enter((node.name,))
        self._bound[slot] = calls.once(slot, value)
        body = self.build(node.body)
        self._leave(1)
        return calls.bound(slot, body)

    def optional_map(self, node: OptionalMap) -> Evaluate:
        """cel-go evaluates the target again for the variable, where that is read."""
        target = self.build(node.target)
        (slot,) = self._enter((node.name,))
        self._bound[slot] = calls.once(slot, optionals.content(target))
        body = self.build(node.body)
        self._leave(1)
        return optionals.mapped(target, slot, body, flat=node.flat)

    def call(self, node: Call) -> Evaluate:
        callee = self._callees.get(node)
        if callee is None:
            return self._operator(node)
        self._check_patterns(callee)
        args = tuple(map(self.build, callee.args))
        if callee.name in {"or", "orValue"}:
            left, right = args
            return optionals.otherwise(left, right, value=callee.name == "orValue")
        constant = self._known.value(callee.args[1]) if len(args) == 2 else None
        if constant is not None and self._observer is None and calls.evaluates_both(callee):
            run = calls.with_constant(callee, args[0], constant)
        else:
            run = calls.call(callee, args)
        return self._known.call(node, callee, run)

    def _check_patterns(self, callee: Callee) -> None:
        """Constant regular expressions must be valid: the API server says so at creation.

        It also demands that of a constant text given to `matches(text, expression)`, by mistake.
        """
        if callee.name not in _WITH_PATTERN:
            return
        plain = callee.name == "matches" and not callee.overloads[0].member
        for arg in callee.args if plain else callee.args[1:2]:
            if isinstance(arg, Literal) and isinstance(arg.value, str):
                try:
                    pattern(arg.value)
                except ExpressionFailedError as error:
                    raise self._source.wrong(arg.start, error.message) from error

    def _operator(self, node: Call) -> Evaluate:
        left, right = map(self.build, node.args)
        if node.function == "in":
            if isinstance(node.args[1], ListOf) and self._known.is_constant(node.args[1]):
                members = calls.constant(right)
                if not members:
                    # To cel-go that is a constant, whatever is looked for.
                    return self._known.constant(node, value=False)
                return comparisons.membership_in(left, members)
            in_list = self._types[node.args[1]].kind == "list"
            return comparisons.membership(left, right, in_list=in_list)
        wanted, other = node.function == "==", node.args[1]
        if isinstance(other, Literal):
            fast = comparisons.equality_with(left, other.value, wanted=wanted)
            if fast is not None:
                return fast
        return comparisons.equality(left, right, wanted=wanted)


_VARIABLES: Final = (Ident, Select, Index)
_PATHS: Final = (*_VARIABLES, Conditional, OptionalMap)
"""Nodes that are paths to cel-go: reading a field or an index of one makes it longer."""


def _is_plain_path(node: Node) -> bool:
    return isinstance(node, _VARIABLES) and not (isinstance(node, Select) and node.test)


_BUILDERS: Final[dict[type[Node], Callable[[Compiler, Any], Evaluate]]] = {
    Literal: Compiler.literal,
    Ident: Compiler.variable,
    Select: Compiler.select,
    Index: Compiler.index,
    Call: Compiler.call,
    Logical: Compiler.logical,
    Conditional: Compiler.conditional,
    ListOf: Compiler.list_of_items,
    MapOf: Compiler.map_of_entries,
    Quantifier: Compiler.quantifier,
    Transform: Compiler.transform,
    SortBy: Compiler.sort_by,
    Bind: Compiler.bind,
    OptionalMap: Compiler.optional_map,
}
