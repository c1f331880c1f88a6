"""The admission policies of deploy/policies, for an API server in this process."""

from typing import Any, Final

from dragoon.api import gang
from dragoon.api.names import (
    CLASS_GPU,
    CLASS_MIG,
    CLASS_SHARED,
    CLASS_SIMULATED,
    FINALIZER,
)
from dragoon.kube.port import CLAIMS, PODS, Object, Resource
from dragoon.kube.writing import Admission

_OURS: Final = frozenset((CLASS_GPU, CLASS_MIG, CLASS_SHARED, CLASS_SIMULATED))

_PLACEHOLDER: Final = "yunikorn.apache.org/placeholder"


def hold_members(pod: Object) -> None:
    """gang-gate.yaml: pods with the label get the gate, unless they name their node.

    Nor do YuniKorn's placeholders.
    """
    spec = pod.setdefault("spec", {})
    labels = pod["metadata"].get("labels") or {}
    said = pod["metadata"].get("annotations") or {}
    holds_room = said.get(_PLACEHOLDER) == "true"
    if gang.LABEL not in labels or spec.get("nodeName") or holds_room:
        return
    gates: list[Any] = spec.setdefault("schedulingGates", [])
    if {"name": gang.GATE} not in gates:
        gates.append({"name": gang.GATE})


def protect_claims(claim: Object) -> None:
    """claim-finalizer.yaml: claims for our classes get the finalizer of an allocated claim."""
    requests = ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ()
    asked = [
        one
        for each in requests
        for one in (each.get("exactly"), *(each.get("firstAvailable") or ()))
    ]
    if any(one and one.get("deviceClassName") in _OURS for one in asked):
        finalizers = claim["metadata"].setdefault("finalizers", [])
        if FINALIZER not in finalizers:
            finalizers.append(FINALIZER)


POLICIES: Final[dict[Resource, Admission]] = {PODS: hold_members, CLAIMS: protect_claims}
