"""Mistakes in constant formats: `"%d".format(["x"])` is refused before it is evaluated.

Source: cel-go 0.29 `ext/formatting.go`, which the API server runs at creation.
"""

from collections.abc import Mapping

from dragoon.cel.errors import ExpressionFailedError, Source
from dragoon.cel.library.formatting import ALLOWED, clauses
from dragoon.cel.syntax import Call, ListOf, Literal, MapOf, Node
from dragoon.cel.types import DYN, Type


def check_format(source: Source, call: Call, types: Mapping[Node, Type]) -> None:
    """Checks one call of `format`; says nothing where format or arguments are not constant.

    Raises CompileError.
    """
    if not isinstance(call.target, Literal) or not isinstance(call.args[0], ListOf):
        return
    try:
        verbs = [clause.verb for clause in clauses(call.target.value) if clause.verb]
    except ExpressionFailedError as error:
        raise source.wrong(call.target.start, error.message) from error
    arguments = call.args[0].children()
    if len(verbs) != len(arguments):
        raise source.wrong(
            call.args[0].start, f"the format takes {len(verbs)} values, found {len(arguments)}"
        )
    for verb, argument in zip(verbs, arguments, strict=True):
        _check_argument(source, verb, argument, types)


def _check_argument(source: Source, verb: str, argument: Node, types: Mapping[Node, Type]) -> None:
    found = types[argument]
    if found != DYN and found.kind not in ALLOWED[verb]:
        raise source.wrong(argument.start, f"%{verb} does not write the type {found}")
    if verb == "s" and isinstance(argument, ListOf | MapOf):
        for part in argument.children():
            _check_argument(source, verb, part, types)
