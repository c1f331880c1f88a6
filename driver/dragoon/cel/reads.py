"""Which attributes and capacities of a device an expression may read.

Devices that are equal in these, in the driver and in allowMultipleAllocations give the same
verdict, so a cache of verdicts may be keyed by them.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from dragoon.cel.checked import DEVICE_NAME
from dragoon.cel.syntax import Bind, Call, Ident, Index, Literal, Node, Select

_MAPS: Final = frozenset(("attributes", "capacity"))
_ALWAYS: Final = frozenset(("driver", "allowMultipleAllocations"))
_DEPTH: Final = 3


class Read(NamedTuple):
    """part: `attributes` or `capacity`; then the domain, and the name in it."""

    part: str
    domain: str
    name: str


_Path = tuple[str, ...]
_Scope = Mapping[str, _Path | None]
"""What variables stand for: the path of a bound part of the device, None for anything else."""


def reads(tree: Node) -> frozenset[Read] | None:
    """What a checked tree may read; None where all of the device counts.

    That is so where it walks over the device, or reads a name that is not written in it.
    """
    found: set[Read] = set()
    return frozenset(found) if _collect(tree, {DEVICE_NAME: ()}, found) else None


def _collect(node: Node, scope: _Scope, found: set[Read]) -> bool:
    """Adds what this part reads; False if it reads more than can be named."""
    if isinstance(node, Bind):
        path = _path(node.value, scope)
        if path is not None and len(path) < _DEPTH:
            return _collect(node.body, {**scope, node.name: path}, found)
    if isinstance(node, Call) and node.function == "in":
        key, container = node.args
        path = _path(container, scope)
        if path is not None and len(path) == _DEPTH - 1 and isinstance(key, Literal):
            return _add((*path, str(key.value)), found)
    path = _path(node, scope)
    if path is not None:
        return _add(path, found)
    # A variable of a macro that hides a bound one only makes more be read than is.
    return all(_collect(child, scope, found) for child in node.children())


def _add(path: _Path, found: set[Read]) -> bool:
    if len(path) == 1 and path[0] in _ALWAYS:
        return True
    if len(path) != _DEPTH or path[0] not in _MAPS:
        return False
    found.add(Read(*path))
    return True


def _path(node: Node, scope: _Scope) -> _Path | None:
    """The constant keys that lead from the device to this part, None if it is no such path."""
    match node:
        case Ident(name=name):
            return scope.get(name)
        case Select(operand=operand, field=key):
            start = _path(operand, scope)
        case Index(operand=operand, index=Literal(value=str(key))):
            start = _path(operand, scope)
        case _:
            return None
    return None if start is None or len(start) >= _DEPTH else (*start, key)
