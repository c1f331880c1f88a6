"""Workloads and AdmissionChecks as Kueue makes them."""

from typing import Any

from dragoon.gang.kueue.apis import CONTROLLER, LATEST

Object = dict[str, Any]
NOW = "2026-11-29T12:00:00Z"
CHECK = "placeable"


def check(name: str = CHECK, *, controller: str = CONTROLLER, **spec: Any) -> Object:
    """An AdmissionCheck; ours where nothing else is said."""
    return {
        "apiVersion": LATEST.checks.api_version,
        "kind": LATEST.checks.kind,
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1},
        "spec": {"controllerName": controller, **spec},
    }


def state(
    value: str = "Pending", *, name: str = CHECK, since: str = NOW, message: str = "", **more: Any
) -> Object:
    """An entry of status.admissionChecks."""
    return {
        "name": name,
        "state": value,
        "lastTransitionTime": since,
        "message": message,
        **more,
    }


def podset(
    count: int = 1, *, name: str = "main", template: str = "one", claim: str = "", **meta: Any
) -> Object:
    """A pod set whose pods have a claim; template and claim empty: none."""
    entry: Object = {"resourceClaimName": claim} if claim else {}
    if template and not claim:
        entry = {"resourceClaimTemplateName": template}
    claims = [{"name": "gpu", **entry}] if entry else []
    spec = {"containers": [{"name": "main", "image": "none"}], "resourceClaims": claims}
    return {"name": name, "count": count, "template": {"metadata": meta, "spec": spec}}


def conditions(*true: str, evicted: str = "") -> list[Object]:
    """The conditions that are true, and why it is evicted."""
    found = [{"type": one, "status": "True", "lastTransitionTime": NOW} for one in true]
    if evicted:
        found.append({"type": "Evicted", "status": "True", "reason": evicted})
    return found


def workload(
    name: str = "job-train",
    *podsets: Object,
    checks: list[Object] | None = None,
    true: tuple[str, ...] = ("QuotaReserved",),
    evicted: str = "",
    owner: str = "Job",
    namespace: str = "team",
    spec: Object | None = None,
    **status: Any,
) -> Object:
    """A Workload that has quota and waits for our check, where nothing else is said."""
    sets = list(podsets) or [podset()]
    reserved = "QuotaReserved" in true
    assigned = [
        {"name": one["name"], "count": one["count"], "flavors": {"gpus": "any"}} for one in sets
    ]
    return {
        "apiVersion": LATEST.workloads.api_version,
        "kind": LATEST.workloads.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "creationTimestamp": NOW,
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": owner, "name": name, "uid": f"owner-{name}"}
            ],
        },
        "spec": {"queueName": "team", "podSets": sets, **(spec or {})},
        "status": {
            "conditions": conditions(*true, evicted=evicted),
            "admissionChecks": [state()] if checks is None else checks,
            **({"admission": {"podSetAssignments": assigned}} if reserved else {}),
            **status,
        },
    }
