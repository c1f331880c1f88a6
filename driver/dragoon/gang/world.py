"""The named holder of what the informers show, with the indexes that gangs are found by.

Belongs to the event loop. Whoever decides takes frozen parts of it: records, raw objects that
nobody changes, and snapshots of `state`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

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
from dragoon.gang.group_index import GroupIndex
from dragoon.gang.protocol.model import RuleFacts
from dragoon.gang.records import JobRecord, PodRecord, Raw
from dragoon.gang.waiting import freed
from dragoon.gang.waiting.freed import Freed
from dragoon.kube.mirror import Change, Key
from dragoon.kube.port import Resource

_log = structlog.get_logger(__name__)


class FamilyKey(NamedTuple):
    """The pods of one label value in one namespace, and their Gangs."""

    namespace: str
    group: str


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
        self._families: defaultdict[FamilyKey, dict[Key, None]] = defaultdict(dict)
        self._gangs_of: defaultdict[FamilyKey, dict[Key, None]] = defaultdict(dict)
        self._users: defaultdict[Key, dict[Key, None]] = defaultdict(dict)
        self._pods_of_owner: defaultdict[str, dict[Key, None]] = defaultdict(dict)
        self._groups = GroupIndex()
        self._on_node: defaultdict[str, dict[Key, None]] = defaultdict(dict)
        self._schedulable: dict[Key, None] = {}
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
        keys = self._users.get(Key(namespace, claim), ())
        pods = (self.copies.pods.get(key.name, key.namespace) for key in keys)
        return tuple(pod for pod in pods if pod is not None)

    def pods_using(self, namespace: str, claim: str) -> tuple[Raw, ...]:
        """The raw pods that name a claim."""
        return tuple(pod.raw for pod in self.users(namespace, claim) if pod.raw is not None)

    def rules(self) -> tuple[RuleFacts, ...]:
        """The DeviceTaintRules of ours."""
        return tuple(one.facts for one in self.copies.rules.values() if one.facts is not None)

    def family(self, key: FamilyKey) -> tuple[PodRecord, ...]:
        """The pods with this label value."""
        found = (
            self.copies.pods.get(name, namespace) for namespace, name in self._families.get(key, ())
        )
        return tuple(pod for pod in found if pod is not None)

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
        return {
            key.namespace: len(pods) for key, pods in self._families.items() if key.group == group
        }

    def families(self) -> set[FamilyKey]:
        """All that have a pod or a Gang."""
        return {*self._families, *self._gangs_of}

    @property
    def ground(self) -> Ground:
        """What the numbers of groups are read from."""
        return Ground(self.copies.groups, self._jobs)

    def in_groups_of(self, pods: Iterable[PodRecord]) -> tuple[PodRecord, ...]:
        """All pods that other projects have in a group with one of these."""
        keys = self._groups.beside(pods)
        found = (self.copies.pods.get(key.name, key.namespace) for key in keys)
        return tuple(pod for pod in found if pod is not None)

    @property
    def jobs_by_uid(self) -> Mapping[str, JobRecord]:
        return self._jobs

    def pending_claims(self) -> frozenset[str]:
        """UIDs of unallocated claims of pods that kube-scheduler may schedule now."""
        found: set[str] = set()
        for namespace, name in self._schedulable:
            pod = self.copies.pods.get(name, namespace)
            for claim_name in () if pod is None else pod.claims:
                claim = self.copies.claims.get(claim_name, namespace)
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
        for key in self._users.get(Key(namespace, claim), ()):
            pod = self.copies.pods.get(key.name, key.namespace)
            uid = "" if pod is None else self.planned_by(pod.uid)
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
        for (namespace, name), users in self._users.items():
            pods = (self.copies.pods.get(user.name, user.namespace) for user in users)
            numbers = [pod.priority for pod in pods if pod is not None and pod.is_alive]
            if numbers:
                found[f"{namespace}/{name}"] = max(numbers)
        return found

    def _filled(self, facts: NodeFacts, left_out: set[tuple[str, str]]) -> NodeFacts:
        used: dict[str, int] = {}
        count = 0
        for key in self._on_node.get(facts.name, ()):
            pod = self.copies.pods.get(key.name, key.namespace)
            if pod is None or key in left_out:
                continue
            count += 1
            for resource, amount in pod.amounts.items():
                used[resource] = used.get(resource, 0) + amount
        return replace(facts, used=used, pods=count) if count else facts

    def _pod(self, change: Change[PodRecord]) -> None:
        old, new = change.old, change.new
        if old is not None:
            self._forget_pod(change.key, old)
        if new is not None:
            self._index_pod(change.key, new)
        for pod in (old, new):
            for family in () if pod is None else self._families_of(pod):
                self._listener.family(family)
        node = "" if old is None else old.node or old.nominated
        if node and (new is None or new.ended):
            self._listener.room(freed.by_node(node))

    def _families_of(self, pod: PodRecord) -> Iterable[FamilyKey]:
        """The family whose label it has, and those whose claims it uses."""
        if pod.group is not None:
            yield FamilyKey(pod.namespace, pod.group)
        for claim in pod.claims:
            yield from self._families_using(Key(pod.namespace, claim))

    def _index_pod(self, key: Key, pod: PodRecord) -> None:
        if pod.group is not None:
            self._families[FamilyKey(pod.namespace, pod.group)][key] = None
            self._groups.add(pod)
            if pod.owner is not None:
                self._pods_of_owner[pod.owner.uid][key] = None
        for claim in pod.claims:
            self._users[Key(pod.namespace, claim)][key] = None
        node = "" if pod.ended else pod.node or pod.nominated
        if node:
            self._on_node[node][key] = None
        if pod.claims and pod.is_alive and not pod.node and not pod.waits:
            self._schedulable[key] = None

    def _forget_pod(self, key: Key, pod: PodRecord) -> None:
        if pod.group is not None:
            _drop(self._families, FamilyKey(pod.namespace, pod.group), key)
            self._groups.drop(pod)
            if pod.owner is not None:
                _drop(self._pods_of_owner, pod.owner.uid, key)
        for claim in pod.claims:
            _drop(self._users, Key(pod.namespace, claim), key)
        _drop(self._on_node, pod.node or pod.nominated, key)
        self._schedulable.pop(key, None)

    def _families_using(self, claim: Key) -> Iterable[FamilyKey]:
        for user in self._users.get(claim, ()):
            pod = self.copies.pods.get(user.name, user.namespace)
            if pod is not None and pod.group is not None:
                yield FamilyKey(pod.namespace, pod.group)

    def _claim(self, change: Change[Raw]) -> None:
        if change.new is None:
            self.state.drop_claim(*change.key)
        else:
            self._read(self.state.put_claim, change.new)
        for family in set(self._families_using(change.key)):
            self._listener.family(family)
        had, has = (
            ((one or {}).get("status") or {}).get("allocation") for one in (change.old, change.new)
        )
        if had and not has:
            self._listener.room(freed.by_claim(had))
            self._tell_gang_that_had(change.old or {})

    def _tell_gang_that_had(self, claim: Raw) -> None:
        """The claim of a pod that is gone is free: its successor may be waiting for the place."""
        owner = owner_pod(claim)
        uid = "" if owner is None else self.planned_by(owner[1])
        for gang in self.copies.gangs.values() if uid else ():
            if gang.uid == uid:
                self._listener.family(FamilyKey(gang.namespace, gang.group))

    def _slice(self, change: Change[Slice]) -> None:
        if change.new is None:
            self.state.drop_slice(change.key.name)
        else:
            self.state.put_slice_record(change.new)
        self._listener.room(freed.FLEET)

    def _node(self, change: Change[NodeFacts]) -> None:
        if change.new is None:
            self.state.forget_node(change.key.name)
        if change.old is None or change.new is None or freed.differs(change.old, change.new):
            self._listener.room(freed.FLEET)
        if change.new is None:
            for key in self._on_node.get(change.key.name, ()):
                pod = self.copies.pods.get(key.name, key.namespace)
                if pod is not None and pod.group is not None:
                    self._listener.family(FamilyKey(pod.namespace, pod.group))

    def _rule(self, change: Change[RuleRecord]) -> None:
        if change.new is None:
            self.state.drop_rule(change.key.name)
        else:
            self._read(self.state.put_rule, change.new.raw)
        self._listener.room(freed.by_rules(_facts_of(change)))
        self._listener.swept()
        for family in self._families_of_rule(change):
            self._listener.family(family)

    def _families_of_rule(self, change: Change[RuleRecord]) -> set[FamilyKey]:
        """Whose fence has come or gone: nothing else wakes a gang that waits for that."""
        uids = {fact.gang for fact in _facts_of(change) if fact is not None and fact.gang}
        return {
            FamilyKey(gang.namespace, gang.group)
            for gang in self.copies.gangs.values()
            if gang.uid in uids
        }

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
                    _drop(self._gangs_of, family, change.key)
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
        for key in () if known is None else self._pods_of_owner.get(known.uid, ()):
            self._tell_family_of(key)

    def _group(self, resource: Resource, key: Key | None) -> None:
        """An object of another project has changed, or whether there is its kind at all."""
        for pod in self._groups.of_object(resource, key):
            self._tell_family_of(pod)

    def _tell_family_of(self, key: Key) -> None:
        pod = self.copies.pods.get(key.name, key.namespace)
        if pod is not None and pod.group is not None:
            self._listener.family(FamilyKey(pod.namespace, pod.group))

    @staticmethod
    def _read(put: Callable[[Raw], None], raw: Raw) -> None:
        """One object that cannot be read must not cost the others; it then counts as before."""
        try:
            put(raw)
        except DragoonError as error:
            _log.warning("object cannot be read", code=error.code, error=str(error))


def _facts_of(change: Change[RuleRecord]) -> list[RuleFacts | None]:
    return [one.facts for one in (change.old, change.new) if one is not None]


def _drop(index: defaultdict[Any, dict[Key, None]], at: Any, key: Key) -> None:
    """Takes a key out of an index, and the entry with its last one."""
    entries = index.get(at)
    if entries is not None:
        entries.pop(key, None)
        if not entries:
            del index[at]
