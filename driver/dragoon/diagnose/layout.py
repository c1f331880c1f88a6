"""The types of the fields of stored objects, as far as answers read them. Pure.

An API server stores nothing else, and who reads its objects relies on that; a saved cluster may be
a file of anybody, so it is looked at once, when it is read. Source: resource.k8s.io/v1 and core/v1
of 1.37.

A shape is a type, some types, an object (dict), a map of equal values (`Each`) or a list ([of one
shape]). Fields that it does not name are anything; null is no value, as Go writes it, but in a list
or a map Go writes none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dragoon.diagnose.documents import shown
from dragoon.diagnose.manifests import Raw


@dataclass(frozen=True, slots=True)
class Each:
    """A map whose values all have this shape."""

    shape: Any


@dataclass(frozen=True, slots=True)
class Demanded:
    """A field that every stored object has."""

    shape: Any


_AMOUNT: Final = (str, int, float)
_INT64: Final = range(-(2**63), 2**63)
_TEXTS: Final = Each(str)


def _texts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, str)


def _demanded(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, Demanded(str))


_METADATA: Final = {
    **_texts("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"),
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "ownerReferences": [_texts("apiVersion", "kind", "name", "uid")],
    "finalizers": [str],
}
_NAMED: Final = {"metadata": Demanded({**_METADATA, "name": Demanded(str)})}
_TAINT: Final = {**_demanded("key", "effect"), **_texts("value", "timeAdded")}
_TOLERATION: Final = {**_texts("key", "operator", "value", "effect"), "tolerationSeconds": int}
_CONDITION: Final = _texts("type", "status", "reason", "message", "lastTransitionTime")
_TEST: Final = {**_demanded("key", "operator"), "values": [str]}
_NODE_SELECTOR: Final = {
    "nodeSelectorTerms": [{"matchExpressions": [_TEST], "matchFields": [_TEST]}]
}
_SELECTORS: Final = [{"cel": {"expression": str}}]
_CONFIG: Final = {"requests": [str], "opaque": {"driver": str, "parameters": dict}}
_WISH: Final[dict[str, Any]] = {
    **_texts("name", "deviceClassName", "allocationMode"),
    "selectors": _SELECTORS,
    "count": int,
    "adminAccess": bool,
    "tolerations": [_TOLERATION],
    "capacity": {"requests": Each(_AMOUNT)},
}
_CLAIM_SPEC: Final = {
    "devices": {
        "requests": [{"name": str, "exactly": _WISH, "firstAvailable": [_WISH]}],
        "constraints": [{"requests": [str], **_texts("matchAttribute", "distinctAttribute")}],
        "config": [_CONFIG],
    }
}
_RESULT: Final = {
    **_demanded("request", "driver", "pool", "device"),
    "shareID": str,
    "adminAccess": bool,
    "tolerations": [_TOLERATION],
    "consumedCapacity": Each(_AMOUNT),
}
_CLAIM_STATUS: Final = {
    "allocation": {
        "devices": {"results": [_RESULT], "config": [_CONFIG]},
        "nodeSelector": _NODE_SELECTOR,
    },
    "reservedFor": [_texts("apiGroup", "resource", "name", "uid")],
    "devices": [{**_texts("driver", "pool", "device", "shareID"), "conditions": [_CONDITION]}],
}
_COUNTERS: Final = {**_texts("name", "counterSet"), "counters": Each({"value": _AMOUNT})}
_DEVICE: Final = {
    "name": Demanded(str),
    "nodeName": str,
    "attributes": Each({"string": str, "int": int, "bool": bool, "version": str}),
    "capacity": Each({"value": _AMOUNT, "requestPolicy": dict}),
    "taints": [_TAINT],
    "consumesCounters": [_COUNTERS],
    "nodeSelector": _NODE_SELECTOR,
    "allNodes": bool,
    "allowMultipleAllocations": bool,
    "bindingConditions": [str],
    "bindingFailureConditions": [str],
}
_SLICE_SPEC: Final = {
    **_texts("driver", "nodeName"),
    "pool": {"name": str, "generation": int, "resourceSliceCount": int},
    "nodeSelector": _NODE_SELECTOR,
    "allNodes": bool,
    "perDeviceNodeSelection": bool,
    "devices": [_DEVICE],
    "sharedCounters": [_COUNTERS],
}
_CONTAINER: Final = {
    "name": str,
    "resources": {
        "claims": [_texts("name", "request")],
        "requests": Each(_AMOUNT),
        "limits": Each(_AMOUNT),
    },
}
_POD_SPEC: Final = {
    **_texts("nodeName", "schedulerName"),
    "nodeSelector": _TEXTS,
    "affinity": dict,
    "tolerations": [_TOLERATION],
    "schedulingGates": [{"name": str}],
    "resourceClaims": [_texts("name", "resourceClaimName", "resourceClaimTemplateName")],
    "priority": int,
    "initContainers": [_CONTAINER],
    "containers": [_CONTAINER],
}
_POD_STATUS: Final = {
    "phase": str,
    "conditions": [_CONDITION],
    "resourceClaimStatuses": [_texts("name", "resourceClaimName")],
    "extendedResourceClaimStatus": {
        "resourceClaimName": str,
        "requestMappings": [_texts("containerName", "resourceName", "requestName")],
    },
}
_NODE_STATUS: Final = {
    "allocatable": Each(_AMOUNT),
    "capacity": Each(_AMOUNT),
    "nodeInfo": _texts("containerRuntimeVersion", "kubeletVersion", "kernelVersion"),
}
_CLASS_SPEC: Final = {"selectors": _SELECTORS, "config": [_CONFIG], "extendedResourceName": str}
_RULE_SPEC: Final = {"deviceSelector": _texts("driver", "pool", "device"), "taint": _TAINT}
_LAYOUTS: Final[Mapping[str, dict[str, Any]]] = {
    "DeviceClass": {"spec": Demanded(_CLASS_SPEC)},
    "ResourceSlice": {"spec": Demanded(_SLICE_SPEC)},
    "ResourceClaim": {"spec": Demanded(_CLAIM_SPEC), "status": _CLAIM_STATUS},
    "ResourceClaimTemplate": {"spec": Demanded({"metadata": _METADATA, "spec": _CLAIM_SPEC})},
    "DeviceTaintRule": {"spec": Demanded(_RULE_SPEC)},
    "Pod": {"spec": Demanded(_POD_SPEC), "status": _POD_STATUS},
    "Node": {"spec": {"taints": [_TAINT], "unschedulable": bool}, "status": _NODE_STATUS},
    "Gang": {"spec": Demanded(dict), "status": dict},
}


def misfit(kind: str, raw: Raw) -> str:
    """The first field of an object that an API server would not store so; empty if there is none."""
    layout = _LAYOUTS.get(kind)
    return "" if layout is None else _misfit(raw, {**_NAMED, **layout}, "")


def _misfit(found: Any, shape: Any, path: str) -> str:
    if isinstance(shape, Demanded):
        return (
            _misfit(found, shape.shape, path) if found is not None else f"{path[1:]}: found nothing"
        )
    if found is None:
        return ""
    if not _is(found, _type(shape)):
        return f"{path[1:]}: found {shown(found)}"
    return next(filter(None, (_misfit(*one) for one in _within(found, shape, path))), "")


def _within(found: Any, shape: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    """What is in a value: each with its shape and its path."""
    if isinstance(shape, list):
        inner = Demanded(shape[0])
        yield from ((one, inner, f"{path}[{number}]") for number, one in enumerate(found))
    elif isinstance(shape, Each):
        inner = Demanded(shape.shape)
        yield from ((one, inner, f"{path}.{shown(name)}") for name, one in found.items())
    elif isinstance(shape, dict):
        yield from ((found.get(name), one, f"{path}.{name}") for name, one in shape.items())


def _type(shape: Any) -> Any:
    if isinstance(shape, list):
        return list
    return dict if isinstance(shape, dict | Each) else shape


def _is(found: Any, wanted: Any) -> bool:
    if isinstance(found, bool):
        return wanted is bool
    if isinstance(found, int) and found not in _INT64:
        return False
    if isinstance(found, dict) and not all(isinstance(name, str) for name in found):
        return False
    return isinstance(found, wanted)
