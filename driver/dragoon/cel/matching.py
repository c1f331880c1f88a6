"""Which signatures the types of some arguments fit, and the type that comes of it.

Where several fit with different results, the result is dyn, as in cel-go.
"""

from collections.abc import Iterable

from dragoon.cel.errors import CompileError, Source
from dragoon.cel.functions import Overload
from dragoon.cel.library import FUNCTIONS, UNSUPPORTED, UNSUPPORTED_WITH
from dragoon.cel.library.lists import COMPARABLE
from dragoon.cel.signatures import INDEX, KEY, MEMBERSHIP
from dragoon.cel.syntax import Call, Conditional, Index, Node, SortBy
from dragoon.cel.types import BOOL, DYN, Type, Unifier, list_of, optional_of, unwrapped


class Matching:
    """The signatures of one expression. What is learned of its types is kept in `types`.

    Every method raises CompileError where nothing fits.
    """

    def __init__(self, source: Source, types: Unifier) -> None:
        self._source = source
        self._types = types

    def function(
        self, node: Call, name: str, given: tuple[Type, ...], *, member: bool
    ) -> tuple[Type, tuple[Overload, ...]]:
        """The result of a function, and its overloads that fit.

        Raises UnsupportedExpressionError for a function that Dragoon does not have.
        """
        reason = UNSUPPORTED.get(name) or UNSUPPORTED_WITH.get((name, len(given)))
        if reason is not None:
            raise self._source.unsupported(node.start, f"{name}(): {reason}")
        if name not in FUNCTIONS:
            raise self._source.wrong(node.start, f"undeclared reference to {name!r}")
        results: list[Type] = []
        fitting: list[Overload] = []
        for overload in FUNCTIONS[name]:
            *params, result = self._types.instance((*overload.params, overload.result))
            if overload.member == member and self._types.assignable(given, params):
                fitting.append(overload)
                results.append(self._types.resolved(result))
        return self._one(results, node, name, given), tuple(fitting)

    def index(self, node: Index, given: tuple[Type, Type]) -> Type:
        """The result of `[]`. given: what is indexed, and by what."""
        results: list[Type] = []
        for signature in INDEX:
            operand, index, result = self._types.instance(signature)
            if self._types.assignable(given, (operand, index)):
                result = self._types.resolved(result)
                results.append(optional_of(unwrapped(result)[0]) if node.optional else result)
        return self._one(results, node, "[]", given)

    def equality(self, node: Call, given: tuple[Type, ...]) -> Type:
        """The result of `==` or `!=`."""
        fresh = self._types.fresh()
        if not self._types.assignable(given, (fresh, fresh)):
            raise self._refused(node, node.function, given)
        return BOOL

    def membership(self, node: Call, given: tuple[Type, ...]) -> Type:
        """The result of `in`."""
        fits = False
        for container in MEMBERSHIP:
            fits |= self._types.assignable(given, self._types.instance((KEY, container)))
        if not fits:
            raise self._refused(node, "in", given)
        return BOOL

    def conditional(self, node: Conditional, given: tuple[Type, Type, Type]) -> Type:
        """The result of `?:`."""
        result = self._types.fresh()
        if not self._types.assignable(given, (BOOL, result, result)):
            raise self._refused(node, "?:", given)
        return self._types.resolved(result)

    def sorting(self, node: SortBy, items: Type, keys: Type) -> Type:
        """The type of a list of items that is sorted by a list of keys."""
        results: list[Type] = []
        for type_ in COMPARABLE:
            whole = list_of(self._types.fresh())
            if self._types.assignable((items, keys), (whole, list_of(type_))):
                results.append(self._types.resolved(whole))
        return self._one(results, node, "sortBy", (items, keys))

    def _one(self, results: list[Type], node: Node, name: str, given: Iterable[Type]) -> Type:
        """The result of all signatures that fit."""
        if not results:
            raise self._refused(node, name, given)
        return results[0] if len(set(results)) == 1 else DYN

    def _refused(self, node: Node, name: str, given: Iterable[Type]) -> CompileError:
        types = ", ".join(str(self._types.resolved(type_, final=True)) for type_ in given)
        return self._source.wrong(node.start, f"no matching overload for {name!r} on ({types})")
