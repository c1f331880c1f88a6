"""The claims of a pod, and pods as a controller would make them from a workload."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dragoon.api.names import ENDED
from dragoon.diagnose.counting import counted_claim
from dragoon.diagnose.documents import Origin
from dragoon.diagnose.linting import shapes
from dragoon.diagnose.manifests import Item, Raw, listed, mapping, text
from dragoon.diagnose.snapshot import ClusterSnapshot, identity, with_namespace
from dragoon.diagnose.workloads import PER_NODE, PodTemplate


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of a pod in its order.

    missing: those that are not there, in words. wrong: why the API would refuse some of them.
    """

    pending: tuple[Raw, ...] = ()
    allocated: tuple[Raw, ...] = ()
    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @classmethod
    def of(cls, claims: Sequence[Raw], missing: Sequence[str] = ()) -> Self:
        """Sorts claims."""
        pending = tuple(one for one in claims if not is_allocated(one))
        return cls(
            pending,
            tuple(one for one in claims if is_allocated(one)),
            tuple(missing),
            tuple(problem for one in pending for problem in _wrong(one)),
        )


def claims_of(pod: Raw, snapshot: ClusterSnapshot) -> PodClaims:
    """The claims that a pod uses, that for extended resources among them.

    One that is still to be made counts as made.
    """
    return _sorted((*_named(pod, snapshot), counted_claim(pod, snapshot)))


def named_claims_of(pod: Raw, snapshot: ClusterSnapshot) -> PodClaims:
    """The claims of `spec.resourceClaims`: they are there before the pod is scheduled."""
    return _sorted(_named(pod, snapshot))


def _named(pod: Raw, snapshot: ClusterSnapshot) -> Iterator[Raw | str | None]:
    namespace, _ = identity(pod)
    for entry in listed(mapping(pod.get("spec")).get("resourceClaims")):
        yield _claim(pod, mapping(entry), namespace, snapshot)


def _sorted(found: Iterable[Raw | str | None]) -> PodClaims:
    """Claims, and texts about those that are missing."""
    every = tuple(found)
    missing = [one for one in every if isinstance(one, str)]
    return PodClaims.of([one for one in every if one and not isinstance(one, str)], missing)


def _wrong(claim: Raw) -> Iterator[str]:
    """What is wrong with the layout of a claim: in files it can be anything."""
    namespace, _ = identity(claim)
    whole = {"apiVersion": "resource.k8s.io/v1", **claim, "kind": "ResourceClaim"}
    for found in shapes.check(Item(Origin(""), whole, namespace)):
        yield f"{found.object}, {found.path}: {found.found}; {found.instead or found.code}"


def has_ended(pod: Raw) -> bool:
    """Whether the pod is over: it holds nothing any more, and waits for nothing."""
    return mapping(pod.get("status")).get("phase") in ENDED


def is_allocated(claim: Raw) -> bool:
    """Whether the claim has devices."""
    return bool(mapping(claim.get("status")).get("allocation"))


def uses(pod: Raw, claim: Raw) -> bool:
    """Whether the pod names the claim, or has had it made."""
    namespace, name = identity(claim)
    if identity(pod)[0] != namespace:
        return False
    named = [
        text(mapping(entry).get("resourceClaimName"))
        for entry in listed(mapping(pod.get("spec")).get("resourceClaims"))
    ]
    status = mapping(mapping(pod.get("status")).get("extendedResourceClaimStatus"))
    return name in (*named, *_made(pod).values(), text(status.get("resourceClaimName")))


def pods_of(template: PodTemplate, nodes: Sequence[Raw]) -> Iterator[Raw]:
    """The pods of a workload; of a DaemonSet one bound to each node."""
    if template.count == PER_NODE:
        for node in nodes:
            _, name = identity(node)
            yield _pod(template, f"{template.name}-{name}", {"nodeName": name})
    elif template.item.kind == "Pod":
        yield with_namespace(template.item)
    else:
        for number in range(template.count):
            yield _pod(template, f"{template.name}-{number}", {})


def _pod(template: PodTemplate, name: str, more: dict[str, Any]) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": template.item.namespace,
            "labels": dict(template.labels),
            "annotations": dict(template.annotations),
        },
        "spec": {**template.spec, **more},
    }


def _claim(pod: Raw, entry: Raw, namespace: str, snapshot: ClusterSnapshot) -> Raw | str | None:
    """The claim, what is wrong, or None where the entry stands for no claim."""
    label = text(entry.get("name"))
    made = _made(pod)
    if label in made and not made[label]:
        return None  # The template's controller decided that the pod needs no claim.
    name = text(entry.get("resourceClaimName")) or made.get(label, "")
    template = text(entry.get("resourceClaimTemplateName"))
    if name:
        claim = snapshot.find("ResourceClaim", namespace, name)
        return f"claim {namespace}/{name} is not there" if claim is None else claim
    if not template:
        return f"entry {label} names neither a claim nor a template"
    found = snapshot.find("ResourceClaimTemplate", namespace, template)
    if found is None:
        return f"template {namespace}/{template} is not there"
    return _from_template(found, namespace, f"{identity(pod)[1]}-{label}")


def _made(pod: Raw) -> dict[str, str]:
    """The claims that were made for a pod, by the name of its entry."""
    statuses = listed(mapping(pod.get("status")).get("resourceClaimStatuses"))
    return {
        text(mapping(one).get("name")): text(mapping(one).get("resourceClaimName"))
        for one in statuses
    }


def _from_template(template: Raw, namespace: str, name: str) -> Raw:
    inner = mapping(template.get("spec"))
    metadata = mapping(inner.get("metadata"))
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {**metadata, "namespace": namespace, "name": name, "uid": f"new:{name}"},
        "spec": mapping(inner.get("spec")),
    }
