"""Constraints on attributes that no device has."""

from collections.abc import Iterator
from typing import Final

from dragoon.diagnose import vocabulary
from dragoon.diagnose.linting.claims import ClaimSpec, claim_spec
from dragoon.diagnose.linting.finding import Context, Finding, finding
from dragoon.diagnose.manifests import Item, Raw, listed, mapping, text
from dragoon.diagnose.near import near
from dragoon.diagnose.vocabulary import Vocabulary

_FIELDS: Final = ("matchAttribute", "distinctAttribute")


def check(item: Item, context: Context) -> Iterator[Finding]:
    """What is wrong with the attributes of a claim's constraints."""
    spec = claim_spec(item)
    if spec is None:
        return
    for index, entry in enumerate(listed(spec.devices.get("constraints"))):
        for field in _FIELDS:
            name = text(mapping(entry).get(field))
            path = f"{spec.path}.devices.constraints[{index}].{field}"
            if name:
                yield from _attribute(spec, mapping(entry), name, path, context)


def _attribute(
    spec: ClaimSpec, constraint: Raw, name: str, path: str, context: Context
) -> Iterator[Finding]:
    known = list(vocabulary.qualified_names(context.driver))
    domain, slash, short = name.partition("/")
    meant = vocabulary.meant(short if slash else name)
    close = vocabulary.fully_qualified(meant, context.driver) if meant else near(name, known)
    if not slash:
        instead = close or vocabulary.fully_qualified(name, context.driver)
        yield finding("DRG208", spec.item, path, f"{name}, which has no domain", instead)
        return
    words = Vocabulary.of(domain, context.driver)
    if words is None:
        if context.driver.endswith(f".{domain}"):
            yield finding(
                "DRG210", spec.item, path, name, vocabulary.fully_qualified(short, context.driver)
            )
        return
    forms = words.forms("attributes", short)
    if not forms:
        instead = close or f"there are {', '.join(known)}"
        yield finding("DRG210", spec.item, path, name, instead)
        return
    for wish in _covered(spec, constraint):
        form = vocabulary.CLASS_FORMS.get(wish[1])
        if form is not None and form not in forms:
            message = f"{name}, which devices of class {wish[1]} do not have (request {wish[0]})"
            yield finding("DRG210", spec.item, path, message, f"devices of type {', '.join(forms)}")


def _covered(spec: ClaimSpec, constraint: Raw) -> Iterator[tuple[str, str]]:
    """(request, class) of everything the constraint is about."""
    names = listed(constraint.get("requests"))
    for wish in spec.wishes():
        if not names or wish.name in names or wish.name.partition("/")[0] in names:
            yield wish.name, wish.class_name
