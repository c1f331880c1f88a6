"""Whether a pod may run on a node, but for its devices: name, labels, affinity, node taints.

The rules are the gang planner's; here raw objects are read for them, also those that no API server
has checked. CPU, memory, ports, spreading and affinity to other pods are not looked at for single
pods; answers say so.
"""

from typing import Final

from dragoon.allocator.gang import NodeFacts, PodAsk, fit
from dragoon.allocator.model import Taint, Toleration
from dragoon.diagnose.manifests import Raw, listed, mapping, text

NOT_LOOKED_AT: Final = "CPU, memory, ports, topology spread and affinity to other pods"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def rules_of(pod: Raw) -> PodAsk:
    """What a pod demands of a node, amounts apart."""
    spec = mapping(pod.get("spec"))
    affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get(_REQUIRED)
    return PodAsk(
        namespace="",
        name="",
        uid="",
        tolerations=tuple(
            Toleration(*(text(one.get(key)) for key in ("key", "operator", "value", "effect")))
            for one in map(mapping, listed(spec.get("tolerations")))
        ),
        node_selector=mapping(spec.get("nodeSelector")),
        affinity=None if affinity is None else mapping(affinity),
        node=text(spec.get("nodeName")),
    )


def refusal(rules: PodAsk, node: Raw) -> str:
    """Why the pod may not run on the node, empty if it may."""
    metadata, spec = mapping(node.get("metadata")), mapping(node.get("spec"))
    facts = NodeFacts(
        name=text(metadata.get("name")),
        labels=mapping(metadata.get("labels")),
        taints=tuple(
            Taint(text(one.get("key")), text(one.get("value")), text(one.get("effect")))
            for one in map(mapping, listed(spec.get("taints")))
        ),
        unschedulable=bool(spec.get("unschedulable")),
    )
    return fit.refusal(rules, facts)


def admits(selector: Raw, node: Raw) -> bool:
    """Whether a node selector admits the node; one that cannot be read does not."""
    metadata = mapping(node.get("metadata"))
    return fit.admits(selector, text(metadata.get("name")), mapping(metadata.get("labels")))
