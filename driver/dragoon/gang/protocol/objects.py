"""The bodies of what the protocol writes, and what it reads of rules. Pure.

Sources: resource.k8s.io/v1 DeviceTaintRule; core/v1 pod validation of 1.37 (a gated pod may get
more requirements in every term of its node affinity, none less and no new term).
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

from dragoon.api import gang
from dragoon.api.names import LABEL_GANG_UID
from dragoon.gang.protocol.actions import CreateRule
from dragoon.gang.protocol.model import Kind, Raw, Ref, RuleFacts

LABEL_KIND: Final = "dragoon.dev/rule"
"""On a DeviceTaintRule of ours: `fence` or `damage`."""
ANNOTATION_CLAIMS: Final = "dragoon.dev/claims"
"""On a rule of ours: the claims that it is about, as JSON [[namespace, name, uid], ...]."""
TAINT_DAMAGE: Final = "dragoon.dev/given-twice"
"""The key of the taint on a pool with a device that two claims hold."""
_TAINTS: Final = {Kind.FENCE: gang.TAINT, Kind.DAMAGE: TAINT_DAMAGE}
_VALUE_LENGTH: Final = 63
_MOST_CLAIMS: Final = 1000
"""Claims that a rule can name: 170 KiB of the 256 KiB that annotations may have."""


def rule_name(kind: Kind, driver: str, pool: str, gang_uid: str = "") -> str:
    """The name of the rule on a pool: derived, so that a second try meets the first."""
    digest = hashlib.sha256(json.dumps([gang_uid, driver, pool]).encode()).hexdigest()
    return f"dragoon-{kind}-{digest[:24]}"


def rule_body(action: CreateRule) -> dict[str, Any]:
    """The DeviceTaintRule of an action."""
    labels = {LABEL_KIND: str(action.kind), gang.MADE_BY: gang.MADE_BY_CONTROLLER}
    taint = {"key": _TAINTS[action.kind], "effect": "NoSchedule"}
    if action.gang is not None:
        labels[LABEL_GANG_UID] = action.gang.uid
        labels[gang.LABEL] = action.gang.name[:_VALUE_LENGTH].rstrip("-._")
        taint["value"] = labels[gang.LABEL]
    meta: dict[str, Any] = {"name": action.name, "labels": labels}
    if action.claims:
        meta["annotations"] = claims_annotation(action.claims)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": meta,
        "spec": {
            "deviceSelector": {"driver": action.driver, "pool": action.pool},
            "taint": taint,
        },
    }


def claims_annotation(claims: Sequence[Ref]) -> dict[str, str]:
    """The annotation of a rule that names these claims."""
    named = [[one.namespace, one.name, one.uid] for one in claims[:_MOST_CLAIMS]]
    return {ANNOTATION_CLAIMS: json.dumps(named, separators=(",", ":"))}


def rule_facts(raw: Raw) -> RuleFacts | None:
    """What a raw DeviceTaintRule says, None where it is not one of ours.

    Claims that cannot be read are none: somebody edited the annotation.
    """
    meta = raw["metadata"]
    labels = meta.get("labels") or {}
    selector = (raw.get("spec") or {}).get("deviceSelector") or {}
    kind = labels.get(LABEL_KIND)
    if kind not in set(Kind) or not selector.get("driver") or not selector.get("pool"):
        return None
    return RuleFacts(
        Ref("", meta["name"], meta["uid"], meta["resourceVersion"]),
        Kind(kind),
        selector["driver"],
        selector["pool"],
        labels.get(LABEL_GANG_UID, ""),
        _claims((meta.get("annotations") or {}).get(ANNOTATION_CLAIMS, "")),
    )


def _claims(text: str) -> tuple[Ref, ...]:
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return ()
    if not isinstance(found, list):
        return ()
    return tuple(
        Ref(*entry)
        for entry in found
        if isinstance(entry, list)
        and len(entry) == len(("namespace", "name", "uid"))
        and all(isinstance(part, str) for part in entry)
    )


def pinned(affinity: Raw | None, node: str) -> dict[str, Any]:
    """An affinity that admits only this node: the pin stands in every term of the pod's own.

    A term without requirements matches nothing and may not be changed.
    """
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    found = dict(affinity or {})
    node_affinity = dict(found.get("nodeAffinity") or {})
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: Sequence[Raw] = required.get("nodeSelectorTerms") or ()
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [_with_pin(term, pin) for term in terms] or [{"matchFields": [pin]}]
    }
    found["nodeAffinity"] = node_affinity
    return found


def _with_pin(term: Raw, pin: Raw) -> dict[str, Any]:
    fields = list(term.get("matchFields") or ())
    if pin in fields or not (fields or term.get("matchExpressions")):
        return dict(term)
    return {**term, "matchFields": [*fields, pin]}
