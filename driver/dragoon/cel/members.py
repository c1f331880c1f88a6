"""Members of the lists and maps of an expression: in each one all must be of one type."""

from collections.abc import Sequence

from dragoon.cel.errors import Source
from dragoon.cel.syntax import Node
from dragoon.cel.types import DYN, Type, Unifier


class Members:
    """What the lists and maps of one expression hold. Grows while that is checked."""

    def __init__(self, source: Source, types: Unifier) -> None:
        self._source = source
        self._types = types
        self._rows: list[tuple[tuple[Node, Type], ...]] = []

    def joined(self, members: Sequence[tuple[Node, Type]], *, may_differ: bool) -> Type:
        """The type of all members of a list, or all keys or values of a map."""
        if not may_differ:
            self._rows.append(tuple(members))
        joined: Type | None = None
        for _, type_ in members:
            joined = type_ if joined is None else self._types.joined(joined, type_) or DYN
        return self._types.fresh() if joined is None else joined

    def check_homogeneous(self) -> None:
        """Raises CompileError for a list or map whose members have different types, dyn included.

        Only when all of the expression has been checked are the types known to the end.
        Source: cel-go's ValidateHomogeneousAggregateLiterals, which Kubernetes switches on.
        """
        for members in self._rows:
            first = self._types.resolved(members[0][1], final=True) if members else DYN
            for node, type_ in members[1:]:
                found = self._types.resolved(type_, final=True)
                if found != first:
                    raise self._source.wrong(
                        node.start, f"expected type {first} as before it, found {found}"
                    )
