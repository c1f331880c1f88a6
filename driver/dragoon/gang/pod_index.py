"""The named holder of which pods are of one family, on one node, and name one claim.

It has keys only: the pods themselves are in the copies.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from dragoon.gang.group_index import GroupIndex
from dragoon.gang.records import PodRecord
from dragoon.kube.mirror import Key, Mirror
from dragoon.kube.port import Resource


class FamilyKey(NamedTuple):
    """The pods of one label value in one namespace, and their Gangs."""

    namespace: str
    group: str


class PodIndex:
    """Pods by what the world is asked for. Belongs to the event loop. pods: the copies."""

    def __init__(self, pods: Mirror[PodRecord]) -> None:
        self._pods = pods
        self._families: defaultdict[FamilyKey, dict[Key, None]] = defaultdict(dict)
        self._users: defaultdict[Key, dict[Key, None]] = defaultdict(dict)
        self._of_owner: defaultdict[str, dict[Key, None]] = defaultdict(dict)
        self._on_node: defaultdict[str, dict[Key, None]] = defaultdict(dict)
        self._groups = GroupIndex()
        self._schedulable: dict[Key, None] = {}

    def add(self, key: Key, pod: PodRecord) -> None:
        """Takes in a pod."""
        if pod.group is not None:
            self._families[FamilyKey(pod.namespace, pod.group)][key] = None
            self._groups.add(pod)
            if pod.owner is not None:
                self._of_owner[pod.owner.uid][key] = None
        for claim in pod.claims:
            self._users[Key(pod.namespace, claim)][key] = None
        node = "" if pod.ended else pod.node or pod.nominated
        if node:
            self._on_node[node][key] = None
        if pod.claims and pod.is_alive and not pod.node and not pod.waits:
            self._schedulable[key] = None

    def drop(self, key: Key, pod: PodRecord) -> None:
        """Forgets a pod as it was added."""
        if pod.group is not None:
            drop_key(self._families, FamilyKey(pod.namespace, pod.group), key)
            self._groups.drop(pod)
            if pod.owner is not None:
                drop_key(self._of_owner, pod.owner.uid, key)
        for claim in pod.claims:
            drop_key(self._users, Key(pod.namespace, claim), key)
        drop_key(self._on_node, pod.node or pod.nominated, key)
        self._schedulable.pop(key, None)

    def families(self) -> Iterable[FamilyKey]:
        """All that have a pod."""
        return self._families.keys()

    def family(self, key: FamilyKey) -> tuple[PodRecord, ...]:
        """The pods of a family."""
        return self._found(self._families.get(key, ()))

    def namespaces_with(self, group: str) -> dict[str, int]:
        """How many pods each namespace has with this label value."""
        return {
            key.namespace: len(pods) for key, pods in self._families.items() if key.group == group
        }

    def users(self, claim: Key) -> tuple[PodRecord, ...]:
        """The pods that name a claim."""
        return self._found(self._users.get(claim, ()))

    def claims(self) -> Iterable[Key]:
        """All claims that a pod names."""
        return self._users.keys()

    def schedulable(self) -> tuple[PodRecord, ...]:
        """The pods with claims that kube-scheduler may schedule now."""
        return self._found(self._schedulable)

    def on_node(self, node: str) -> tuple[PodRecord, ...]:
        """The pods that are bound to a node, or nominated for it, and have not ended."""
        return self._found(self._on_node.get(node, ()))

    def in_groups_of(self, pods: Iterable[PodRecord]) -> tuple[PodRecord, ...]:
        """All pods that other projects have in a group with one of these."""
        return self._found(self._groups.beside(pods))

    def families_of(self, pod: PodRecord) -> Iterator[FamilyKey]:
        """The family whose label it has, and those whose claims it uses."""
        if pod.group is not None:
            yield FamilyKey(pod.namespace, pod.group)
        for claim in pod.claims:
            yield from self.families_using(Key(pod.namespace, claim))

    def families_using(self, claim: Key) -> tuple[FamilyKey, ...]:
        """The families with a pod that names a claim."""
        return _families(self.users(claim))

    def families_on(self, node: str) -> tuple[FamilyKey, ...]:
        """The families with a pod on a node."""
        return _families(self.on_node(node))

    def families_of_owner(self, uid: str) -> tuple[FamilyKey, ...]:
        """The families with a pod of this owner."""
        return _families(self._found(self._of_owner.get(uid, ())))

    def families_in(self, resource: Resource, key: Key | None) -> tuple[FamilyKey, ...]:
        """The families with a pod whose group stands in an object; None: in any of the kind."""
        return _families(self._found(self._groups.of_object(resource, key)))

    def _found(self, keys: Iterable[Key]) -> tuple[PodRecord, ...]:
        pods = (self._pods.get(name, namespace) for namespace, name in keys)
        return tuple(pod for pod in pods if pod is not None)


def drop_key(index: defaultdict[Any, dict[Key, None]], at: Any, key: Key) -> None:
    """Takes a key out of an index, and the entry with its last one."""
    entries = index.get(at)
    if entries is not None:
        entries.pop(key, None)
        if not entries:
            del index[at]


def _families(pods: Iterable[PodRecord]) -> tuple[FamilyKey, ...]:
    """Each once, in the order of the pods."""
    found = (FamilyKey(pod.namespace, pod.group) for pod in pods if pod.group is not None)
    return tuple(dict.fromkeys(found))
