"""The named holder of which pods other projects have in which group."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from dragoon.gang.discovering.group_objects import object_name
from dragoon.gang.discovering.grouping import groups_of
from dragoon.gang.discovering.table import OBJECTS
from dragoon.gang.records import PodRecord
from dragoon.kube.mirror import Key
from dragoon.kube.port import Resource


class _Group(NamedTuple):
    namespace: str
    source: str
    name: str


class GroupIndex:
    """Pods by group. Belongs to the event loop."""

    def __init__(self) -> None:
        self._pods: defaultdict[_Group, dict[Key, None]] = defaultdict(dict)

    def add(self, pod: PodRecord) -> None:
        """Takes in a pod, in every group that it says to be in."""
        for group in _groups(pod):
            self._pods[group][Key(*pod.key)] = None

    def drop(self, pod: PodRecord) -> None:
        """Forgets a pod as it was added."""
        for group in _groups(pod):
            pods = self._pods[group]
            pods.pop(Key(*pod.key), None)
            if not pods:
                del self._pods[group]

    def beside(self, pods: Iterable[PodRecord]) -> tuple[Key, ...]:
        """All pods that are in a group with one of these, these among them."""
        groups = sorted({group for pod in pods for group in _groups(pod)})
        found = (key for group in groups for key in self._pods.get(group, ()))
        return tuple(dict.fromkeys(found))

    def of_object(self, resource: Resource, key: Key | None) -> tuple[Key, ...]:
        """The pods whose group stands in an object; None: in any object of the kind."""
        return tuple(
            pod
            for group, pods in self._pods.items()
            if OBJECTS.get(group.source) == resource
            and key in {None, Key(group.namespace, object_name(group.name))}
            for pod in pods
        )


def _groups(pod: PodRecord) -> set[_Group]:
    return {_Group(pod.namespace, one.source, one.name) for one in groups_of(pod) if one.name}
