"""Configs for Dragoon's devices, decoded as strictly as the node does (case C41).

Configs for other drivers are left alone, whatever they hold.
"""

from collections.abc import Iterator

from dragoon.api import opaque_config
from dragoon.api.opaque_config import Block
from dragoon.diagnose import vocabulary
from dragoon.diagnose.linting.claims import ClaimSpec, claim_spec
from dragoon.diagnose.linting.finding import Context, Finding, finding
from dragoon.diagnose.manifests import Item, Raw, listed, mapping, text
from dragoon.errors import InvalidInputError

_CODES = {"apiVersion": "DRG501", "kind": "DRG502"}


def check(item: Item, context: Context) -> Iterator[Finding]:
    """What is wrong with the configs of a claim, a template or a class."""
    spec = claim_spec(item)
    if spec is not None:
        entries, path = listed(spec.devices.get("config")), f"{spec.path}.devices.config"
    elif item.kind == "DeviceClass":
        entries, path = listed(mapping(item.raw.get("spec")).get("config")), "spec.config"
    else:
        return
    for index, entry in enumerate(map(mapping, entries)):
        opaque = mapping(entry.get("opaque"))
        if text(opaque.get("driver")) == context.driver:
            where = f"{path}[{index}].opaque.parameters"
            yield from _block(item, spec, entry, where)


def _block(item: Item, spec: ClaimSpec | None, entry: Raw, path: str) -> Iterator[Finding]:
    try:
        config = opaque_config.decode(mapping(entry.get("opaque")).get("parameters"), path)
    except InvalidInputError as error:
        field = error.message.partition(":")[0].rpartition(".")[2]
        yield _finding(_CODES.get(field, "DRG504"), item, error)
        return
    if spec is None:
        return
    requests = tuple(text(name) for name in listed(entry.get("requests")))
    forms = [
        (wish.name, form)
        for wish in spec.wishes()
        if (form := vocabulary.CLASS_FORMS.get(wish.class_name)) is not None
    ]
    try:
        opaque_config.check_forms([Block(path, requests, config)], forms)
    except InvalidInputError as error:
        yield _finding("DRG503", item, error)


def _finding(code: str, item: Item, error: InvalidInputError) -> Finding:
    """The decoder's message is `path: found ..., allowed ...`."""
    path, _, message = error.message.partition(": ")
    return finding(code, item, path, message, error.hint)
