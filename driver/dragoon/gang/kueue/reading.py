"""Raw objects of Kueue to records; the fields are the same in v1beta1 and v1beta2. Pure."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from dragoon.gang.kueue.model import Check, CheckState, PodSet, Raw, State, Workload
from dragoon.gang.protocol.viewing import ref
from dragoon.gang.records import member_spec

_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def check_of(raw: Raw) -> Check:
    """An AdmissionCheck."""
    spec = raw.get("spec") or {}
    parameters = spec.get("parameters") or {}
    named = (parameters.get("apiGroup"), parameters.get("kind"), parameters.get("name"))
    return Check(
        ref=ref(raw),
        controller=spec.get("controllerName") or "",
        parameters="/".join(str(one) for one in named if one),
        generation=raw["metadata"].get("generation") or 0,
        conditions=tuple((raw.get("status") or {}).get("conditions") or ()),
    )


def workload_of(raw: Raw) -> Workload:
    """A Workload. Raises ValueError for a time or a state that is none."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    checks = tuple(_check_state(one) for one in status.get("admissionChecks") or ())
    finished = _is_true(conditions, "Finished")
    evicted = conditions.get("Evicted") or {}
    requeue_at = (status.get("requeueState") or {}).get("requeueAt")
    return Workload(
        ref=ref(raw),
        created=meta.get("creationTimestamp") or "",
        priority=spec.get("priority") or 0,
        owners=tuple(one["kind"] for one in meta.get("ownerReferences") or ()),
        # Kueue keeps what has finished, for ever if nobody says otherwise.
        podsets=() if finished else tuple(_podsets(spec, status, checks)),
        checks=checks,
        reserved=_is_true(conditions, "QuotaReserved"),
        admitted=_is_true(conditions, "Admitted"),
        finished=finished,
        active=spec.get("active") is not False,
        deleting=bool(meta.get("deletionTimestamp")),
        evicted=evicted.get("reason") or "" if evicted.get("status") == "True" else "",
        requeue_at=datetime.fromisoformat(requeue_at) if requeue_at else None,
    )


def _is_true(conditions: Mapping[str, Raw], type_: str) -> bool:
    return (conditions.get(type_) or {}).get("status") == "True"


def _check_state(raw: Raw) -> CheckState:
    since = raw.get("lastTransitionTime")
    return CheckState(
        name=raw["name"],
        state=State(raw.get("state") or State.PENDING),
        since=datetime.fromisoformat(since) if since else _NEVER,
        message=raw.get("message") or "",
        retries=raw.get("retryCount") or 0,
        asks_to_wait=raw.get("requeueAfterSeconds") is not None,
        raw=raw,
    )


def _podsets(spec: Raw, status: Raw, checks: Iterable[CheckState]) -> Iterable[PodSet]:
    admission = status.get("admission") or {}
    given = {one["name"]: one for one in admission.get("podSetAssignments") or ()}
    spared = {one["name"]: one["count"] for one in status.get("reclaimablePods") or ()}
    for podset in spec.get("podSets") or ():
        name = podset["name"]
        assignment: Raw = given.get(name) or {}
        count = assignment.get("count")
        updates = [
            update
            for check in checks
            for update in check.raw.get("podSetUpdates") or ()
            if update["name"] == name
        ]
        selectors: dict[str, Any] = {}
        for update in updates:
            selectors |= update.get("nodeSelector") or {}
        yield PodSet(
            name=name,
            count=max(0, (podset["count"] if count is None else count) - spared.get(name, 0)),
            template={
                "metadata": (podset.get("template") or {}).get("metadata") or {},
                "spec": member_spec((podset.get("template") or {}).get("spec") or {}),
            },
            flavors=tuple(dict.fromkeys((assignment.get("flavors") or {}).values())),
            node_selector=selectors,
            has_topology=bool(assignment.get("topologyAssignment")),
            tolerations=tuple(one for update in updates for one in update.get("tolerations") or ()),
        )
