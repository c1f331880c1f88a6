"""The named holder of what the informers show, with the indexes that gangs are found by.

Belongs to the event loop. Whoever decides takes frozen parts of it: records, raw objects that
nobody changes, and snapshots of `state`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

import structlog

from dragoon.allocator import ClusterState, Snapshot
from dragoon.allocator.gang.model import NodeFacts
from dragoon.allocator.gang.reading import extended_resources
from dragoon.allocator.model import Slice
from dragoon.allocator.usage import UNUSED
from dragoon.api.claims import owner_pod
from dragoon.api.gang import GangObject
from dragoon.errors import DragoonError
from dragoon.gang import promised
from dragoon.gang.copies import Copies, RuleRecord
from dragoon.gang.discovering.answers import Ground
from dragoon.gang.pod_index import FamilyKey, PodIndex, drop_key
from dragoon.gang.protocol.model import RuleFacts
from dragoon.gang.records import JobRecord, PodRecord, Raw
from dragoon.gang.waiting import freed
from dragoon.gang.waiting.freed import Freed
from dragoon.kube.mirror import Change, Key
from dragoon.kube.port import Resource

_log = structlog.get_logger(__name__)


class Listener(NamedTuple):
    """Who is told. family: something of it changed. room: what may have become free.

    gone: a Gang with this UID is not there any more, or a rule has changed.
    """

    family: Callable[[FamilyKey], None]
    room: Callable[[Freed], None]
    swept: Callable[[], None]


class World:
    """What follows from the copies. Made before their informers run."""

    def __init__(self, copies: Copies, listener: Listener) -> None:
        self.copies = copies
        self.state = ClusterState()
        self._listener = listener
        self._pods = PodIndex(copies.pods)
        self._gangs_of: defaultdict[FamilyKey, dict[Key, None]] = defaultdict(dict)
        self._planned: dict[str, str] = {}
        self._jobs: dict[str, JobRecord] = {}
        copies.pods.subscribe(self._pod)
        copies.claims.subscribe(self._claim)
        copies.slices.subscribe(self._slice)
        copies.nodes.subscribe(self._node)
        copies.rules.subscribe(self._rule)
        copies.classes.subscribe(self._class)
        copies.gangs.subscribe(self._gang)
        copies.jobs.subscribe(self._job)
        copies.groups.subscribe(self._group)

    def snapshot(self) -> Snapshot:
        """Pools and what claims hold of them."""
        return self.state.snapshot()

    def claim(self, namespace: str, name: str) -> Raw | None:
        """A raw claim."""
        return self.copies.claims.get(name, namespace)

    def users(self, namespace: str, claim: str) -> tuple[PodRecord, ...]:
        """The pods that name a claim."""
        return self._pods.users(Key(namespace, claim))

    def pods_using(self, namespace: str, claim: str) -> tuple[Raw, ...]:
        """The raw pods that name a claim."""
        return tuple(pod.raw for pod in self.users(namespace, claim) if pod.raw is not None)

    def rules(self) -> tuple[RuleFacts, ...]:
        """The DeviceTaintRules of ours."""
        return tuple(one.facts for one in self.copies.rules.values() if one.facts is not None)

    def family(self, key: FamilyKey) -> tuple[PodRecord, ...]:
        """The pods with this label value."""
        return self._pods.family(key)

    def gangs_of(self, key: FamilyKey) -> tuple[GangObject, ...]:
        """The Gangs of a label value."""
        found = (
            self.copies.gangs.get(name, namespace)
            for namespace, name in self._gangs_of.get(key, ())
        )
        return tuple(one for one in found if one is not None)

    def planned_by(self, pod: str) -> str:
        """The UID of the Gang whose plan names the pod with this UID, empty where none does."""
        return self._planned.get(pod, "")

    def namespaces_with(self, group: str) -> dict[str, int]:
        """How many pods each namespace has with this label value."""
        return self._pods.namespaces_with(group)

    def families(self) -> set[FamilyKey]:
        """All that have a pod or a Gang."""
        return {*self._pods.families(), *self._gangs_of}

    @property
    def ground(self) -> Ground:
        """What the numbers of groups are read from."""
        return Ground(self.copies.groups, self._jobs)

    def in_groups_of(self, pods: Iterable[PodRecord]) -> tuple[PodRecord, ...]:
        """All pods that other projects have in a group with one of these."""
        return self._pods.in_groups_of(pods)

    @property
    def jobs_by_uid(self) -> Mapping[str, JobRecord]:
        return self._jobs

    def pending_claims(self) -> frozenset[str]:
        """UIDs of unallocated claims of pods that kube-scheduler may schedule now."""
        found: set[str] = set()
        for pod in self._pods.schedulable():
            for name in pod.claims:
                claim = self.copies.claims.get(name, pod.namespace)
                if claim is not None and not (claim.get("status") or {}).get("allocation"):
                    found.add(claim["metadata"]["uid"])
        return frozenset(found)

    def free_devices(self, drivers: Collection[str]) -> int:
        """Devices of these drivers that no claim holds."""
        snapshot = self.state.snapshot()
        free = 0
        for pool, slices in snapshot.pools.items():
            if pool.driver in drivers:
                usage = snapshot.usage.get(pool, UNUSED)
                held = len(usage.exclusive.keys() | usage.shared.keys())
                free += max(0, sum(len(one.devices) for one in slices.slices) - held)
        return free

    def node_names(self) -> frozenset[str]:
        """The names of all nodes."""
        return frozenset(key.name for key, _ in self.copies.nodes.items())

    def node_facts(
        self, *, without: Iterable[tuple[str, str]] = (), names: Collection[str] | None = None
    ) -> tuple[NodeFacts, ...]:
        """Nodes by name with what is left of them. None: all; without: pods that do not count."""
        left_out = set(without)
        return tuple(
            self._filled(facts, left_out)
            for key, facts in sorted(self.copies.nodes.items(), key=lambda item: item[0])
            if names is None or key.name in names
        )

    def gang_using(self, namespace: str, claim: str) -> str:
        """The gang whose pod names a claim, as `namespace/name`, empty where there is none."""
        for pod in self.users(namespace, claim):
            uid = self.planned_by(pod.uid)
            found = next((str(one) for one in self.copies.gangs.values() if one.uid == uid), "")
            if found:
                return found
        return ""

    def extended(self) -> dict[str, str]:
        """Extended resources that DeviceClasses stand for."""
        return extended_resources(raw for raw in self.copies.classes.values())

    def priorities(self) -> dict[str, int]:
        """The priority of the pods that hold claims, by `namespace/name` of the claim."""
        found: dict[str, int] = {}
        for claim in self._pods.claims():
            numbers = [pod.priority for pod in self._pods.users(claim) if pod.is_alive]
            if numbers:
                found[f"{claim.namespace}/{claim.name}"] = max(numbers)
        return found

    def _filled(self, facts: NodeFacts, left_out: set[tuple[str, str]]) -> NodeFacts:
        used: dict[str, int] = {}
        counted = [pod for pod in self._pods.on_node(facts.name) if pod.key not in left_out]
        for pod in counted:
            for resource, amount in pod.amounts.items():
                used[resource] = used.get(resource, 0) + amount
        return replace(facts, used=used, pods=len(counted)) if counted else facts

    def _pod(self, change: Change[PodRecord]) -> None:
        old, new = change.old, change.new
        if old is not None:
            self._pods.drop(change.key, old)
        if new is not None:
            self._pods.add(change.key, new)
        for pod in (old, new):
            for family in () if pod is None else self._pods.families_of(pod):
                self._listener.family(family)
        node = "" if old is None else old.node or old.nominated
        if node and (new is None or new.ended):
            self._listener.room(freed.by_node(node))

    def _claim(self, change: Change[Raw]) -> None:
        if change.new is None:
            self.state.drop_claim(*change.key)
        else:
            self._read(self.state.put_claim, change.new)
        for family in self._pods.families_using(change.key):
            self._listener.family(family)
        had, has = (
            ((one or {}).get("status") or {}).get("allocation") for one in (change.old, change.new)
        )
        if had and not has:
            self._listener.room(freed.by_claim(had))
            # Of a pod that is gone: its successor may be waiting for the place.
            owner = owner_pod(change.old or {})
            self._tell_gangs({self.planned_by(owner[1])} if owner else set())

    def _slice(self, change: Change[Slice]) -> None:
        if change.new is None:
            self.state.drop_slice(change.key.name)
        else:
            self.state.put_slice_record(change.new)
        self._listener.room(freed.FLEET)

    def _node(self, change: Change[NodeFacts]) -> None:
        if change.new is None:
            self.state.forget_node(change.key.name, self.node_names())
        if change.old is None or change.new is None or freed.differs(change.old, change.new):
            self._listener.room(freed.FLEET)
        if change.new is None:
            for family in self._pods.families_on(change.key.name):
                self._listener.family(family)

    def _rule(self, change: Change[RuleRecord]) -> None:
        if change.new is None:
            self.state.drop_rule(change.key.name)
        else:
            self._read(self.state.put_rule, change.new.raw)
        self._listener.room(freed.by_rules(_facts_of(change)))
        self._listener.swept()
        # Whose fence has come or gone: nothing else wakes a gang that waits for that.
        self._tell_gangs({fact.gang for fact in _facts_of(change) if fact is not None})

    def _tell_gangs(self, uids: AbstractSet[str]) -> None:
        """Tells of the families of Gangs. uids: an empty one is nobody's."""
        for gang in self.copies.gangs.values() if uids - {""} else ():
            if gang.uid in uids:
                self._listener.family(FamilyKey(gang.namespace, gang.group))

    def _class(self, change: Change[Raw]) -> None:
        if change.new is None:
            self.state.drop_class(change.key.name)
        else:
            self._read(self.state.put_class, change.new)
        self._listener.room(freed.FLEET)

    def _gang(self, change: Change[GangObject]) -> None:
        for uid in promised.pods_of(change.old) if change.old is not None else ():
            self._planned.pop(uid, None)
        if change.new is not None:
            self._planned |= dict.fromkeys(promised.pods_of(change.new), change.new.uid)
        for found in (change.old, change.new):
            if found is not None:
                family = FamilyKey(found.namespace, found.group)
                if found is change.new:
                    self._gangs_of[family][change.key] = None
                elif change.new is None or change.new.group != found.group:
                    drop_key(self._gangs_of, family, change.key)
                self._listener.family(family)
        if change.new is None:
            self._listener.swept()
        if promised.promises_of(change.old) != promised.promises_of(change.new):
            self._listener.room(freed.by_pools(promised.pools_of(change.old)))

    def _job(self, change: Change[JobRecord]) -> None:
        if change.old is not None:
            self._jobs.pop(change.old.uid, None)
        if change.new is not None:
            self._jobs[change.new.uid] = change.new
        known = change.new or change.old
        for family in () if known is None else self._pods.families_of_owner(known.uid):
            self._listener.family(family)

    def _group(self, resource: Resource, key: Key | None) -> None:
        """An object of another project has changed, or whether there is its kind at all."""
        for family in self._pods.families_in(resource, key):
            self._listener.family(family)

    @staticmethod
    def _read(put: Callable[[Raw], None], raw: Raw) -> None:
        """One object that cannot be read must not cost the others; it then counts as before."""
        try:
            put(raw)
        except DragoonError as error:
            _log.warning("object cannot be read", code=error.code, error=str(error))


def _facts_of(change: Change[RuleRecord]) -> list[RuleFacts | None]:
    return [one.facts for one in (change.old, change.new) if one is not None]
