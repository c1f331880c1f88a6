"""Claims, templates and pods as users write them, with the test image."""

from typing import Any

from realcluster.images import BUSYBOX

Object = dict[str, Any]

MAIN = "main"
"""The only container of a pod that has one."""

CLASS = "sim.dragoon.dev"
SLEEP = "trap 'exit 0' TERM; while :; do sleep 0.2; done"
SAME_DOMAIN = {"matchAttribute": "gpu.dragoon.dev/nvlinkDomain"}


def claim_spec(
    count: int = 1, *, selectors: tuple[str, ...] = (), constraints: tuple[Object, ...] = ()
) -> Object:
    """One request named `gpu`."""
    exactly: Object = {"deviceClassName": CLASS, "count": count}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    devices: Object = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if constraints:
        devices["constraints"] = list(constraints)
    return {"devices": devices}


def claim(name: str, namespace: str, spec: Object) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def template(name: str, namespace: str, spec: Object) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": spec},
    }


def container(name: str, *claims: str, script: str = SLEEP, image: str = BUSYBOX) -> Object:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
        "resources": {"claims": [{"name": claim} for claim in claims]},
    }


def pod(
    name: str,
    namespace: str,
    *containers: Object,
    claims: dict[str, str] | None = None,
    templates: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A pod; `claims` and `templates` map the pod's own claim names to objects."""
    refs = [{"name": k, "resourceClaimName": v} for k, v in (claims or {}).items()]
    refs += [{"name": k, "resourceClaimTemplateName": v} for k, v in (templates or {}).items()]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "containers": list(containers),
            "resourceClaims": refs,
            "terminationGracePeriodSeconds": 5,
            "dnsPolicy": "Default",  # there is no cluster DNS
            **spec,
        },
    }
