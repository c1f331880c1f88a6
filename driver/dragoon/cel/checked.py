"""What a check finds out about an expression, for all that work with a checked tree."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dragoon.cel.errors import Source
from dragoon.cel.functions import Overload
from dragoon.cel.syntax import Ident, Node, Select
from dragoon.cel.types import Type

DEVICE_NAME: Final = "device"
"""The only variable of a device selector."""


@dataclass(frozen=True, slots=True)
class Callee:
    """What a call means: the function, the signatures that fit, the nodes that are arguments."""

    name: str
    overloads: tuple[Overload, ...]
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """A tree without mistakes.

    callees: of all calls but those of `==`, `!=` and `in`. types: of all nodes, with nothing open.
    """

    source: Source
    tree: Node
    callees: Mapping[Node, Callee]
    types: Mapping[Node, Type]


def dotted(node: Node) -> str | None:
    """A name such as `sets` or `a.b`, None for anything else."""
    match node:
        case Ident(name=name):
            return name
        case Select(operand=operand, field=name, optional=False, test=False):
            prefix = dotted(operand)
            return None if prefix is None else f"{prefix}.{name}"
        case _:
            return None
