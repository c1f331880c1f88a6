"""Objects without what could be a secret, for whoever gets them. Pure.

What is kept is named, not what is taken away: a field that a later Kubernetes adds is left out.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dragoon.api.names import DRIVER_NAME
from dragoon.diagnose.manifests import Raw, listed, mapping, text

REDACTED: Final = (
    "environment variables, commands, arguments, images, volumes and probes of containers",
    "annotations, but for those of dragoon.dev and resource.kubernetes.io",
    "managed fields",
    "of nodes everything but labels, taints, amounts and versions",
    "parameters of opaque configs, and data of devices, of other drivers",
    "values of variables, and arguments of hooks, in CDI specs",
)
"""What is not in a saved cluster or a dump, in words."""

_METADATA: Final = (
    *("name", "namespace", "uid", "labels", "creationTimestamp", "deletionTimestamp"),
    *("generation", "resourceVersion", "ownerReferences", "finalizers"),
)
_KEPT_ANNOTATIONS: Final = ("dragoon.dev/", "resource.kubernetes.io/")
_POD_SPEC: Final = (
    *("nodeName", "nodeSelector", "affinity", "tolerations", "schedulerName", "schedulingGates"),
    *("resourceClaims", "priority"),
)
_POD_STATUS: Final = (
    *("phase", "conditions", "resourceClaimStatuses", "extendedResourceClaimStatus"),
    "nominatedNodeName",
)
_OUR_GROUPS: Final = (DRIVER_NAME, "dragoon.dev")


def reduced(kind: str, raw: Raw) -> dict[str, Any]:
    """The object with what answers need."""
    kept = dict(raw)
    metadata = mapping(raw.get("metadata"))
    kept["metadata"] = _only(metadata, _METADATA)
    annotations = {
        key: value
        for key, value in mapping(metadata.get("annotations")).items()
        if str(key).startswith(_KEPT_ANNOTATIONS)
    }
    if annotations:
        kept["metadata"]["annotations"] = annotations
    reduce = _REDUCERS.get(kind)
    if reduce is not None:
        kept.update(reduce(raw))
    return kept


def _only(raw: Raw, names: Iterable[str]) -> dict[str, Any]:
    return {name: raw[name] for name in names if name in raw}


def _pod(raw: Raw) -> dict[str, Any]:
    spec, status = mapping(raw.get("spec")), mapping(raw.get("status"))
    kept = _only(spec, _POD_SPEC)
    for field in ("initContainers", "containers", "ephemeralContainers"):
        if field in spec:
            kept[field] = [
                _only(mapping(one), ("name", "resources")) for one in listed(spec[field])
            ]
    return {"spec": kept, "status": _only(status, _POD_STATUS)}


def _node(raw: Raw) -> dict[str, Any]:
    spec, status = mapping(raw.get("spec")), mapping(raw.get("status"))
    kept = _only(status, ("allocatable", "capacity"))
    info = _only(
        mapping(status.get("nodeInfo")),
        ("containerRuntimeVersion", "kubeletVersion", "kernelVersion", "architecture"),
    )
    if info:
        kept["nodeInfo"] = info
    return {"spec": _only(spec, ("taints", "unschedulable")), "status": kept}


def _claim(raw: Raw) -> dict[str, Any]:
    kept = {"spec": _with_config(mapping(raw.get("spec")))}
    if "status" in raw:
        kept["status"] = _claim_status(mapping(raw["status"]))
    return kept


def _claim_status(status: Raw) -> dict[str, Any]:
    kept = dict(status)
    if isinstance(status.get("allocation"), Mapping):
        kept["allocation"] = _with_config(status["allocation"])
    if isinstance(status.get("devices"), list):
        kept["devices"] = [_device(mapping(one)) for one in status["devices"]]
    return kept


def _device(entry: Raw) -> Raw:
    if entry.get("driver") == DRIVER_NAME:
        return entry
    return _only(entry, ("driver", "pool", "device", "shareID", "conditions"))


def _template(raw: Raw) -> dict[str, Any]:
    spec = mapping(raw.get("spec"))
    return {"spec": {**_only(spec, ("metadata",)), "spec": _with_config(mapping(spec.get("spec")))}}


def _class(raw: Raw) -> dict[str, Any]:
    return {"spec": _configured(mapping(raw.get("spec")))}


def _with_config(holder: Raw) -> dict[str, Any]:
    """A claim's spec or allocation, whose configs stand in `devices.config`."""
    if not isinstance(holder.get("devices"), Mapping):
        return dict(holder)
    return {**holder, "devices": _configured(holder["devices"])}


def _configured(holder: Raw) -> dict[str, Any]:
    if not isinstance(holder.get("config"), list):
        return dict(holder)
    return {**holder, "config": [_config(mapping(one)) for one in holder["config"]]}


def _config(entry: Raw) -> Raw:
    opaque = mapping(entry.get("opaque"))
    parameters = mapping(opaque.get("parameters"))
    group = text(parameters.get("apiVersion")).partition("/")[0]
    if not opaque or opaque.get("driver") == DRIVER_NAME or group in _OUR_GROUPS:
        return entry
    return {
        **entry,
        "opaque": {**opaque, "parameters": _only(parameters, ("apiVersion", "kind"))},
    }


_REDUCERS: Final[Mapping[str, Callable[[Raw], dict[str, Any]]]] = {
    "Pod": _pod,
    "Node": _node,
    "ResourceClaim": _claim,
    "ResourceClaimTemplate": _template,
    "DeviceClass": _class,
}
