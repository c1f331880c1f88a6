"""The pods that a Workload will have, as the planner asks for them, and what they have to carry.

They do not exist yet: names and UIDs are made up, of characters that no real one has, so that they
are nobody's else. Pure.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dragoon.allocator.gang.model import PodAsk
from dragoon.allocator.gang.reading import pod_ask
from dragoon.api import gang, limits
from dragoon.errors import InvalidInputError
from dragoon.gang.kueue.model import PodSet, Raw, Workload

_NAME_LENGTH: Final = 63
_PODS_FIRST: Final = frozenset(
    ("Pod", "ReplicaSet", "Deployment", "StatefulSet", "LeaderWorkerSet")
)
"""Owners whose pods are there before Kueue admits them: our gate cannot be added any more."""

_TOPOLOGY: Final = "the topology assignment of Kueue"


class NotThereError(InvalidInputError):
    """A claim, a template or a flavor that the pods need is not there yet."""

    code = "NotThere"
    default_hint = "create it: the check is made again"
    default_retryable = True


@dataclass(frozen=True, slots=True)
class Needs:
    """What has to be read before the pods can be built, by name; each once, in order."""

    templates: tuple[str, ...]
    claims: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What was read: raw objects by name; what is not there is left out."""

    templates: Mapping[str, Raw]
    claims: Mapping[str, Raw]
    flavors: Mapping[str, Raw]


def needs(workload: Workload) -> Needs:
    """What the pods of a Workload name."""
    entries = [entry for podset in workload.podsets for entry in podset.claims]
    return Needs(
        templates=_names(entries, "resourceClaimTemplateName"),
        claims=_names(entries, "resourceClaimName"),
        flavors=tuple(dict.fromkeys(one for podset in workload.podsets for one in podset.flavors)),
    )


def pod_asks(workload: Workload, found: Found) -> tuple[PodAsk, ...]:
    """All pods of the Workload, those without claims too: they take of the nodes.

    Raises NotThereError, and InvalidInputError for an amount that cannot be read or for more pods
    than a gang may have: a pod set may count 2**31 - 1 of them.
    """
    count = sum(podset.count for podset in workload.podsets)
    if count > gang.MOST_MEMBERS:
        raise InvalidInputError(
            f"spec.podSets: found {count} pods, allowed are {gang.MOST_MEMBERS} where any of them "
            "uses a claim: they are placed together"
        )
    return tuple(ask for podset in workload.podsets for ask in _of_podset(workload, podset, found))


def _of_podset(workload: Workload, podset: PodSet, found: Found) -> Iterator[PodAsk]:
    first = pod_ask(_pod(workload, podset, found))
    if podset.has_topology:
        first = replace(first, unmodelled=(*first.unmodelled, _TOPOLOGY))
    for index in range(podset.count):
        uid = f"{workload.ref.uid}/{podset.name}/{index}"
        name = f"{workload.ref.name}-{podset.name}-{index}"
        claims = tuple(_claim(workload, entry, (name, uid), found) for entry in podset.claims)
        yield replace(first, name=name, uid=uid, claims=claims)


def _pod(workload: Workload, podset: PodSet, found: Found) -> Raw:
    """One pod as Kueue will have it made: with the labels and tolerations of its flavors."""
    spec: dict[str, Any] = dict(podset.template.get("spec") or {})
    selector, tolerations = dict(podset.node_selector), list(podset.tolerations)
    for name in podset.flavors:
        flavor = found.flavors.get(name)
        if flavor is None:
            raise NotThereError(f"ResourceFlavor {name} is not there")
        selector |= (flavor.get("spec") or {}).get("nodeLabels") or {}
        tolerations += (flavor.get("spec") or {}).get("tolerations") or ()
    spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **selector}
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *tolerations]
    return {
        "metadata": {"namespace": workload.ref.namespace, "name": podset.name, "uid": podset.name},
        "spec": spec,
    }


def _claim(workload: Workload, entry: Raw, pod: tuple[str, str], found: Found) -> Raw:
    """The claim of an entry. pod: its name and UID."""
    named = entry.get("resourceClaimName")
    if named:
        claim = found.claims.get(named)
        if claim is None:
            raise NotThereError(f"claim {named} is not there")
        return claim
    template = found.templates.get(entry.get("resourceClaimTemplateName") or "")
    if template is None:
        raise NotThereError(f"claim template {entry.get('resourceClaimTemplateName')} is not there")
    name, uid = (f"{one}/{entry['name']}" for one in pod)
    return {
        "metadata": {"namespace": workload.ref.namespace, "name": name, "uid": uid},
        "spec": (template.get("spec") or {}).get("spec") or {},
    }


def gang_label(workload: Workload) -> str:
    """The gang that the pods will be, empty where they will be none of ours.

    That of their template, else one named after the Workload; a single pod needs none.
    """
    labels = (_labels(podset).get(gang.LABEL) for podset in workload.podsets if podset.claims)
    own = next(filter(None, labels), "")
    if own or workload.members < 2 or _PODS_FIRST & set(workload.owners):
        return own
    return _named_after(workload.ref.name)


def podset_updates(workload: Workload) -> list[Raw]:
    """What Kueue has to add to the pods: whose they are, and that they are one gang.

    Kueue refuses to admit where a key is there with another value: what the template says stays.
    """
    label = gang_label(workload)
    declared = any(gang.LABEL in _labels(one) for one in workload.podsets)
    found: list[Raw] = []
    for podset in workload.podsets:
        if not podset.claims:
            continue
        update: dict[str, Any] = {
            "name": podset.name,
            "annotations": {gang.ANNOTATION_WORKLOAD: workload.ref.uid},
        }
        if label and not declared:
            update["labels"] = {gang.LABEL: label}
            # The Workload is the gang, whatever groups its job system makes of the pods.
            wanted = {gang.ANNOTATION_SIZE: str(workload.members), gang.ANNOTATION_SCOPE: "name"}
            said = _annotations(podset)
            update["annotations"] |= {
                name: text for name, text in wanted.items() if name not in said
            }
        found.append(update)
    return found


def _named_after(name: str) -> str:
    if limits.is_subdomain(name, _NAME_LENGTH):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _NAME_LENGTH - 9].rstrip('-.')}-{digest}"


def _labels(podset: PodSet) -> Raw:
    return (podset.template.get("metadata") or {}).get("labels") or {}


def _annotations(podset: PodSet) -> Raw:
    return (podset.template.get("metadata") or {}).get("annotations") or {}


def _names(entries: list[Raw], field: str) -> tuple[str, ...]:
    found = (entry.get(field) for entry in entries)
    return tuple(dict.fromkeys(name for name in found if name))
