"""A checked tree to nested Python closures: no tree is walked during an evaluation.

Shapes that selectors are full of get closures of their own: a path from the device, a comparison
with a constant, two operands. With an observer every node reports its outcome, and nothing is
fused, so that a trace shows each part.
"""

from collections.abc import Callable
from typing import Any, Final

from dragoon.cel import calls, loops
from dragoon.cel.access import (
    has,
    index,
    no_such_key,
    optional_index,
    optional_select,
    select,
)
from dragoon.cel.checked import DEVICE_NAME, Callee, Checked
from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.frame import DEVICE, FIRST_SLOT, PENDING, Evaluate, Frame
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
from dragoon.cel.values import (
    ABSENT,
    INDEXES,
    OptionalValue,
    map_key,
)

Observer = Callable[[Node, Evaluate], Evaluate]
"""Wraps the closure of a node, to see what it gives."""

_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint")
)
"""Functions that cel-go evaluates at compile time when their argument is constant."""
_FOLDED: Final = _CONVERSIONS | {"quantity", "semver"}
"""Those, and the ones worth it. A failure of the latter stays one of the evaluation."""
_WITH_PATTERN: Final = frozenset(("matches", "find", "findAll"))


class Compiler:
    """Compiles one expression. slots: how many variables its macros have."""

    def __init__(self, checked: Checked, observer: Observer | None = None) -> None:
        self._source = checked.source
        self._callees = checked.callees
        # What cel-go takes for constants.
        self._constants: set[Node] = set()
        self._observer = observer
        self._scope: list[tuple[str, int]] = [(DEVICE_NAME, DEVICE)]
        self._bound: dict[int, Evaluate] = {}
        self._loops = 0
        self.slots = 0

    def build(self, node: Node) -> Evaluate:
        """The closure that evaluates a node."""
        run = _BUILDERS[type(node)](self, node)
        return run if self._observer is None else self._observer(node, run)

    def literal(self, node: Literal) -> Evaluate:
        self._constants.add(node)
        value = node.value
        return lambda _: value

    def variable(self, node: Ident) -> Evaluate:
        slot = self._slot(node.name)
        return self._bound.get(slot) or (lambda frame: frame[slot])

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
        if path is None:
            return None
        if len(path) == 1:
            (field,) = path
            return lambda frame: frame[DEVICE][field]
        if len(path) == 2:
            field, domain = path
            return lambda frame: frame[DEVICE][field][domain]
        if len(path) != 3 or path[0] not in {"attributes", "capacity"}:
            return None
        field, domain, name = path

        def run(frame: Frame) -> Any:
            try:
                return frame[DEVICE][field][domain][name]
            except KeyError:
                raise no_such_key(frame[DEVICE][field][domain], name) from None

        return run

    def select(self, node: Select) -> Evaluate:
        fused = self._fused(node)
        if fused is not None:
            return fused
        operand, field = self.build(node.operand), node.field
        read = has if node.test else optional_select if node.optional else select
        return lambda frame: read(operand(frame), field)

    def index(self, node: Index) -> Evaluate:
        fused = self._fused(node)
        if fused is not None:
            return fused
        operand, key = self.build(node.operand), self.build(node.index)
        if node.index in self._constants and type(calls.constant(key)) not in INDEXES:
            raise self._source.wrong(node.index.start, "this cannot be an index")
        read = optional_index if node.optional else index

        def run(frame: Frame) -> Any:
            value = operand(frame)
            # What is not there is not indexed: the index is not evaluated either.
            return ABSENT if value is ABSENT else read(value, key(frame))

        return run

    def conditional(self, node: Conditional) -> Evaluate:
        test, yes, no = self.build(node.test), self.build(node.yes), self.build(node.no)
        return lambda frame: yes(frame) if loops.is_true(test(frame)) else no(frame)

    def list_of_items(self, node: ListOf) -> Evaluate:
        items = [(self.build(item.value), item.optional) for item in node.items]
        if self._constants.issuperset(node.children()):
            self._constants.add(node)

        def run(frame: Frame) -> tuple[Any, ...]:
            values = [(item(frame), optional) for item, optional in items]
            return tuple(
                value.value if optional else value
                for value, optional in values
                if not optional or calls.is_present(value)
            )

        return run

    def map_of_entries(self, node: MapOf) -> Evaluate:
        entries = [
            (self.build(entry.key), self.build(entry.value), entry.optional)
            for entry in node.entries
        ]
        if self._constants.issuperset(node.children()):
            self._constants.add(node)

        def run(frame: Frame) -> dict[Any, Any]:
            result: dict[Any, Any] = {}
            for key, value, optional in entries:
                wanted, content = key(frame), value(frame)
                name = map_key(wanted)
                if not optional:
                    result[name] = content
                elif calls.is_present(content):
                    result[name] = content.value
            return result

        return run

    def quantifier(self, node: Quantifier) -> Evaluate:
        over = self.build(node.range)
        slots = self._enter(node.variables)
        self._loops += 1
        body = self.build(node.body)
        self._loops -= 1
        self._leave(len(slots))
        return loops.quantifier(node.macro, loops.walk(over, slots, weight(node.body)), body)

    def transform(self, node: Transform) -> Evaluate:
        over = self.build(node.range)
        slots = self._enter(node.variables)
        self._loops += 1
        condition = None if node.condition is None else self.build(node.condition)
        step = self.build(node.step)
        self._loops -= 1
        self._leave(len(slots))
        steps = weight(node.step) + (weight(node.condition) if node.condition is not None else 0)
        first = slots[0]
        return loops.transform(
            node.result,
            loops.walk(over, slots, steps),
            condition,
            step,
            lambda frame: frame[first],
        )

    def sort_by(self, node: SortBy) -> Evaluate:
        """The range is evaluated once; what is no list has keys, but no order."""
        (whole,) = self._enter(("",))
        over = calls.once(whole, self.build(node.range))
        slots = self._enter((node.name,))
        self._loops += 1
        key = self.build(node.key)
        self._loops -= 1
        self._leave(2)
        walk = loops.walk(over, slots, weight(node.key))
        return loops.sort_by(over, whole, loops.transform("list", walk, None, key, over))

    def bind(self, node: Bind) -> Evaluate:
        """The value is evaluated, or fails, where the variable is first read."""
        value = self.build(node.value)
        (slot,) = self._enter((node.name,))
        self._bound[slot] = calls.once(slot, value)
        body = self.build(node.body)
        self._leave(1)

        def run(frame: Frame) -> Any:
            frame[slot] = PENDING
            return body(frame)

        return run

    def optional_map(self, node: OptionalMap) -> Evaluate:
        target = self.build(node.target)
        (slot,) = self._enter((node.name,))
        body, flat = self.build(node.body), node.flat
        self._leave(1)

        def run(frame: Frame) -> Any:
            optional = target(frame)
            if not calls.is_present(optional):
                return ABSENT
            frame[slot] = optional.value
            result = body(frame)
            return result if flat else OptionalValue(present=True, value=result)

        return run

    def call(self, node: Call) -> Evaluate:
        callee = self._callees.get(node)
        if callee is None:
            return self._operator(node)
        self._check_patterns(callee)
        args = tuple(map(self.build, callee.args))
        if callee.name in {"or", "orValue"}:
            left, right = args
            return calls.otherwise(left, right, value=callee.name == "orValue")
        run = calls.call(callee.name, callee.overloads, args, in_loop=self._loops > 0)
        if callee.name in _FOLDED and self._constants.issuperset(callee.args):
            return self._folded(node, callee.name, run)
        return run

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
            if isinstance(node.args[1], ListOf) and node.args[1] in self._constants:
                return calls.membership_in(left, calls.constant(right))
            return calls.membership(left, right)
        wanted, other = node.function == "==", node.args[1]
        if isinstance(other, Literal):
            fast = calls.equality_with(left, other.value, wanted=wanted)
            if fast is not None:
                return fast
        return calls.equality(left, right, wanted=wanted)

    def _folded(self, node: Call, name: str, run: Evaluate) -> Evaluate:
        """A call on constants, computed once."""
        try:
            value = calls.constant(run)
        except ExpressionFailedError as error:
            if name in _CONVERSIONS:
                raise self._source.wrong(node.start, error.message) from error
            return run
        if name in _CONVERSIONS:
            self._constants.add(node)
        return lambda _: value


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


def weight(node: Node) -> int:
    """Steps of one evaluation of a node, not counting the rounds of macros in it."""
    return 1 + sum(map(weight, node.children()))
