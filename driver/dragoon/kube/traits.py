"""How each kind of object is served: which parts a write may touch, what the server adds. Pure.

Sources: the registry strategies of kube-apiserver 1.37.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dragoon.api.slice_validation import check_slice
from dragoon.kube import claimrules
from dragoon.kube.port import (
    CLAIMS,
    CLASSES,
    EVENTS,
    GANGS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    SLICES,
    TAINT_RULES,
    TEMPLATES,
    Object,
    Resource,
)

Findings = Iterable[object]
"""What is wrong with an object: one entry a finding, each readable as a string."""


def _nothing(_old: Object | None, _new: Object, _now: str) -> None:
    """No defaults."""


def _no_findings(_old: Object | None, _new: Object) -> Findings:
    return ()


@dataclass(frozen=True, slots=True)
class Traits:
    """The behaviour of one resource.

    status: has a status subresource: writes go to the status or to the rest, never to both.
    generation: metadata.generation counts the changes of spec.
    creates_status: the status of a new object is kept (nodes: the kubelet registers with one).
    unconditional: a replace may come without a resourceVersion.
    fields: field selectors besides metadata.name and metadata.namespace.
    immutable: paths that keep their value for life.
    default: (old or None, new, now as RFC 3339) fills in what the server adds, in place.
    check: (old or None, new) tells what is wrong.
    """

    status: bool = False
    generation: bool = False
    creates_status: bool = False
    unconditional: bool = True
    fields: tuple[str, ...] = ()
    immutable: tuple[tuple[str, ...], ...] = ()
    default: Callable[[Object | None, Object, str], None] = _nothing
    check: Callable[[Object | None, Object], Findings] = _no_findings

    @property
    def selectable(self) -> tuple[str, ...]:
        return ("metadata.name", "metadata.namespace", *self.fields)


def _default_pod(old: Object | None, new: Object, _now: str) -> None:
    if old is None:
        new["status"] = {"phase": "Pending"}


def _default_slice(_old: Object | None, new: Object, now: str) -> None:
    for device in new.get("spec", {}).get("devices") or ():
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", now)


def _check_slice(_old: Object | None, new: Object) -> Findings:
    return check_slice(new)


def _default_event(_old: Object | None, new: Object, _now: str) -> None:
    new.setdefault("type", "Normal")


def _check_event(old: Object | None, new: Object) -> Findings:
    for name in ("eventTime", "reportingController", "reportingInstance", "action", "reason"):
        if not new.get(name):
            yield f"{name}: Required value"
    for name, limit in (("reportingInstance", 128), ("action", 128), ("reason", 128)):
        if len(new.get(name) or "") > limit:
            yield f"{name}: Too long: may not be more than {limit} bytes"
    if len(new.get("note") or "") > 1024:
        yield "note: Too long: may not be more than 1024 bytes"
    regarding = new.get("regarding", {}).get("namespace") or "default"
    if regarding != new["metadata"].get("namespace"):
        yield "involvedObject.namespace: Invalid value: does not match event.namespace"
    series = new.get("series")
    if series is not None and series.get("count", 0) < 2:
        yield "series.count: Invalid value: should be at least 2"
    if old is not None:
        for name in ("reason", "regarding", "action", "type", "note", "eventTime"):
            if old.get(name) != new.get(name):
                yield f"{name}: Invalid value: field is immutable"


CUSTOM: Final = Traits(status=True, generation=True, unconditional=False)
"""A custom resource with a status subresource, like Dragoon's Gang."""

TRAITS: Final[Mapping[Resource, Traits]] = {
    NODES: Traits(status=True, creates_status=True, fields=("spec.unschedulable",)),
    PODS: Traits(
        status=True,
        generation=True,
        fields=("spec.nodeName", "status.phase", "spec.schedulerName"),
        default=_default_pod,
    ),
    EVENTS: Traits(
        fields=("reason", "type", "regarding.name", "regarding.namespace", "regarding.kind"),
        default=_default_event,
        check=_check_event,
    ),
    NAMESPACES: Traits(status=True, fields=("status.phase",)),
    SLICES: Traits(
        generation=True,
        fields=("spec.nodeName", "spec.driver", "spec.pool.name"),
        immutable=(("spec", "driver"), ("spec", "pool", "name"), ("spec", "nodeName")),
        default=_default_slice,
        check=_check_slice,
    ),
    CLAIMS: Traits(
        status=True,
        immutable=(("spec",),),
        default=claimrules.default,
        check=claimrules.check,
    ),
    TEMPLATES: Traits(immutable=(("spec",),)),
    CLASSES: Traits(generation=True),
    TAINT_RULES: Traits(status=True, generation=True),
    GANGS: CUSTOM,
    JOBS: Traits(status=True, generation=True),
    LEASES: Traits(unconditional=False),
    PRIORITY_CLASSES: Traits(generation=True),
}


def traits_of(resource: Resource) -> Traits:
    """How the API server treats a resource; one that it is not built with as a custom one."""
    return TRAITS.get(resource, CUSTOM)


def known_groups() -> dict[str, tuple[str, ...]]:
    """The named API groups in the table, and the versions of each."""
    found: dict[str, dict[str, None]] = {}
    for one in TRAITS:
        found.setdefault(one.group, {})[one.version] = None
    return {group: tuple(versions) for group, versions in found.items() if group}


def known_plurals(group: str, version: str) -> frozenset[str]:
    """What of an API group's version is in the table."""
    return frozenset(one.plural for one in TRAITS if (one.group, one.version) == (group, version))


def at(found: Any, path: tuple[str, ...]) -> Any:
    """The value at a path of object keys; None where there is none."""
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found
