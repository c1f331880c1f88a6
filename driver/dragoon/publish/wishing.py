"""What a node wants published: its label over the settings, and what Kubernetes allows. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dragoon.api import names
from dragoon.api.forms import DEFAULT, parse_forms
from dragoon.errors import InvalidInputError
from dragoon.publish.choosing import Wishes
from dragoon.publish.floor import Floor


@dataclass(frozen=True, slots=True)
class Wanted:
    """The forms that count.

    source: what decided them: settings, label or Kubernetes. problems: what else was asked for.
    """

    wishes: Wishes
    source: str = "settings"
    problems: tuple[str, ...] = ()


def wanted(node: Mapping[str, Any], settings: Wishes, floor: Floor) -> Wanted:
    """The wishes of a Node object. A label that cannot be read is told, and does not count."""
    labelled, told = _labelled(node, settings)
    wishes, source = (settings, "settings") if labelled is None else (labelled, "label")
    limited = not floor.forms and wishes.forms != DEFAULT
    if floor.problem and (limited or floor.forms or not floor.publishes):
        told.append(floor.problem)
    if limited:
        wishes, source = replace(wishes, forms=DEFAULT), "Kubernetes"
    return Wanted(wishes, source, tuple(told))


def _labelled(node: Mapping[str, Any], settings: Wishes) -> tuple[Wishes | None, list[str]]:
    label = (node["metadata"].get("labels") or {}).get(names.LABEL_FORMS)
    if label is None:
        return None, []
    try:
        forms = parse_forms(label, f"label {names.LABEL_FORMS}")
    except InvalidInputError as error:
        return None, [f"{error}; the settings count: {', '.join(settings.forms)}"]
    return replace(settings, forms=forms), []
