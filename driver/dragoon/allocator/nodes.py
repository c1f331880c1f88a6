"""Whether a slice or device can be used on a node.

Source: k8s.io/component-helpers 0.37 `scheduling/corev1/nodeaffinity` (terms are alternatives, the
parts of a term are all demanded, an empty term matches nothing) and `pools.go` of the allocator.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoon.allocator.fields import items
from dragoon.allocator.model import Node, NodeSelection, Raw
from dragoon.errors import InvalidInputError, UnsupportedError

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


def matches(selection: NodeSelection, node: Node) -> bool:
    """Whether the selection admits the node; one in which nothing is set admits none.

    Raises InvalidInputError for an operator or number that a node selector does not allow.
    """
    if selection.node_name:
        return selection.node_name == node.name
    if selection.all_nodes:
        return True
    if selection.selector is None:
        return False
    return any(_term(term, node) for term in items(selection.selector, "nodeSelectorTerms"))


def _term(term: Raw, node: Node) -> bool:
    expressions, fields = items(term, "matchExpressions"), items(term, "matchFields")
    if not expressions and not fields:
        return False
    return all(_requirement(one, node.labels) for one in expressions) and all(
        _field(one, node) for one in fields
    )


def _field(requirement: Raw, node: Node) -> bool:
    if requirement.get("key") != "metadata.name":
        raise UnsupportedError(
            f"node selector: matchFields key {requirement.get('key')!r}, known is metadata.name"
        )
    return _requirement(requirement, {"metadata.name": node.name})


def _requirement(requirement: Raw, labels: Mapping[str, str]) -> bool:
    operator = requirement.get("operator")
    test = _OPERATORS.get(str(operator))
    if test is None:
        raise InvalidInputError(
            f"node selector: operator {operator!r}, allowed are {', '.join(_OPERATORS)}"
        )
    return test(labels.get(requirement["key"]), items(requirement, "values"))


def _number(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def _compared(label: str | None, values: tuple[Any, ...], sign: int) -> bool:
    if label is None or len(values) != 1:
        return False
    left, right = _number(label), _number(str(values[0]))
    return left is not None and right is not None and (left > right) - (left < right) == sign


_OPERATORS: Final[dict[str, Callable[[str | None, tuple[Any, ...]], bool]]] = {
    "In": lambda label, values: label is not None and label in values,
    "NotIn": lambda label, values: label is None or label not in values,
    "Exists": lambda label, _: label is not None,
    "DoesNotExist": lambda label, _: label is None,
    "Gt": lambda label, values: _compared(label, values, 1),
    "Lt": lambda label, values: _compared(label, values, -1),
}
