"""All rules over all objects, in the order of the files."""

from collections.abc import Callable, Iterator
from typing import Final

from dragoon.api.names import DRIVER_NAME
from dragoon.diagnose.linting import (
    capacities,
    constraints,
    gangs,
    opaque,
    references,
    selectors,
    shapes,
    versions,
)
from dragoon.diagnose.linting.devices import published
from dragoon.diagnose.linting.finding import Context, Finding
from dragoon.diagnose.manifests import Item, Manifests
from dragoon.diagnose.snapshot import ClusterSnapshot

_Rule = Callable[[Item, Context], Iterator[Finding]]

_RULES: Final[tuple[_Rule, ...]] = (
    versions.check,
    shapes.check,
    references.check,
    selectors.check,
    constraints.check,
    capacities.check,
    opaque.check,
    gangs.check,
)


def lint(
    manifests: Manifests, snapshot: ClusterSnapshot | None = None, *, driver: str = DRIVER_NAME
) -> tuple[Finding, ...]:
    """Every finding in the manifests. With a snapshot also what only a cluster can tell."""
    devices = () if snapshot is None else published(snapshot.slices)
    context = Context(manifests, snapshot, driver, devices)
    findings = [
        Finding("DRG001", bad.origin, "", "", bad.problem, "YAML") for bad in manifests.unreadable
    ]
    findings += [
        Finding("DRG002", bad.origin, "", "", bad.problem, "an object with apiVersion and kind")
        for bad in manifests.foreign
    ]
    for item in manifests.items:
        for rule in _RULES:
            findings += rule(item, context)
    return tuple(sorted(findings, key=lambda one: (one.origin.file, one.origin.document)))
