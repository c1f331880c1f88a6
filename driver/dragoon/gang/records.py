"""What the controller keeps of pods, jobs and nodes: read once when a watch shows them. Pure.

A cluster has many pods and the controller is about few of them: of a pod without a claim and
without the gang label only its amounts and its node are kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoon.allocator.gang.model import Amounts
from dragoon.allocator.gang.reading import pod_amounts
from dragoon.api import gang
from dragoon.api.gang import Owner
from dragoon.api.names import ENDED
from dragoon.errors import InvalidInputError

Raw = Mapping[str, Any]

_KEPT_METADATA: Final = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
)
_KEPT_OF_USERS: Final = frozenset(
    ("nodeName", "schedulingGates", "resourceClaims", "activeDeadlineSeconds")
)
"""Of the spec of a pod that uses claims and is in no gang."""
_KEPT_OF_MEMBERS: Final = _KEPT_OF_USERS | {
    *("affinity", "nodeSelector", "tolerations", "topologySpreadConstraints", "volumes"),
    *("containers", "initContainers", "overhead", "resources"),
    *("schedulerName", "schedulingGroup", "priority", "priorityClassName"),
}
_KEPT_OF_CONTAINERS: Final = frozenset(("name", "resources", "ports", "restartPolicy"))
_KEPT_OF_STATUS: Final = frozenset(
    ("phase", "conditions", "resourceClaimStatuses", "nominatedNodeName", "startTime")
)
_STATUSES: Final = ("containerStatuses", "initContainerStatuses")
_KEPT_OF_STATUSES: Final = frozenset(("name", "resources", "allocatedResources"))


@dataclass(frozen=True, slots=True)
class PodRecord:
    """A pod. amounts: what it takes of a node, in kube-scheduler's whole numbers.

    group: the value of the gang label, None without it. owner: its controller. gated: our gate is
    there; waits: any gate is. pinned: every term of its affinity names its node, as for pods that
    we ungated. claims: names of its claims, as its status has them, that for extended resources
    among them. raw: the parts of the pod that are decided on, None for one that has neither the
    label nor a claim.
    """

    namespace: str
    name: str
    uid: str
    created: str
    node: str
    nominated: str
    ended: bool
    succeeded: bool
    deleting: bool
    waits: bool
    gated: bool
    scheduler: str
    priority: int
    pinned: bool
    amounts: Amounts = field(compare=False)
    group: str | None = None
    owner: Owner | None = None
    claims: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    raw: Raw | None = field(default=None, compare=False)

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)

    @property
    def is_alive(self) -> bool:
        """Whether it counts as a member: it has not ended and is not going."""
        return not self.ended and not self.deleting

    @property
    def workload(self) -> str:
        """The UID of the Workload with which Kueue admitted it, empty where there is none."""
        meta = (self.raw or {}).get("metadata") or {}
        return (meta.get("annotations") or {}).get(gang.ANNOTATION_WORKLOAD) or ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A batch/v1 Job. owner: what made it. parallelism: pods at once, 0 where it is not said.

    started: RFC 3339, empty before. deadline: seconds from then, None without one.
    """

    namespace: str
    name: str
    uid: str
    suspended: bool
    parallelism: int = 1
    completions: int | None = None
    owner: Owner | None = None
    started: str = ""
    deadline: int | None = None


