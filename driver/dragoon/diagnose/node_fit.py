"""Whether a pod may run on a node, but for its devices: name, labels, affinity, node taints.

CPU, memory, ports, spreading and affinity to other pods are not looked at; answers say so.
"""

from typing import Final

from dragoon.allocator.claims import node_view
from dragoon.allocator.model import NodeSelection
from dragoon.allocator.nodes import matches
from dragoon.diagnose.manifests import Raw, listed, mapping, text
from dragoon.errors import DragoonError

NOT_LOOKED_AT: Final = "CPU, memory, ports, topology spread and affinity to other pods"
_PREVENTING: Final = frozenset(("NoSchedule", "NoExecute"))


def refusal(pod: Raw, node: Raw) -> str:
    """Why the pod may not run on the node, empty if it may."""
    spec = mapping(pod.get("spec"))
    name = text(mapping(node.get("metadata")).get("name"))
    wanted = text(spec.get("nodeName"))
    if wanted and wanted != name:
        return f"the pod is bound to node {wanted}"
    labels = mapping(mapping(node.get("metadata")).get("labels"))
    for label, value in mapping(spec.get("nodeSelector")).items():
        if labels.get(label) != value:
            return f"nodeSelector {label}={value}"
    required = mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if required is not None and not admits(mapping(required), node):
        return "node affinity"
    return "" if wanted else _taint(spec, node)


def admits(selector: Raw, node: Raw) -> bool:
    """Whether a node selector admits the node; one that cannot be read does not."""
    try:
        return matches(NodeSelection(selector=selector), node_view(node))
    except DragoonError:
        return False


def _taint(spec: Raw, node: Raw) -> str:
    node_spec = mapping(node.get("spec"))
    taints = [mapping(one) for one in listed(node_spec.get("taints"))]
    if node_spec.get("unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    tolerations = [mapping(one) for one in listed(spec.get("tolerations"))]
    for taint in taints:
        if taint.get("effect") in _PREVENTING and not any(
            _tolerates(one, taint) for one in tolerations
        ):
            value = f"={taint['value']}" if taint.get("value") else ""
            return f"node taint {taint.get('key')}{value}"
    return ""


def _tolerates(toleration: Raw, taint: Raw) -> bool:
    """As k8s.io/api/core/v1 Toleration.ToleratesTaint."""
    if toleration.get("effect") not in {None, "", taint.get("effect")}:
        return False
    if toleration.get("key") not in {None, "", taint.get("key")}:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return text(toleration.get("value")) == text(taint.get("value"))
