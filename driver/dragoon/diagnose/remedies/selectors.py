"""Changes of a selector: a guard, another amount, one clause less."""

from collections.abc import Iterator
from typing import Final

from dragoon.cel.parser import parse
from dragoon.cel.syntax import Logical
from dragoon.diagnose.linting import wording
from dragoon.diagnose.linting.reading import reads
from dragoon.diagnose.manifests import Raw, listed, mapping, text
from dragoon.diagnose.remedies.change import MOST, Change, Fields, Path, edited, percent
from dragoon.errors import DragoonError
from dragoon.quantity import Quantity

_GIB: Final = 2**30


def changes(claim: Raw, fields: Fields, sizes: dict[str, list[Quantity]]) -> Iterator[Change]:
    """Everything that could be changed in the selectors of a request."""
    for index, one in enumerate(listed(fields.raw.get("selectors"))):
        expression = text(mapping(mapping(one).get("cel")).get("expression"))
        whole: Path = (*fields.path, "selectors", index)
        path: Path = (*whole, "cel", "expression")
        try:
            for kind, magnitude, better in _texts(expression, sizes):
                changed = edited(claim, path, better)
                yield Change(kind, magnitude, changed, path, expression, better)
        except DragoonError:
            pass  # An expression that cannot be read can only be dropped.
        yield Change("clause", 100, edited(claim, whole, None), path, expression, "")


def _texts(expression: str, sizes: dict[str, list[Quantity]]) -> Iterator[tuple[str, int, str]]:
    """(kind, magnitude, other text) for each part that can be changed."""
    found = reads(expression)
    for read in found.reads:
        better = "" if read.guarded else wording.guarded(found, read)
        if better:
            yield "guard", 1, better
    named = {read.name for read in found.reads if read.kind == "capacity"}
    for constant, wanted in wording.quantities(expression):
        for amount in _near(wanted, [size for name in named for size in sizes.get(name, ())]):
            better = wording.with_constant(expression, constant, _written(amount))
            if better:
                yield "amount", percent(wanted, amount), better
    tree = parse(expression)
    if isinstance(tree, Logical) and tree.all:
        parts = [expression[part.start : part.end] for part in tree.operands]
        for index in range(len(parts)):
            better = wording.first_that_compiles(
                [" && ".join(_bracketed(part) for at, part in enumerate(parts) if at != index)]
            )
            if better:
                yield "clause", 1, better


def _bracketed(part: str) -> str:
    """A clause that can stand beside others: the text of a node has no brackets around it."""
    tree = parse(part)
    return part if not isinstance(tree, Logical) else f"({part})"


def _near(wanted: Quantity, sizes: list[Quantity]) -> list[Quantity]:
    """The amounts nearest to the wanted one, on both sides of it."""
    other = {size for size in sizes if size != wanted}
    return sorted(other, key=lambda size: (percent(wanted, size), str(size)))[:MOST]


def _written(amount: Quantity) -> str:
    """Rounded down to whole Gi where it has some: what people write."""
    whole = amount.as_approximate_int() // _GIB
    return f"{whole}Gi" if whole else str(amount)
