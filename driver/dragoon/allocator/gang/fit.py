"""Whether a node takes a pod, devices apart: what kube-scheduler asks before it looks at claims.

As its plugins NodeName, NodeUnschedulable, TaintToleration, NodeAffinity (required terms) and
NodeResourcesFit do (k8s.io/kubernetes 1.37 `pkg/scheduler/framework/plugins`).
"""

from collections.abc import Mapping
from typing import Final

from dragoon.allocator.gang.model import Amounts, NodeFacts, PodAsk
from dragoon.allocator.model import Node, NodeSelection, Raw, Taint
from dragoon.allocator.nodes import matches
from dragoon.api.names import KEEPS_OFF
from dragoon.errors import DragoonError

UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
PODS: Final = "pods"
"""The resource that is the number of pods."""


def refusal(pod: PodAsk, node: NodeFacts) -> str:
    """Why the node does not take the pod, however empty it is; empty text if it does."""
    if pod.node and pod.node != node.name:
        return f"the pod is bound to node {pod.node}"
    for label, value in pod.node_selector.items():
        if node.labels.get(label) != value:
            return f"nodeSelector {label}={value}"
    if pod.affinity is not None and not admits(pod.affinity, node.name, node.labels):
        return "node affinity"
    return "" if pod.node else _taint(pod, node)


def admits(selector: Raw, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node selector admits a node; one that cannot be read does not."""
    try:
        return matches(NodeSelection(selector=selector), Node(name, labels))
    except DragoonError:
        return False


def free(node: NodeFacts) -> Mapping[str, int]:
    """What is left of each resource of the node, `pods` too; less than nothing is possible."""
    left = {name: amount - node.used.get(name, 0) for name, amount in node.allocatable.items()}
    return {**left, PODS: node.most_pods - node.pods}


def shortage(requests: Amounts, left: Mapping[str, int]) -> str:
    """What is missing for one more pod with these requests, empty if nothing is."""
    if left.get(PODS, 0) < 1:
        return "pods: the node takes no more"
    for name, amount in requests.items():
        if amount > 0 and amount > left.get(name, 0):
            return f"{name}: {shown(name, amount)} wanted, {shown(name, left.get(name, 0))} left"
    return ""


def shown(resource: str, amount: int) -> str:
    """An amount as people write it: cpu in cores, bytes in Mi."""
    if resource == "cpu":
        return f"{amount / 1000:g}"
    if resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-"):
        return f"{amount / 2**20:.0f}Mi"
    return str(amount)


def _taint(pod: PodAsk, node: NodeFacts) -> str:
    taints = (*node.taints, UNSCHEDULABLE) if node.unschedulable else node.taints
    for taint in taints:
        if taint.effect in KEEPS_OFF and not any(one.tolerates(taint) for one in pod.tolerations):
            return f"node taint {taint.key}{f'={taint.value}' if taint.value else ''}"
    return ""
