"""Configs for Dragoon's devices: group, kind, and the form of device they are for (case C41).

Configs for other drivers are left alone, whatever they hold.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from dragoon.api.names import DRIVER_NAME
from dragoon.diagnose import vocabulary
from dragoon.diagnose.linting.claims import ClaimSpec, claim_spec
from dragoon.diagnose.linting.finding import Context, Finding, finding
from dragoon.diagnose.manifests import Item, Raw, listed, mapping, text
from dragoon.diagnose.near import did_you_mean
from dragoon.diagnose.vocabulary import Form

API_VERSION: Final = f"{DRIVER_NAME}/v1alpha1"
KINDS: Final[Mapping[str, Form]] = {
    "GpuConfig": "gpu",
    "SharedGpuConfig": "shared",
    "MigConfig": "mig",
}
"""The kinds of config, and the form of device that each is for (DESIGN section 2)."""


def check(item: Item, context: Context) -> Iterator[Finding]:
    """What is wrong with the configs of a claim, a template or a class."""
    spec = claim_spec(item)
    if spec is not None:
        entries, path = listed(spec.devices.get("config")), f"{spec.path}.devices.config"
    elif item.kind == "DeviceClass":
        entries, path = listed(mapping(item.raw.get("spec")).get("config")), "spec.config"
    else:
        return
    for index, entry in enumerate(entries):
        opaque = mapping(mapping(entry).get("opaque"))
        if text(opaque.get("driver")) == context.driver:
            where = f"{path}[{index}].opaque.parameters"
            parameters = mapping(opaque.get("parameters"))
            yield from _parameters(item, spec, mapping(entry), parameters, where)


def _parameters(
    item: Item, spec: ClaimSpec | None, entry: Raw, parameters: Raw, path: str
) -> Iterator[Finding]:
    version, kind = text(parameters.get("apiVersion")), text(parameters.get("kind"))
    if version != API_VERSION:
        yield finding(
            "DRG501", item, f"{path}.apiVersion", version or "none", f"apiVersion: {API_VERSION}"
        )
    elif kind not in KINDS:
        yield finding("DRG502", item, f"{path}.kind", kind or "none", did_you_mean(kind, KINDS))
    elif spec is not None:
        yield from _form(item, spec, entry, kind, path)


def _form(item: Item, spec: ClaimSpec, entry: Raw, kind: str, path: str) -> Iterator[Finding]:
    names = listed(entry.get("requests"))
    for wish in spec.wishes():
        if names and wish.name not in names and wish.name.partition("/")[0] not in names:
            continue
        form = vocabulary.CLASS_FORMS.get(wish.class_name)
        if form is not None and form != KINDS[kind]:
            right = next(one for one, of in KINDS.items() if of == form)
            message = f"{kind} for request {wish.name}, whose class {wish.class_name} gives {form}"
            yield finding("DRG503", item, f"{path}.kind", message, f"kind: {right}")
            return
