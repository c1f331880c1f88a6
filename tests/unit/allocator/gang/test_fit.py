"""Whether a node takes a pod, devices apart."""

from dataclasses import replace

import pytest

from dragoon.allocator.gang import fit
from dragoon.allocator.gang.model import NodeFacts
from dragoon.allocator.model import Taint, Toleration
from tests.unit.allocator.gang.objects import member, node

POD = member("p")


@pytest.mark.parametrize(
    ("changes", "facts", "reason"),
    [
        ({}, {}, ""),
        ({"node": "n1"}, {"taints": (Taint("k", "", "NoSchedule"),)}, ""),
        ({"node": "n2"}, {}, "the pod is bound to node n2"),
        ({"node_selector": {"rack": "r"}}, {}, "nodeSelector rack=r"),
        ({"node_selector": {"rack": "r"}}, {"labels": {"rack": "r"}}, ""),
        ({}, {"taints": (Taint("k", "v", "NoSchedule"),)}, "node taint k=v"),
        ({}, {"taints": (Taint("k", "", "NoExecute"),)}, "node taint k"),
        ({}, {"taints": (Taint("k", "", "PreferNoSchedule"),)}, ""),
        ({}, {"unschedulable": True}, "node taint node.kubernetes.io/unschedulable"),
        ({"tolerations": (Toleration("", "Exists", "", ""),)}, {"unschedulable": True}, ""),
        (
            {"tolerations": (Toleration("k", "Equal", "w", ""),)},
            {"taints": (Taint("k", "v", "NoSchedule"),)},
            "node taint k=v",
        ),
    ],
)
def test_a_node_refuses_a_pod_for_a_reason(
    changes: dict[str, object], facts: dict[str, object], reason: str
) -> None:
    pod = replace(POD, **changes)  # type: ignore[arg-type]
    assert fit.refusal(pod, NodeFacts("n1", **facts)) == reason  # type: ignore[arg-type]


def test_all_terms_of_an_affinity_are_alternatives_and_a_wrong_one_admits_nothing() -> None:
    def term(operator: str, *values: str) -> dict[str, object]:
        return {"matchExpressions": [{"key": "rack", "operator": operator, "values": values}]}

    facts = node("n1", labels={"rack": "r"})
    either = {"nodeSelectorTerms": [term("In", "x"), term("In", "r")]}
    assert not fit.refusal(replace(POD, affinity=either), facts)
    wrong = {"nodeSelectorTerms": [term("In", "r"), term("Near", "r")]}
    assert fit.refusal(replace(POD, affinity=wrong), facts) == "node affinity"


def test_what_is_short_is_said_with_numbers() -> None:
    left = fit.free(node("n1", cpu=4000, used={"cpu": 3000, "memory": 5}, most_pods=3, pods=1))
    assert left == {"cpu": 1000, "pods": 2}
    assert not fit.shortage({"cpu": 1000, "memory": 0}, left)
    assert fit.shortage({"cpu": 1001}, left) == "cpu: 1.001 wanted, 1 left"
    assert fit.shortage({"memory": 2**30}, left) == "memory: 1024Mi wanted, 0Mi left"
    assert fit.shortage({}, {**left, "pods": 0}) == "pods: the node takes no more"
