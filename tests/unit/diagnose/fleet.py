"""A made-up fleet to draw: racks of DGX nodes in use in every way."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from dragoon.api.names import CLASS_SIMULATED, DRIVER_NAME
from dragoon.app import config, publishing
from dragoon.diagnose.snapshot import ClusterSnapshot
from dragoon.publish import slices

Raw = dict[str, Any]

_CLASSES: Final = Path(__file__).resolve().parents[3] / "deviceclasses"
RACK = "topology.kubernetes.io/rack"
_PER_RACK: Final = 32
_SMALL: Final = 20
"""Nodes of a fleet in which the members of the gang that waits are there too."""


@cache
def _seen() -> publishing.Seen:
    given = {
        "simulate": "dgx-h100",
        "forms": "whole,shared,mig",
        "mig_profiles": "2g.20gb",
        "allow_unenforced_shares": "true",
    }
    return publishing.look_at_forms(config.load(given, {}))


def fleet(nodes: int, *, forms: int = 4) -> ClusterSnapshot:
    """So many nodes of eight GPUs. The first `forms` publish shares and MIG instances too.

    Of each node half is held: of the first by every form, of the others by gangs. One node is
    cordoned, one GPU tainted, one gang has no room.
    """
    names = [f"gpu-{number:04d}" for number in range(nodes)]
    objects: list[Raw] = [
        _device_class(),
        _gang("train", "Running", 16),
        _gang("large", "Waiting", 9 * nodes),
    ]
    for number, name in enumerate(names):
        objects += _slices(name, all_forms=number < forms, damaged=number == nodes - 1)
        objects.append(_node(name, number, cordoned=number == nodes // 2))
        devices = [f"gpu-0000-{bus:02x}-00-0" for bus in (0x11, 0x13, 0x15, 0x17)]
        if number == 0:
            objects += _divided(name, devices)
        else:
            for count, device in enumerate(devices):
                objects += _holder(f"train-{number}-{count}", name, device, gang="train")
    for member in range(9 * nodes if nodes <= _SMALL else 0):
        objects += _member(f"large-{member}")
    objects.append(_pod("notebook", "research", "gpu"))
    return ClusterSnapshot.of(objects, source="a made-up fleet")


def _divided(node: str, devices: list[str]) -> list[Raw]:
    """One card in each form."""
    whole, shared, mig, _ = devices
    return [
        *_holder("alone", node, whole),
        *_holder("part-a", node, f"{shared}-shared", memory="20Gi"),
        *_holder("part-b", node, f"{shared}-shared", memory="12Gi"),
        *_holder("slice", node, f"{mig}-mig-2g20gb-0"),
    ]


def _slices(node: str, *, all_forms: bool, damaged: bool) -> list[Raw]:
    seen = _seen()
    wishes = seen.wishes if all_forms else config.load({"forms": "whole"}, {}).wishes
    found = slices.render(
        seen.inventory,
        node=node,
        driver=DRIVER_NAME,
        wishes=wishes,
        divisions=seen.divisions if all_forms else {},
    )
    if damaged:
        taint = {"key": "dragoon.dev/xid", "value": "79", "effect": "NoSchedule"}
        last = found[-1]["spec"]["devices"][-1]
        last["taints"] = [taint]
    return [
        {**one, "metadata": {"name": f"{node}-{position}"}} for position, one in enumerate(found)
    ]


def _device_class() -> Raw:
    text = (_CLASSES / f"{CLASS_SIMULATED}.yaml").read_text("utf-8")
    found: Raw = yaml.safe_load(text)
    return found


def _node(name: str, number: int, *, cordoned: bool) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {RACK: f"rack-{number // _PER_RACK}"}},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {"allocatable": {"cpu": "128", "memory": "2Ti", "pods": "250"}},
    }


def _holder(name: str, node: str, device: str, *, gang: str = "", memory: str = "") -> list[Raw]:
    """A claim with one device, and the pod that uses it."""
    result: Raw = {
        "request": "gpu",
        "driver": DRIVER_NAME,
        "pool": f"{node}/gpu",
        "device": device,
    }
    if memory:
        result |= {"shareID": f"share-{name}", "consumedCapacity": {"memory": memory}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"{name}-gpu", "namespace": "team-a", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": []}},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": f"pod-{name}"}],
        },
    }
    labels = {"dragoon.dev/gang": gang} if gang else {}
    return [claim, _pod(name, "team-a", "gpu", node=node, labels=labels)]


def _member(name: str) -> list[Raw]:
    """A member of the gang that waits, with its claim of one GPU."""
    wish = {"name": "gpu", "exactly": {"deviceClassName": CLASS_SIMULATED}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"{name}-gpu", "namespace": "team-a", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [wish]}},
    }
    return [claim, _pod(name, "team-a", "gpu", labels={"dragoon.dev/gang": "large"})]


def _pod(name: str, namespace: str, claim: str, *, node: str = "", labels: Any = None) -> Raw:
    spec: Raw = {"resourceClaims": [{"name": claim, "resourceClaimName": f"{name}-{claim}"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {**spec, "nodeName": node} if node else spec,
    }


def _gang(name: str, phase: str, size: int) -> Raw:
    waits = phase == "Waiting"
    return {
        "apiVersion": "dragoon.dev/v1alpha1",
        "kind": "Gang",
        "metadata": {"name": name, "namespace": "team-a", "uid": f"gang-{name}"},
        "spec": {"size": size},
        "status": {
            "phase": phase,
            "members": {"minimum": size, "ready": 0 if waits else size},
            "waitingFor": f"{size - 2} of {size} members do not fit" if waits else "",
        },
    }


def hostile(text: str) -> ClusterSnapshot:
    """One node on which every text that somebody could write is this one."""
    found = fleet(1)
    return found.replacing(
        source=text,
        missing=(text,),
        slices=tuple(_rewritten(raw, text) for raw in found.slices),
        claims=tuple(_renamed(_rewritten(raw, text), text) for raw in found.claims),
        pods=tuple(_renamed(raw, text) for raw in found.pods),
        gangs=tuple(_renamed(_rewritten(raw, text), text) for raw in found.gangs),
    )


def _renamed(raw: Mapping[str, Any], text: str) -> Raw:
    return {**raw, "metadata": {**raw["metadata"], "name": text, "namespace": text}}


def _rewritten(value: Any, text: str) -> Any:
    """The value with the text wherever a field of free text is."""
    if isinstance(value, dict):
        return {
            name: text if name in _TEXTS else _attribute(name, _rewritten(one, text), text)
            for name, one in value.items()
        }
    return [_rewritten(one, text) for one in value] if isinstance(value, list) else value


def _attribute(name: str, value: Any, text: str) -> Any:
    if name == "reservedFor":
        return [{**one, "name": text} for one in value]
    return {"string": text} if name in _ATTRIBUTES else value


_TEXTS: Final = frozenset(("nodeName", "waitingFor", "phase"))
_ATTRIBUTES: Final = frozenset(("productName", "nvlinkDomain"))
