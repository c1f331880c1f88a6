"""Whether a slice or device can be used on a node.

Source: k8s.io/component-helpers 0.37 `scheduling/corev1/nodeaffinity` (terms are alternatives, the
parts of a term are all demanded, an empty term matches nothing, a selector with one wrong part is
wrong as a whole) and `pools_incubating.go` of the allocator.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoon.allocator.fields import items
from dragoon.allocator.model import Node, NodeSelection, Raw
from dragoon.errors import InvalidInputError

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64: Final = range(-(2**63), 2**63)
_FIELD_OPERATORS: Final = frozenset(("In", "NotIn"))


class NodeSelectorError(InvalidInputError):
    """A node selector that cannot be read: kube-scheduler's whole attempt ends."""

    code = "NodeSelector"


def matches(selection: NodeSelection, node: Node) -> bool:
    """Whether the selection admits the node; one in which nothing is set admits none.

    Raises NodeSelectorError for an operator, number or field that a node selector does not allow.
    """
    if selection.node_name:
        return selection.node_name == node.name
    if selection.all_nodes:
        return True
    if selection.selector is None:
        return False
    # All terms, not up to the first that matches: a wrong one is an error wherever it stands.
    met = [_term(term, node) for term in items(selection.selector, "nodeSelectorTerms")]
    return any(met)


def _term(term: Raw, node: Node) -> bool:
    expressions, fields = items(term, "matchExpressions"), items(term, "matchFields")
    if not expressions and not fields:
        return False
    met = [_requirement(one, node.labels) for one in expressions]
    return all(met + [_field(one, node) for one in fields])


def _field(requirement: Raw, node: Node) -> bool:
    if requirement.get("key") != "metadata.name":
        raise NodeSelectorError(
            f"node selector: matchFields key {requirement.get('key')!r}, allowed is metadata.name"
        )
    operator, values = requirement.get("operator"), items(requirement, "values")
    if operator not in _FIELD_OPERATORS or len(values) != 1:
        raise NodeSelectorError(
            f"node selector: matchFields: found {operator!r} with {len(values)} values, allowed are "
            "In and NotIn with one value"
        )
    return bool((values[0] == node.name) == (operator == "In"))


def _requirement(requirement: Raw, labels: Mapping[str, str]) -> bool:
    operator, values = requirement.get("operator"), items(requirement, "values")
    test = _OPERATORS.get(str(operator))
    if test is None:
        raise NodeSelectorError(
            f"node selector: operator {operator!r}, allowed are {', '.join(_OPERATORS)}"
        )
    minimum, maximum = _VALUES[str(operator)]
    if not minimum <= len(values) <= maximum:
        raise NodeSelectorError(f"node selector: operator {operator} with {len(values)} values")
    return test(labels.get(requirement["key"]), values)


def _number(text: str) -> int | None:
    """A 64-bit number as Go reads it, None for anything else."""
    if not _INTEGER.fullmatch(text) or len(text.lstrip("+-0")) > len(str(2**63)):
        return None
    number = int(text)
    return number if number in _INT64 else None


def _compared(label: str | None, values: tuple[Any, ...], sign: int) -> bool:
    right = _number(str(values[0]))
    if right is None:
        raise NodeSelectorError(f"node selector: found {values[0]!r}, allowed is a number")
    left = None if label is None else _number(label)
    return left is not None and (left > right) - (left < right) == sign


_OPERATORS: Final[dict[str, Callable[[str | None, tuple[Any, ...]], bool]]] = {
    "In": lambda label, values: label is not None and label in values,
    "NotIn": lambda label, values: label is None or label not in values,
    "Exists": lambda label, _: label is not None,
    "DoesNotExist": lambda label, _: label is None,
    "Gt": lambda label, values: _compared(label, values, 1),
    "Lt": lambda label, values: _compared(label, values, -1),
}
_MANY: Final = 2**31
_VALUES: Final = {
    "In": (1, _MANY),
    "NotIn": (1, _MANY),
    "Exists": (0, 0),
    "DoesNotExist": (0, 0),
    "Gt": (1, 1),
    "Lt": (1, 1),
}
"""Fewest and most values of each operator."""
