"""Kubernetes' own gangs (KEP-4671, PodGroup), on a cluster on which they are switched on.

Off by default through 1.37, so this is a cluster of its own. A PodGroup alone is kube-scheduler's
matter. Pods that carry our label too are placed by us, and kube-scheduler binds all or none of them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoon.api import gang
from realcluster.cluster import Cluster
from realcluster.controlplane import KUBE_SCHEDULER
from realcluster.state import Settings
from testbed import version
from testbed.bed import Bed
from testbed.controller import Controller
from testbed.objects import claim_spec, container, pod
from testbed.waiting import until
from tests.e2e.gangs import (
    ADDRESS,
    Gangs,
    allocations,
    devices,
    exactly,
    exclusive,
    is_allocated,
    is_gated,
    steadily,
)
from tests.e2e.standing import a_bed, a_cluster, a_controller

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not version.at_least("1.37.0"), reason="they are beta from 1.37 on"),
]

Object = dict[str, Any]

_VERSION = "scheduling.k8s.io/v1beta1"
_PAIR = claim_spec(2)
_MIG_CLASS = Path(__file__).resolve().parents[2] / "deviceclasses/samples/sim-mig.yaml"
_GROUP = "test/group"
"""The label of all pods of a test's group, ours or not."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    settings = Settings(feature_gates="GenericWorkload=true", runtime_config=f"{_VERSION}=true")
    with a_cluster("nat", node_count=1, settings=settings) as started:
        yield started


@pytest.fixture(scope="module")
def bed(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """Its only node has parts of cards, too."""
    cluster.kubectl("label", "node", "--all", "dragoon.dev/forms=whole_mig")
    with a_bed(cluster, tmp_path_factory.mktemp("plugins")) as made:
        made.kubectl("apply", "-f", str(_MIG_CLASS))
        yield made


@pytest.fixture(scope="module")
def controller(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    with a_controller(bed, tmp_path_factory.mktemp("controller")) as process:
        yield process


def test_a_pod_group_without_our_label_is_left_to_kube_scheduler(gangs: Gangs) -> None:
    (node,) = gangs.nodes
    gangs.template("pair", _PAIR)
    gangs.holder("extra", node, 1)
    _group(gangs, "native", 4)
    _members(gangs, "native", 4, "pair")
    until("kube-scheduler has tried the group", lambda: _is_unschedulable(gangs, "native"))
    members = _pods(gangs, "native")
    assert len(members) == 4
    assert not any(one["spec"].get("nodeName") or is_gated(one) for one in members)
    assert not any(map(is_allocated, _claims(gangs, "native")))

    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "extra", "--wait=false")
    _running(gangs, "native", 4)
    assert exclusive(_claims(gangs, "native"))
    assert not gangs.bed.items("gangs", "-n", gangs.namespace)
    assert not gangs.rules()
    _ends(gangs, "native")


def test_with_our_label_its_minimum_counts_and_all_of_it_is_placed_by_us(gangs: Gangs) -> None:
    (node,) = gangs.nodes
    gangs.template("pair", _PAIR)
    gangs.holder("extra", node, 1)
    _group(gangs, "both", 4)
    _members(gangs, "both", 4, "pair", ours=True)
    waiting = gangs.waits("both", "NoRoom")
    assert waiting["spec"]["size"] == 4
    members = _pods(gangs, "both")
    assert len(members) == 4
    assert all(map(is_gated, members))
    assert not any(map(is_allocated, _claims(gangs, "both")))

    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "extra", "--wait=false")
    _running(gangs, "both", 4)
    assert exclusive(_claims(gangs, "both"))
    assert gangs.rules()
    until("the PodGroup says so, too", lambda: _scheduled(gangs, "both") == "True")
    _ends(gangs, "both")


def test_a_member_without_room_at_the_last_moment_keeps_all_of_them_off_their_node(
    gangs: Gangs,
) -> None:
    """What is allocated stays so: our plan, and kube-scheduler's all or nothing."""
    (node,) = gangs.nodes
    gangs.template("pair", _PAIR)
    cluster, cpu = gangs.bed.cluster, gangs.milli_cpu(node)
    cluster.stop(KUBE_SCHEDULER)
    try:
        _group(gangs, "tight", 4)
        _members(gangs, "tight", 4, "pair", ours=True, cpu=f"{cpu * 15 // 100}m")
        until("all of them are let go", lambda: _let_go(gangs, "tight", 4))
        before = allocations(_claims(gangs, "tight"))
        assert len(before) == 4
        full = container("main")
        full["resources"] = {"requests": {"cpu": f"{cpu // 2}m"}}
        gangs.bed.apply(pod("full", gangs.namespace, full, nodeName=node))
        gangs.bed.running("full", gangs.namespace)
    finally:
        cluster.start(KUBE_SCHEDULER)
    steadily(
        lambda: not any(one["spec"].get("nodeName") for one in _pods(gangs, "tight")),
        lambda: _is_unschedulable(gangs, "tight"),
        "none of them is bound",
    )
    assert allocations(_claims(gangs, "tight")) == before

    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "full", "--wait=false")
    _running(gangs, "tight", 4)
    assert allocations(_claims(gangs, "tight")) == before
    _ends(gangs, "tight")


