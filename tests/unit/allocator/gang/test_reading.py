"""Pods and nodes as kube-scheduler counts them."""

from typing import Any

import pytest

from dragoon.allocator.gang.reading import (
    extended_resources,
    node_facts,
    pod_amounts,
    pod_ask,
    unmodelled,
)
from dragoon.errors import InvalidInputError

Raw = dict[str, Any]


def container(name: str = "c", **requests: str) -> Raw:
    return {"name": name, "resources": {"requests": requests}}


def pod(*containers: Raw, **spec: Any) -> Raw:
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"containers": list(containers), **spec},
    }


def test_containers_are_added_up_and_rounded_up_once() -> None:
    amounts = pod_amounts(
        pod(container("a", cpu="100m", memory="1.5"), container("b", cpu="0.0001"))
    )
    assert amounts == {"cpu": 101, "memory": 2}


def test_an_init_container_counts_where_it_is_larger_than_the_rest() -> None:
    init = [container("i", cpu="3", memory="1"), container("j", cpu="2")]
    assert pod_amounts(pod(container(cpu="1", memory="5"), initContainers=init)) == {
        "cpu": 3000,
        "memory": 5,
    }


def test_a_sidecar_runs_beside_the_containers_and_later_init_containers() -> None:
    sidecar = {**container("s", cpu="1"), "restartPolicy": "Always"}
    assert pod_amounts(pod(container(cpu="1"), initContainers=[sidecar])) == {"cpu": 2000}
    later = [sidecar, container("i", cpu="4")]
    assert pod_amounts(pod(container(cpu="1"), initContainers=later)) == {"cpu": 5000}
    earlier = [container("i", cpu="4"), sidecar]
    assert pod_amounts(pod(container(cpu="1"), initContainers=earlier)) == {"cpu": 4000}


def test_overhead_comes_on_top_and_pod_level_resources_replace_sums() -> None:
    found = pod_amounts(
        pod(
            container(cpu="1", memory="1"),
            resources={"requests": {"cpu": "3", "example.com/x": "9"}},
            overhead={"cpu": "250m"},
        )
    )
    assert found == {"cpu": 3250, "memory": 1}


def test_a_limit_without_a_request_is_a_request() -> None:
    one = {
        "name": "c",
        "resources": {"limits": {"cpu": "2", "memory": "9"}, "requests": {"memory": "4"}},
    }
    assert pod_amounts(pod(one)) == {"cpu": 2000, "memory": 4}


def test_while_a_pod_is_resized_the_larger_amount_counts() -> None:
    raw = pod(container("c", cpu="1"))
    raw["status"] = {
        "containerStatuses": [
            {
                "name": "c",
                "allocatedResources": {"cpu": "2"},
                "resources": {"requests": {"cpu": "3"}},
            }
        ]
    }
    assert pod_amounts(raw) == {"cpu": 3000}


def test_a_quantity_that_is_none_is_named() -> None:
    with pytest.raises(InvalidInputError, match="Pod p: cpu"):
        pod_amounts(pod(container(cpu="much")))


def test_a_node_counts_its_pods_but_not_those_that_have_ended() -> None:
    ended = {**pod(container(cpu="7")), "status": {"phase": "Succeeded"}}
    raw = {
        "metadata": {"name": "n1", "labels": {"rack": "r"}},
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "8", "memory": "1Gi", "pods": "20"}},
    }
    facts = node_facts(raw, [pod(container(cpu="1")), pod(container(cpu="500m")), ended])
    assert (facts.used, facts.pods, facts.most_pods) == ({"cpu": 1500}, 2, 20)
    assert facts.allocatable == {"cpu": 8000, "memory": 2**30}
    assert facts.unschedulable
    assert [str(one) for one in facts.taints] == ["k:NoSchedule"]


def test_rules_that_are_not_looked_at_are_named() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spec = {
        "affinity": {"podAffinity": {required: [{}]}, "podAntiAffinity": {required: [{}]}},
        "topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}],
        "containers": [{"ports": [{"hostPort": 80}]}],
        "volumes": [{"persistentVolumeClaim": {"claimName": "x"}}],
    }
    assert list(unmodelled(spec)) == [
        "podAffinity",
        "podAntiAffinity",
        "topologySpreadConstraints",
        "hostPorts",
        "volumes",
    ]
    soft = {
        "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}},
        "topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}],
        "volumes": [{"configMap": {"name": "x"}}],
    }
    assert not list(unmodelled(soft))


def test_an_ask_has_what_the_pod_says() -> None:
    required: Raw = {"nodeSelectorTerms": [{"matchExpressions": []}]}
    ask = pod_ask(
        pod(
            container(cpu="1"),
            schedulerName="other",
            priority=7,
            nodeSelector={"a": "b"},
            tolerations=[{"key": "k", "operator": "Exists"}],
            affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        )
    )
    assert (ask.scheduler, ask.priority, ask.node_selector) == ("other", 7, {"a": "b"})
    assert ask.affinity == required
    assert ask.tolerations[0].key == "k"
    assert str(ask) == "n/p"


def test_classes_stand_for_extended_resources_by_name_and_implicitly() -> None:
    classes = [
        {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}},
        {"metadata": {"name": "nic"}, "spec": {}},
    ]
    assert extended_resources(classes) == {
        "deviceclass.resource.kubernetes.io/gpu": "gpu",
        "example.com/gpu": "gpu",
        "deviceclass.resource.kubernetes.io/nic": "nic",
    }


def test_of_several_classes_for_one_resource_the_newest_counts_and_then_the_first_by_name() -> None:
    def one(name: str, created: str) -> dict[str, Any]:
        meta = {"name": name, "creationTimestamp": created} if created else {"name": name}
        return {"metadata": meta, "spec": {"extendedResourceName": "example.com/gpu"}}

    old, new = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    for classes, wanted in (
        ([one("b", new), one("a", old)], "b"),
        ([one("b", old), one("a", old)], "a"),
        ([one("a", old), one("b", old)], "a"),
        ([one("c", ""), one("a", new)], "c"),
    ):
        assert extended_resources(classes)["example.com/gpu"] == wanted
