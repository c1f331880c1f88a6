"""Which pods of a snapshot are members of which Gang, as the controller sorts them.

Several Gangs may have one label: two Jobs, the replicas of a LeaderWorkerSet. What cannot be read
is left out; explain then takes all pods with the label.
"""

from collections import defaultdict
from collections.abc import Iterator

from dragoon.api import gang
from dragoon.api.gang import GangObject
from dragoon.diagnose.gangs import find_gang
from dragoon.diagnose.manifests import Raw
from dragoon.diagnose.snapshot import ClusterSnapshot
from dragoon.errors import DragoonError
from dragoon.gang.discovering import families
from dragoon.gang.records import JobRecord, PodRecord, pod_record

_MALFORMED = (DragoonError, LookupError, TypeError, AttributeError, ValueError)
"""A saved cluster may have anything."""


def with_members(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """The snapshot with the members of its Gangs."""
    gangs: defaultdict[tuple[str, str], list[GangObject]] = defaultdict(list)
    for one in _gangs(snapshot):
        gangs[one.namespace, one.group].append(one)
    pods: defaultdict[tuple[str, str], list[PodRecord]] = defaultdict(list)
    for pod in map(_record, snapshot.pods):
        if pod is not None and (pod.namespace, pod.group) in gangs:
            pods[pod.namespace, pod.group or ""].append(pod)
    members: dict[tuple[str, str], frozenset[str]] = {}
    for (namespace, group), found in gangs.items():
        here = pods[namespace, group]
        family = families.sort(namespace, group, pods=here, gangs=found, jobs=_jobs(here))
        for name, sorted_ in family.members.items():
            if sorted_:
                members[namespace, name] = frozenset(pod.name for pod in sorted_)
    return snapshot.replacing(members=members)


def _gangs(snapshot: ClusterSnapshot) -> Iterator[GangObject]:
    for namespace, name, _ in snapshot.named(gang.KIND):
        try:
            found = find_gang(snapshot, namespace, name)
        except DragoonError:
            continue  # Whoever asks about this one is told.
        if found is not None:
            yield found


def _record(raw: Raw) -> PodRecord | None:
    try:
        return pod_record({**raw, "metadata": {"uid": "", **raw["metadata"]}})
    except _MALFORMED:
        return None


def _jobs(pods: list[PodRecord]) -> dict[str, JobRecord]:
    """A snapshot has no Jobs: each is taken for the top owner of its pods."""
    owners = {pod.owner for pod in pods if pod.owner is not None}
    return {
        one.uid: JobRecord(pods[0].namespace, one.name, one.uid, suspended=False) for one in owners
    }
