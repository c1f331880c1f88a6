"""Which attributes and capacities of a device a selector reads.

Two devices that are equal in these match or do not match alike, so the selector is evaluated once.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from dragoon.cel.parser import parse
from dragoon.cel.syntax import Call, Ident, Index, Literal, Node, Select
from dragoon.errors import DragoonError

_DEVICE: Final = "device"
_MAPS: Final = frozenset(("attributes", "capacity"))
_ALWAYS: Final = frozenset(("driver", "allowMultipleAllocations"))


class Read(NamedTuple):
    """`attributes` or `capacity`, the domain, and the name in it."""

    part: str
    domain: str
    name: str


@lru_cache(maxsize=512)
def reads(text: str) -> frozenset[Read] | None:
    """What a selector reads; None where that cannot be told from the text, so that all counts.

    The driver and allowMultipleAllocations are always taken to be read.
    """
    try:
        tree = parse(text)
    except DragoonError:
        return None
    found: set[Read] = set()
    return frozenset(found) if _collect(tree, found) else None


def _collect(node: Node, found: set[Read]) -> bool:
    """Adds what this part reads; False if it reads more than can be named."""
    if isinstance(node, Call) and node.function == "in":
        key, container = node.args
        path = _path(container)
        if path is not None and len(path) == 2 and isinstance(key, Literal):
            return _add((*path, str(key.value)), found)
    path = _path(node)
    if path is not None:
        return _add(path, found)
    return all(_collect(child, found) for child in node.children())


def _add(path: tuple[str, ...], found: set[Read]) -> bool:
    if len(path) == 1 and path[0] in _ALWAYS:
        return True
    if len(path) != 3 or path[0] not in _MAPS:
        return False
    found.add(Read(*path))
    return True


def _path(node: Node) -> tuple[str, ...] | None:
    """The constant keys that lead from the device to this part, None if it is no such path.

    A variable of a macro that is named like the device only makes more be read than is.
    """
    match node:
        case Ident(name=name) if name == _DEVICE:
            return ()
        case Select(operand=operand, field=key):
            start = _path(operand)
        case Index(operand=operand, index=Literal(value=str(key))):
            start = _path(operand)
        case _:
            return None
    return None if start is None or len(start) >= 3 else (*start, key)
