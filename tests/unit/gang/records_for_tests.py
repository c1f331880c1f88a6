"""Pods, jobs and Gangs for tests of the gang package."""

from collections.abc import Mapping
from typing import Any

from dragoon.api.gang import ANNOTATION_SIZE, GATE, LABEL, GangObject, gang_of
from dragoon.gang.discovering.answers import Ground
from dragoon.gang.records import JobRecord, PodRecord, Raw, job_record, pod_record
from dragoon.kube.port import Resource


class Groups:
    """Objects of other projects. specs: by kind and name. served: versions of API groups."""

    def __init__(
        self,
        specs: Mapping[tuple[Resource, str], Any] | None = None,
        served: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self._specs = dict(specs or {})
        self._served = served or {}

    def find(self, resource: Resource, namespace: str, name: str) -> Raw | None:
        spec = self._specs.get((resource, name))
        return None if spec is None or namespace != "team" else {"spec": spec}

    def missing(self, resource: Resource) -> str:
        there = any(kind == resource for kind, _ in self._specs)
        return "" if there else f"the API server does not have {resource.api_version}"

    def refused(self, resource: Resource) -> str:
        versions = self._served.get(resource.group, ())
        if not versions or resource.version in versions:
            return ""
        return f"found {', '.join(versions)}, allowed is {resource.version}"


def ground(*jobs: JobRecord, groups: Groups | None = None) -> Ground:
    """What the numbers of groups are read from."""
    return Ground(groups or Groups(), {one.uid: one for one in jobs})


def job(name: str = "j", *, owner: dict[str, Any] | None = None, **spec: Any) -> JobRecord:
    meta: dict[str, Any] = {"name": name, "namespace": "team", "uid": f"job-{name}"}
    if owner is not None:
        meta["ownerReferences"] = [{"controller": True, **owner}]
    return job_record({"metadata": meta, "spec": spec})


def pod(
    name: str,
    *,
    group: str = "g",
    owner: str = "",
    kind: str = "Job",
    size: str | None = "2",
    gated: bool = True,
    phase: str = "Pending",
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    **more: Any,
) -> PodRecord:
    """A pod. owner: the name of its Job, or of another kind."""
    meta: dict[str, Any] = {
        "name": name,
        "namespace": "team",
        "uid": f"pod-{name}",
        "labels": {LABEL: group, **(labels or {})},
        "annotations": {**({} if size is None else {ANNOTATION_SIZE: size}), **(annotations or {})},
        "creationTimestamp": "2026-11-29T19:00:00Z",
    }
    if more.pop("deleting", False):
        meta["deletionTimestamp"] = "2026-11-29T19:01:00Z"
    if owner:
        version = "batch/v1" if kind == "Job" else "example.com/v1"
        uid = f"{kind.lower()}-{owner}"
        meta["ownerReferences"] = [
            {"apiVersion": version, "kind": kind, "name": owner, "uid": uid, "controller": True}
        ]
    gates = [{"name": GATE}] if gated else []
    spec = {"containers": [], "schedulingGates": gates, **more}
    return pod_record({"metadata": meta, "spec": spec, "status": {"phase": phase}})


def gang(
    name: str = "g", *, size: int = 2, group: str = "", made: bool = True, **parts: Any
) -> GangObject:
    """A Gang. made: by the controller. parts: of spec, and `status`."""
    labels = {LABEL: group or name}
    if made:
        labels["app.kubernetes.io/managed-by"] = "dragoon-controller"
    status = parts.pop("status", {})
    return gang_of(
        {
            "metadata": {
                "name": name,
                "namespace": "team",
                "uid": f"gang-{name}",
                "resourceVersion": "5",
                "creationTimestamp": "2026-11-29T19:00:00Z",
                "generation": 1,
                "labels": labels,
            },
            "spec": {"size": size, **parts},
            "status": status,
        }
    )
