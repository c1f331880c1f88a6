"""A checked tree to nested Python closures: no tree is walked during an evaluation.

Shapes that selectors are full of get closures of their own: a path from the device, a comparison
with a constant, two operands. With an observer every node reports its outcome, and nothing is
fused, so that a trace shows each part.
"""

from collections.abc import Callable
from typing import Any, Final

from dragoon.cel import loops
from dragoon.cel.access import (
    has,
    index,
    is_in,
    no_such_key,
    optional_index,
    optional_select,
    select,
)
from dragoon.cel.checker import DEVICE_NAME, Checked
from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.frame import DEVICE, FIRST_SLOT, STEP_LIMIT, Evaluate, Frame, charge_sizes
from dragoon.cel.functions import Dispatch, Effort
from dragoon.cel.library import FUNCTIONS
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
    children,
)
from dragoon.cel.values import (
    ABSENT,
    OptionalValue,
    equal,
    map_key,
    no_such_overload,
)

Observer = Callable[[Node, Evaluate], Evaluate]
"""Wraps the closure of a node, to see what it gives."""

_DISPATCH: Final = {name: Dispatch(name, overloads) for name, overloads in FUNCTIONS.items()}
_EXACT: Final = frozenset((str, int, bool))
"""Classes for which Python's == is CEL's, as long as both sides have the same one."""


