"""What an expression reads of a device, and which of these reads are guarded.

A read is guarded where a failure of it cannot be the result: it is optional, or a test for it
stands in the same `&&` (in any order: CEL's && is false if one side is), in an `||` as its
negation, or as the test of a `?:`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dragoon.cel.parser import parse
from dragoon.cel.syntax import Bind, Call, Conditional, Ident, Index, Logical, Node, Select
from dragoon.cel.syntax import Literal as Constant
from dragoon.diagnose.vocabulary import Maps

_MAPS: Final[dict[str, Maps]] = {"attributes": "attributes", "capacity": "capacity"}
_COMPARED: Final = frozenset(("==", "!=", "<", "<=", ">", ">="))
_TYPE: Final = "type"

Key = tuple[Maps, str, str]
"""Map, domain and name of what is read."""
_Bound = Mapping[str, tuple[Maps, str]]


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """One read. node: as it is written. test: the smallest part around it that can be false.

    domain_node: the text of the map it is read from. forms: values of `type` that a test beside
    it demands, empty if none does. parent: the node that uses the value.
    """

    kind: Maps
    domain: str
    name: str
    node: Node
    map_node: Node
    test: Node
    parent: Node | None
    guarded: bool
    forms: frozenset[str]

    @property
    def key(self) -> Key:
        return self.kind, self.domain, self.name


@dataclass(frozen=True, slots=True)
class _Place:
    """What is known where a node stands."""

    test: Node
    parent: Node | None = None
    guards: frozenset[Key] = frozenset()
    forms: frozenset[str] = frozenset()
    bound: tuple[tuple[str, tuple[Maps, str]], ...] = ()


@dataclass(frozen=True, slots=True)
class Reads:
    """All reads of an expression. tests_driver: it compares device.driver with something."""

    text: str
    reads: tuple[Read, ...]
    tests_driver: bool

    def part(self, node: Node) -> str:
        """The text of a node."""
        return self.text[node.start : node.end]


def reads(text: str) -> Reads:
    """Raises CompileError or UnsupportedExpressionError for what cannot be parsed."""
    tree = parse(text)
    found = tuple(_walk(tree, _Place(test=tree)))
    drivers = any(
        isinstance(node, Select)
        and node.field == "driver"
        and isinstance(node.operand, Ident)
        and node.operand.name == "device"
        for node in _all(tree)
    )
    return Reads(text, found, drivers)


def _all(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children():
        yield from _all(child)


def _walk(node: Node, place: _Place) -> Iterator[Read]:
    bound = dict(place.bound)
    read = _as_read(node, bound)
    if read is not None:
        kind, domain, name, optional, map_node = read
        key = kind, domain, name
        yield Read(
            kind,
            domain,
            name,
            node,
            map_node,
            place.test,
            place.parent,
            optional or key in place.guards,
            place.forms,
        )
        return
    match node:
        case Logical(operands=operands, all=conjunction):
            yield from _operands(operands, place, conjunction=conjunction)
        case Conditional(test=test, yes=yes, no=no):
            yield from _walk(test, _inside(place, test=test, parent=node))
            yield from _walk(yes, _knowing(place, yes, test, bound, holds=True))
            yield from _walk(no, _knowing(place, no, test, bound, holds=False))
        case Bind(name=name, value=value, body=body):
            yield from _walk(value, _inside(place, parent=node))
            meant = _as_map(value, bound)
            more = place.bound if meant is None else (*place.bound, (name, meant))
            yield from _walk(body, _inside(place, parent=node, bound=more))
        case _:
            for child in node.children():
                yield from _walk(child, _inside(place, parent=node))


def _operands(operands: tuple[Node, ...], place: _Place, *, conjunction: bool) -> Iterator[Read]:
    """Each operand knows what the others test: a failure of it then does not count."""
    bound = dict(place.bound)
    for operand in operands:
        guards, forms = set(place.guards), set(place.forms)
        for other in operands:
            if other is not operand:
                guards |= set(_guards(other, bound, holds=conjunction))
                forms |= set(_forms(other, bound)) if conjunction else set()
        yield from _walk(
            operand,
            _Place(operand, None, frozenset(guards), frozenset(forms), place.bound),
        )


def _inside(
    place: _Place,
    *,
    test: Node | None = None,
    parent: Node | None = None,
    bound: tuple[tuple[str, tuple[Maps, str]], ...] | None = None,
) -> _Place:
    return _Place(
        place.test if test is None else test,
        parent,
        place.guards,
        place.forms,
        place.bound if bound is None else bound,
    )


def _knowing(place: _Place, branch: Node, test: Node, bound: _Bound, *, holds: bool) -> _Place:
    guards = place.guards | set(_guards(test, bound, holds=holds))
    forms = place.forms | (set(_forms(test, bound)) if holds else set())
    return _Place(branch, None, frozenset(guards), frozenset(forms), place.bound)


def _guards(node: Node, bound: _Bound, *, holds: bool) -> Iterator[Key]:
    """What is there where this test holds; or, with holds False, where it does not."""
    match node:
        case Logical(operands=operands, all=all_) if all_ == holds:
            for operand in operands:
                yield from _guards(operand, bound, holds=holds)
        case Call(function="!_", args=(inner,)):
            yield from _guards(inner, bound, holds=not holds)
        case Select(operand=operand, field=name, test=True) if holds:
            meant = _as_map(operand, bound)
            if meant is not None:
                yield *meant, name
        case Call(function="in", args=(Constant(value=str() as name), container)) if holds:
            meant = _as_map(container, bound)
            if meant is not None:
                yield *meant, name
        case Call(function="hasValue", target=Select() | Index() as read) if holds:
            found = _as_read(read, bound)
            if found is not None:
                yield found[:3]
        case _:
            return


def _forms(node: Node, bound: _Bound) -> Iterator[str]:
    """The value of `type` that a comparison demands."""
    match node:
        case Logical(operands=operands, all=True):
            for operand in operands:
                yield from _forms(operand, bound)
        case Call(function="==", args=(left, right)):
            for read, constant in ((left, right), (right, left)):
                if isinstance(constant, Constant) and isinstance(constant.value, str):
                    for part in _all(read):
                        found = _as_read(part, bound)
                        if found is not None and found[2] == _TYPE:
                            yield constant.value
        case _:
            return


_Found = tuple[Maps, str, str, bool, Node]


def _as_read(node: Node, bound: _Bound) -> _Found | None:
    """Map, domain, name and whether optional, if the node reads an attribute or a capacity."""
    match node:
        case Select(operand=operand, field=name, optional=optional, test=False):
            return _found(operand, name, bound, optional=optional)
        case Index(operand=operand, index=Constant(value=str() as name), optional=optional):
            return _found(operand, name, bound, optional=optional)
        case _:
            return None


def _found(operand: Node, name: str, bound: _Bound, *, optional: bool) -> _Found | None:
    meant = _as_map(operand, bound)
    return None if meant is None else (*meant, name, optional or _is_optional(operand), operand)


def _is_optional(node: Node) -> bool:
    return isinstance(node, Select | Index) and node.optional


def _as_map(node: Node, bound: _Bound) -> tuple[Maps, str] | None:
    """Which map of which domain a node is, None for anything else."""
    match node:
        case Ident(name=name):
            return bound.get(name)
        case Index(operand=operand, index=Constant(value=str() as domain)):
            return _of_device(operand, domain)
        case Select(operand=operand, field=domain, test=False):
            return _of_device(operand, domain)
        case _:
            return None


def _of_device(node: Node, domain: str) -> tuple[Maps, str] | None:
    match node:
        case Select(operand=Ident(name="device"), field=field, test=False) if field in _MAPS:
            return _MAPS[field], domain
        case _:
            return None


def compared_with(read: Read) -> tuple[str, object] | None:
    """(operator, constant) where the value read is compared with a constant."""
    match read.parent:
        case Call(function=operator, args=(left, right)) if operator in _COMPARED:
            other = right if left is read.node else left
            if isinstance(other, Constant):
                return operator, other.value
    return None
