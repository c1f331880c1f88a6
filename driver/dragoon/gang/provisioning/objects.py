"""The bodies of a ProvisioningRequest and of the PodTemplates that it names. Pure.

A template has what decides where a pod fits, and an image that nobody pulls: autoscalers look at
templates and make no pod of them. Pods that are alike have one template.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dragoon.api import gang
from dragoon.api.gang import GangObject
from dragoon.api.names import LABEL_GANG_UID
from dragoon.gang.records import PodRecord, Raw
from dragoon.kube.port import POD_TEMPLATES, PROVISIONING_REQUESTS

MOST_SHAPES: Final = 32
"""Templates that a request may name (maxItems of its CRD)."""
_IMAGE: Final = "registry.k8s.io/pause:3.10"
_KEPT: Final = (
    *("affinity", "nodeSelector", "tolerations", "topologySpreadConstraints", "overhead"),
    *("schedulerName", "priorityClassName", "resources", "resourceClaims"),
)
_VOLUMES: Final = ("persistentVolumeClaim", "ephemeral", "csi")
"""Volumes that can keep a pod from a node; others differ from pod to pod."""
_NAME_LENGTH: Final = 40


@dataclass(frozen=True, slots=True)
class Request:
    """What an autoscaler is asked: body of the request, and of its templates."""

    name: str
    body: Mapping[str, Any]
    templates: tuple[Mapping[str, Any], ...]


def request_of(owner: GangObject, class_name: str, pods: Sequence[PodRecord]) -> Request | None:
    """The request for these pods, all together. None: they have too many different shapes."""
    counts = Counter(json.dumps(_spec(pod.raw or {}), sort_keys=True) for pod in pods)
    if not counts or len(counts) > MOST_SHAPES:
        return None
    shapes = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    digest = hashlib.sha256(json.dumps([owner.uid, class_name, shapes]).encode()).hexdigest()[:12]
    name = f"{owner.name[:_NAME_LENGTH].rstrip('-.')}-{digest}"
    templates = tuple(
        _template(owner, f"{name}-{index}", json.loads(spec))
        for index, (spec, _) in enumerate(shapes)
    )
    sets = [
        {"count": count, "podTemplateRef": {"name": f"{name}-{index}"}}
        for index, (_, count) in enumerate(shapes)
    ]
    body = {
        "apiVersion": PROVISIONING_REQUESTS.api_version,
        "kind": PROVISIONING_REQUESTS.kind,
        "metadata": _meta(owner, name),
        "spec": {"provisioningClassName": class_name, "podSets": sets},
    }
    return Request(name, body, templates)


def _template(owner: GangObject, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": POD_TEMPLATES.api_version,
        "kind": POD_TEMPLATES.kind,
        "metadata": _meta(owner, name),
        "template": {"spec": spec},
    }


def _meta(owner: GangObject, name: str) -> dict[str, Any]:
    reference = {
        "apiVersion": gang.API_VERSION,
        "kind": gang.KIND,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }
    return {
        "name": name,
        "namespace": owner.namespace,
        "labels": {gang.MADE_BY: gang.MADE_BY_CONTROLLER, LABEL_GANG_UID: owner.uid},
        "ownerReferences": [reference],
    }


def _spec(pod: Raw) -> dict[str, Any]:
    """What of a pod decides where it fits."""
    spec: Raw = pod.get("spec") or {}
    found: dict[str, Any] = {name: spec[name] for name in _KEPT if spec.get(name)}
    found["restartPolicy"] = "Never"
    for kind in ("containers", "initContainers"):
        containers = [_container(one) for one in spec.get(kind) or ()]
        if containers:
            found[kind] = containers
    volumes = [one for one in spec.get("volumes") or () if any(one.get(key) for key in _VOLUMES)]
    if volumes:
        found["volumes"] = volumes
    return found


def _container(raw: Raw) -> dict[str, Any]:
    kept = {name: raw[name] for name in ("name", "resources", "restartPolicy") if raw.get(name)}
    ports = _host_ports(raw.get("ports") or ())
    return {**kept, "image": _IMAGE, **({"ports": ports} if ports else {})}


def _host_ports(ports: Iterable[Raw]) -> list[Raw]:
    return [one for one in ports if one.get("hostPort")]