class Compiler:
    """Compiles one expression. slots: how many variables its macros need at most."""

    def __init__(self, checked: Checked, observer: Observer | None = None) -> None:
        self._names = checked.names
        self._observer = observer
        self._scope: list[tuple[str, int]] = [(DEVICE_NAME, DEVICE)]
        self._loops = 0
        self.slots = 0

    def build(self, node: Node) -> Evaluate:
        """The closure that evaluates a node."""
        run = self._plain(node)
        return run if self._observer is None else self._observer(node, run)

    def _plain(self, node: Node) -> Evaluate:
        match node:
            case Literal(value=value):
                return lambda _: value
            case Ident(name=name):
                slot = self._slot(name)
                return lambda frame: frame[slot]
            case Select():
                return self._select(node)
            case Index():
                return self._index(node)
            case Call():
                return self._call(node)
            case Logical(operands=operands):
                return _logical(tuple(map(self.build, operands)), decided=not node.all)
            case Conditional():
                return self._conditional(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Quantifier():
                return self._quantifier(node)
            case Transform():
                return self._transform(node)
            case Bind():
                return self._bind(node)
            case OptionalMap():
                return self._optional_map(node)
            case _:
                raise AssertionError(f"unknown node {node}")

    def _slot(self, name: str) -> int:
        return next(slot for known, slot in reversed(self._scope) if known == name)

    def _enter(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """New variables, each in a slot of its own among those in scope."""
        first = FIRST_SLOT + len(self._scope) - 1
        slots = tuple(range(first, first + len(names)))
        self._scope.extend(zip(names, slots, strict=True))
        self.slots = max(self.slots, len(self._scope) - 1)
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

    def _select(self, node: Select) -> Evaluate:
        fused = self._fused(node)
        if fused is not None:
            return fused
        operand, field = self.build(node.operand), node.field
        read = has if node.test else optional_select if node.optional else select
        return lambda frame: read(operand(frame), field)

    def _index(self, node: Index) -> Evaluate:
        fused = self._fused(node)
        if fused is not None:
            return fused
        operand, key = self.build(node.operand), self.build(node.index)
        read = optional_index if node.optional else index
        return lambda frame: read(operand(frame), key(frame))

    def _conditional(self, node: Conditional) -> Evaluate:
        test, yes, no = self.build(node.test), self.build(node.yes), self.build(node.no)
        return lambda frame: yes(frame) if loops.is_true(test(frame)) else no(frame)

    def _list(self, node: ListOf) -> Evaluate:
        items = [(self.build(item.value), item.optional) for item in node.items]

        def run(frame: Frame) -> tuple[Any, ...]:
            values = [(item(frame), optional) for item, optional in items]
            return tuple(
                _inner(value) if optional else value
                for value, optional in values
                if not optional or _is_present(value)
            )

        return run

    def _map(self, node: MapOf) -> Evaluate:
        entries = [
            (self.build(entry.key), self.build(entry.value), entry.optional)
            for entry in node.entries
        ]

        def run(frame: Frame) -> dict[Any, Any]:
            result: dict[Any, Any] = {}
            for key, value, optional in entries:
                name, content = map_key(key(frame)), value(frame)
                if not optional:
                    result[name] = content
                elif _is_present(content):
                    result[name] = _inner(content)
            return result

        return run

    def _quantifier(self, node: Quantifier) -> Evaluate:
        over = self.build(node.range)
        slots = self._enter(node.variables)
        self._loops += 1
        body = self.build(node.body)
        self._loops -= 1
        self._leave(len(slots))
        return loops.quantifier(node.macro, loops.walk(over, slots, weight(node.body)), body)

    def _transform(self, node: Transform) -> Evaluate:
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

    def _bind(self, node: Bind) -> Evaluate:
        value = self.build(node.value)
        (slot,) = self._enter((node.name,))
        body = self.build(node.body)
        self._leave(1)

        def run(frame: Frame) -> Any:
            frame[slot] = value(frame)
            return body(frame)

        return run

    def _optional_map(self, node: OptionalMap) -> Evaluate:
        target = self.build(node.target)
        (slot,) = self._enter((node.name,))
        body, flat = self.build(node.body), node.flat
        self._leave(1)

        def run(frame: Frame) -> Any:
            optional = target(frame)
            if not _is_present(optional):
                return ABSENT
            frame[slot] = optional.value
            result = body(frame)
            return result if flat else OptionalValue(present=True, value=result)

        return run

    def _call(self, node: Call) -> Evaluate:
        name = self._names.get(node, node.function)
        parts = node.args if node.target is None or node in self._names else children(node)
        args = tuple(map(self.build, parts))
        if name in {"==", "!="}:
            return _equality(args, parts, wanted=name == "==")
        if name in {"or", "orValue"}:
            return _otherwise(args, value=name == "orValue")
        if name == "in":
            value, container = args
            return lambda frame: is_in(value(frame), container(frame))
        dispatch = _DISPATCH[name]
        counted = dispatch.effort is Effort.GROW or (
            dispatch.effort is Effort.SCAN and self._loops > 0
        )
        run = _counted(dispatch, args) if counted else _applied(dispatch, args)
        if self._observer is None and all(isinstance(part, Literal) for part in parts):
            return _folded(run)
        return run


def weight(node: Node) -> int:
    """Steps of one evaluation of a node, not counting the rounds of macros in it."""
    return 1 + sum(map(weight, children(node)))


def _applied(dispatch: Dispatch, args: tuple[Evaluate, ...]) -> Evaluate:
    """A call that looks up the implementation by the classes of the arguments."""
    found, find = dispatch.found, dispatch.find
    if len(args) == 1:
        (only,) = args

        def unary(frame: Frame) -> Any:
            value = only(frame)
            run = found.get((type(value),)) or find(value)
            return run(value)

        return unary
    if len(args) == 2:
        left, right = args

        def binary(frame: Frame) -> Any:
            first, second = left(frame), right(frame)
            run = found.get((type(first), type(second))) or find(first, second)
            return run(first, second)

        return binary

    def general(frame: Frame) -> Any:
        values = [arg(frame) for arg in args]
        return find(*values)(*values)

    return general


def _counted(dispatch: Dispatch, args: tuple[Evaluate, ...]) -> Evaluate:
    """A call that pays for the sizes of its arguments and its result."""

    def run(frame: Frame) -> Any:
        values = [arg(frame) for arg in args]
        charge_sizes(frame, *values)
        result = dispatch.find(*values)(*values)
        charge_sizes(frame, result)
        return result

    return run


def _folded(run: Evaluate) -> Evaluate:
    """A call on constants, computed once; one that fails goes on failing when it is reached."""
    try:
        value = run([None, STEP_LIMIT, None])
    except ExpressionFailedError:
        return run
    return lambda _: value


def _equality(args: tuple[Evaluate, ...], parts: tuple[Node, ...], *, wanted: bool) -> Evaluate:
    left, right = args
    constant = parts[1]
    if isinstance(constant, Literal) and type(constant.value) in _EXACT:
        other = constant.value
        kind = type(other)

        def fast(frame: Frame) -> bool:
            value = left(frame)
            same = value == other if type(value) is kind else equal(value, other)
            return same is wanted

        return fast
    return lambda frame: equal(left(frame), right(frame)) is wanted


def _otherwise(args: tuple[Evaluate, ...], *, value: bool) -> Evaluate:
    """`or` and `orValue`: the second part is evaluated only if the first has no value."""
    left, right = args

    def run(frame: Frame) -> Any:
        optional = left(frame)
        if not _is_present(optional):
            return right(frame)
        return optional.value if value else optional

    return run


def _logical(operands: tuple[Evaluate, ...], *, decided: bool) -> Evaluate:
    """`&&` (decided by false) and `||` (by true): a failure counts only where nothing decides."""
    name = "_||_" if decided else "_&&_"

    def run(frame: Frame) -> bool:
        failure: ExpressionFailedError | None = None
        for operand in operands:
            try:
                outcome = operand(frame)
            except ExpressionFailedError as error:
                failure = failure or error
                continue
            if outcome is decided:
                return decided
            if type(outcome) is not bool:
                failure = failure or no_such_overload(name, outcome)
        if failure is not None:
            raise failure
        return not decided

    return run


def _is_present(value: Any) -> bool:
    if type(value) is not OptionalValue:
        raise no_such_overload("optional", value)
    return value.present


def _inner(value: OptionalValue) -> Any:
    return value.value