def pod_record(raw: Raw) -> PodRecord:
    """The record of a raw pod. An amount that cannot be read counts as nothing."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels = meta.get("labels") or {}
    group = labels.get(gang.LABEL)
    claims = _claims(spec, status)
    gates = [gate.get("name") for gate in spec.get("schedulingGates") or ()]
    phase = status.get("phase") or "Pending"
    kept = group is not None or bool(claims or spec.get("resourceClaims"))
    return PodRecord(
        namespace=meta.get("namespace") or "",
        name=meta["name"],
        uid=meta["uid"],
        created=meta.get("creationTimestamp") or "",
        node=spec.get("nodeName") or "",
        nominated=status.get("nominatedNodeName") or "",
        ended=phase in ENDED,
        succeeded=phase == "Succeeded",
        deleting=bool(meta.get("deletionTimestamp")),
        waits=bool(gates),
        gated=gang.GATE in gates,
        scheduler=spec.get("schedulerName") or "default-scheduler",
        priority=spec.get("priority") or 0,
        pinned=_is_pinned(spec),
        amounts=_amounts(raw),
        group=group,
        owner=controller_of(raw),
        claims=claims,
        annotations=(meta.get("annotations") or {}) if group is not None else {},
        labels=labels if group is not None else {},
        raw=_kept(raw, _KEPT_OF_MEMBERS if group is not None else _KEPT_OF_USERS) if kept else None,
    )


def job_record(raw: Raw) -> JobRecord:
    """The record of a raw Job."""
    meta, spec = raw["metadata"], raw.get("spec") or {}
    parallelism = spec.get("parallelism")
    return JobRecord(
        namespace=meta.get("namespace") or "",
        name=meta["name"],
        uid=meta["uid"],
        suspended=bool(spec.get("suspend")),
        parallelism=1 if parallelism is None else parallelism,
        completions=spec.get("completions"),
        owner=controller_of(raw),
        started=(raw.get("status") or {}).get("startTime") or "",
        deadline=spec.get("activeDeadlineSeconds"),
    )


def member_spec(spec: Raw, fields: frozenset[str] = _KEPT_OF_MEMBERS) -> dict[str, Any]:
    """A pod's spec without what nobody decides on: most is environments, mounts and probes."""
    kept = _only(spec, fields)
    for name in ("containers", "initContainers"):
        if name in kept:
            kept[name] = [_only(one, _KEPT_OF_CONTAINERS) for one in kept[name]]
    return kept


def _kept(raw: Raw, fields: frozenset[str]) -> Raw:
    spec = member_spec(raw.get("spec") or {}, fields)
    whole = raw.get("status") or {}
    status = _only(whole, _KEPT_OF_STATUS)
    if "containers" in spec:
        for name in _STATUSES:
            if name in whole:
                status[name] = [_only(one, _KEPT_OF_STATUSES) for one in whole[name]]
    return {**trimmed(raw), "spec": spec, "status": status}


def _only(raw: Raw, fields: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in raw.items() if name in fields}


def trimmed(raw: Raw) -> Raw:
    """The object without what nobody reads: managedFields are half of it."""
    meta = raw["metadata"]
    return {**raw, "metadata": {name: meta[name] for name in _KEPT_METADATA if name in meta}}


def controller_of(raw: Raw) -> Owner | None:
    """The owner that manages an object, None where nobody does."""
    for one in raw["metadata"].get("ownerReferences") or ():
        if one.get("controller"):
            return Owner(
                api_version=one["apiVersion"], kind=one["kind"], name=one["name"], uid=one["uid"]
            )
    return None


def _is_pinned(spec: Raw) -> bool:
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    terms = required.get("nodeSelectorTerms") or ()
    return bool(terms) and all(
        any(one.get("key") == "metadata.name" for one in term.get("matchFields") or ())
        for term in terms
    )


def _claims(spec: Raw, status: Raw) -> tuple[str, ...]:
    """Only what the status says was made counts (case C49); named claims stand in the spec."""
    made = {
        one.get("name"): one.get("resourceClaimName")
        for one in status.get("resourceClaimStatuses") or ()
    }
    names = (
        one.get("resourceClaimName") or made.get(one.get("name"))
        for one in spec.get("resourceClaims") or ()
    )
    counted = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return tuple(name for name in (*names, counted) if name)


def _amounts(raw: Raw) -> Amounts:
    try:
        return pod_amounts(raw)
    except InvalidInputError:
        return {}
