"""What Workloads that may start were promised: the named holder, and whose pods are there.

The devices are in gang.asking.Promises, where gangs see them as taken; here is what else their pods
will take of nodes, which matters to other Workloads.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from dragoon.allocator.gang.model import GangPlan, NodeFacts
from dragoon.gang.kueue.deciding import Pods
from dragoon.gang.protocol.model import Ref
from dragoon.gang.records import PodRecord
from dragoon.kube.mirror import Change, Key


class Rooms:
    """What the pods of promises will take of nodes, by the UID of the Workload."""

    def __init__(self) -> None:
        self._taken: dict[str, Mapping[str, tuple[int, Mapping[str, int]]]] = {}

    def __contains__(self, uid: object) -> bool:
        return uid in self._taken

    def __len__(self) -> int:
        return len(self._taken)

    def keep(self, uid: str, plan: GangPlan) -> None:
        """The plan was promised to the Workload with this UID."""
        taken: dict[str, tuple[int, dict[str, int]]] = {}
        for placement in plan.placements:
            pods, amounts = taken.get(placement.node, (0, {}))
            for name, amount in placement.pod.requests.items():
                amounts[name] = amounts.get(name, 0) + amount
            taken[placement.node] = pods + 1, amounts
        self._taken[uid] = taken

    def drop(self, uid: str) -> None:
        """The promise is over."""
        self._taken.pop(uid, None)

    def filled(self, nodes: Iterable[NodeFacts], own: str) -> tuple[NodeFacts, ...]:
        """The nodes with what is promised to all but one Workload."""
        return tuple(self._with_promises(node, own) for node in nodes)

    def _with_promises(self, node: NodeFacts, own: str) -> NodeFacts:
        for uid, nodes in self._taken.items():
            found = nodes.get(node.name)
            if found is not None and uid != own:
                pods, amounts = found
                used = dict(node.used)
                for name, amount in amounts.items():
                    used[name] = used.get(name, 0) + amount
                node = replace(node, used=used, pods=node.pods + pods)
        return node


class PodsOfWorkloads:
    """The pods that carry the UID of a Workload of their namespace.

    Those of other namespaces that carry it count for nothing: anybody may write an annotation.
    changed: told of each UID that is carried. is_placed: whether a living pod has its devices, or
    is planned.
    """

    def __init__(self, is_placed: Callable[[PodRecord], bool]) -> None:
        self._is_placed = is_placed
        self._pods: defaultdict[tuple[str, str], dict[Key, PodRecord]] = defaultdict(dict)
        self.changed: Callable[[str], None] = lambda _uid: None

    def see(self, change: Change[PodRecord]) -> None:
        """A pod has come, changed or gone."""
        for pod in (change.old, change.new):
            if pod is None or not pod.workload:
                continue
            whose = pod.namespace, pod.workload
            pods = self._pods[whose]
            if pod is change.new:
                pods[change.key] = pod
            else:
                pods.pop(change.key, None)
            if not pods:
                del self._pods[whose]
            self.changed(pod.workload)

    def of(self, workload: Ref) -> Pods:
        """How many there are of a Workload. One that has ended had its devices."""
        pods = self._pods.get((workload.namespace, workload.uid), {}).values()
        alive = [pod for pod in pods if pod.is_alive]
        placed = sum(self._is_placed(pod) for pod in alive) + sum(pod.ended for pod in pods)
        return Pods(len(alive), placed)