def test_parts_of_cards_are_placed_for_a_group_for_which_kube_scheduler_finds_no_room(
    gangs: Gangs,
) -> None:
    """The shape of kubernetes#138765: it chooses pod by pod, and never another way for the first."""
    card = {"cel": {"expression": f'{ADDRESS} == "{_address(gangs)}"'}}
    half = {"cel": {"expression": 'device.attributes["gpu.dragoon.dev"].profile == "3g.40gb"'}}
    wishes = [
        {"name": "whole", **exactly(selectors=[card])},
        {"name": "half", **exactly("sim-mig.dragoon.dev", selectors=[card, half])},
    ]
    gangs.template("either", {"devices": {"requests": [{"name": "gpu", "firstAvailable": wishes}]}})
    _group(gangs, "alone", 2)
    _members(gangs, "alone", 2, "either")
    until("kube-scheduler finds no room", lambda: _is_unschedulable(gangs, "alone"))
    assert not any(map(is_allocated, _claims(gangs, "alone")))
    _ends(gangs, "alone")

    _group(gangs, "placed", 2)
    _members(gangs, "placed", 2, "either", ours=True)
    _running(gangs, "placed", 2)
    claims = _claims(gangs, "placed")
    assert exclusive(claims)
    assert all("-mig-" in name for one in claims for _, name in devices(one))
    _ends(gangs, "placed")


def _group(gangs: Gangs, name: str, least: int) -> None:
    gangs.bed.apply(
        {
            "apiVersion": _VERSION,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": gangs.namespace},
            "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
        }
    )


def _members(
    gangs: Gangs, group: str, count: int, template: str, *, ours: bool = False, cpu: str = ""
) -> None:
    """So many pods of a PodGroup. ours: with our label, which says nothing of the size."""
    main = container("main", template)
    if cpu:
        main["resources"]["requests"] = {"cpu": cpu}
    made = []
    for number in range(count):
        one = pod(
            f"{group}-{number}",
            gangs.namespace,
            main,
            templates={template: template},
            schedulingGroup={"podGroupName": group},
        )
        one["metadata"]["labels"] = {_GROUP: group, **({gang.LABEL: group} if ours else {})}
        made.append(one)
    gangs.bed.apply(*made)


def _pods(gangs: Gangs, group: str) -> list[Object]:
    return gangs.bed.items("pods", "-n", gangs.namespace, "-l", f"{_GROUP}={group}")


def _claims(gangs: Gangs, group: str) -> list[Object]:
    names = {one["metadata"]["name"] for one in _pods(gangs, group)}
    every = gangs.bed.items("resourceclaims", "-n", gangs.namespace)
    return [one for one in every if _maker(one) in names]


def _maker(claim: Object) -> str:
    (owner,) = claim["metadata"]["ownerReferences"]
    return str(owner["name"])


def _running(gangs: Gangs, group: str, count: int) -> None:
    def look() -> bool:
        phases = [one["status"].get("phase") for one in _pods(gangs, group)]
        return phases == ["Running"] * count

    until(f"{count} members of {group} run", look)


def _let_go(gangs: Gangs, group: str, count: int) -> bool:
    found = _pods(gangs, group)
    return len(found) == count and not any(map(is_gated, found))


def _is_unschedulable(gangs: Gangs, group: str) -> bool:
    """Whether kube-scheduler has found no room for the group as a whole."""
    return _scheduled(gangs, group) == "False"


def _scheduled(gangs: Gangs, group: str) -> str:
    found = gangs.bed.get("podgroup", group, gangs.namespace) or {}
    conditions = (found.get("status") or {}).get("conditions") or ()
    statuses: dict[str, str] = {one["type"]: one["status"] for one in conditions}
    return statuses.get("PodGroupInitiallyScheduled", "")


def _address(gangs: Gangs) -> str:
    """The PCI address of a card."""
    (node,) = gangs.nodes
    found: list[str] = [
        device["attributes"]["resource.kubernetes.io/pciBusID"]["string"]
        for part in gangs.bed.slices(node)
        for device in part["spec"].get("devices") or ()
    ]
    return min(found)


def _ends(gangs: Gangs, group: str) -> None:
    """Deletes a group; afterwards nothing of it is left."""
    selector = ("-l", f"{_GROUP}={group}")
    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, *selector, "--wait=false")
    until(f"pods of {group} are gone", lambda: not _pods(gangs, group))
    gangs.bed.kubectl("delete", "podgroup", "-n", gangs.namespace, group)
    gangs.left_nothing(group)
