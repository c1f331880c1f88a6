"""Gangs on a real cluster: all members are placed together or none is.

kube-scheduler binds, the kubelet and containerd run the pods; only the GPUs are simulated.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from dragoon.api import gang
from testbed.bed import Bed
from testbed.objects import SLEEP, claim_spec, container
from testbed.plugins import SYSTEM, install
from testbed.waiting import until
from tests.e2e.gangs import (
    ADDRESS,
    PAIR,
    Gangs,
    condition,
    devices,
    exactly,
    exclusive,
    is_allocated,
    is_gated,
)
from tests.e2e.standing import all_forms

pytestmark = [pytest.mark.e2e, pytest.mark.gangs, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def forms(bed: Bed) -> Iterator[str]:
    """A node that publishes all forms for as long as these tests run."""
    with all_forms(bed) as node:
        yield node


@pytest.fixture(scope="module")
def other_driver(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Another DRA driver on one node, and the name of its class: this one under another name."""
    name = "other.example"
    node = max(bed.plugins)
    # The policy own-slices lets our own plugin publish for its own driver only.
    install(bed.cluster, name, "other-plugin")
    folder = tmp_path_factory.mktemp("other")
    rights = bed.cluster.account_kubeconfig(
        "other-plugin", folder / "kubeconfig", namespace=SYSTEM, node=node
    )
    selector = {"cel": {"expression": f'device.driver == "{name}"'}}
    bed.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [selector]},
        }
    )
    plugin = bed.plugins[node].with_options(
        *("--driver-name", name, "--simulate-state", str(folder / "gpus.json")),
        *("--kubeconfig", str(rights)),
    )
    bed.kubectl("label", "node", node, "dragoon.dev/coexist=true")  # both have the same GPUs
    try:
        plugin.start_and_wait()
        yield name
    finally:
        plugin.stop()
        bed.kubectl("label", "node", node, "dragoon.dev/coexist-")


def test_pairs_on_two_nodes_wait_for_the_missing_one_and_then_run_together(gangs: Gangs) -> None:
    first, second = gangs.nodes
    gangs.holder("first", first, 4)
    gangs.holder("second", second, 4)
    gangs.holder("extra", second, 1)
    gangs.template("pair", PAIR)
    gangs.job("train", 4, "pair")

    waiting = gangs.waits("train", "NoRoom", "3 of 4")
    assert condition(waiting, "Placed")["status"] == "False"
    members = gangs.pods("train")
    assert len(members) == 4
    assert all(map(is_gated, members))
    assert not any(map(is_allocated, gangs.claims("train")))

    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "extra", "--wait=false")
    members = gangs.running("train", 4)
    assert {one["spec"]["nodeName"] for one in members} == {first, second}
    claims = gangs.claims("train")
    assert exclusive(claims)
    for claim in claims:
        (node, one), (other_node, other) = devices(claim)
        assert (node, one) != (other_node, other)
        assert node == other_node
    assert gangs.reaches("train", "Running")["status"]["members"]["summary"] == "4/4"
    gangs.ends("train")


def test_a_master_does_not_take_a_gpu_that_only_a_worker_can_use(gangs: Gangs) -> None:
    """Manifest m10: the members have different shapes."""
    node = gangs.nodes[0]
    addresses = sorted(
        device["attributes"]["resource.kubernetes.io/pciBusID"]["string"]
        for piece in gangs.bed.slices(node)
        for device in piece["spec"].get("devices") or ()
    )[:3]
    listed = ", ".join(f'"{address}"' for address in addresses)
    worker = [{"cel": {"expression": f"{ADDRESS} in [{listed}]"}}]
    here = {"nodeSelector": {"kubernetes.io/hostname": node}}
    gangs.template("any", _one(exactly()))
    gangs.template("large", _one(exactly(selectors=worker)))
    gangs.member("master", "mixed", 4, container("main", "any"), templates={"any": "any"}, **here)
    for number in range(3):
        gangs.member(
            f"worker-{number}",
            "mixed",
            4,
            container("main", "large"),
            templates={"large": "large"},
            **here,
        )
    gangs.running("mixed", 4)
    assert exclusive(gangs.claims("mixed"))
    _delete_members(gangs, "mixed")


def test_members_that_share_a_claim_meet_on_its_node(gangs: Gangs) -> None:
    gangs.bed.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "common", "namespace": gangs.namespace},
            "spec": _one(exactly(count=2)),
        }
    )
    gangs.template("own", _one(exactly()))
    for name in ("left", "right"):
        gangs.member(
            name,
            "couple",
            2,
            container("main", "own", "common"),
            templates={"own": "own"},
            claims={"common": "common"},
        )
    members = gangs.running("couple", 2)
    assert len({one["spec"]["nodeName"] for one in members}) == 1
    claims = gangs.bed.items("resourceclaims", "-n", gangs.namespace)
    assert len(claims) == 3
    assert exclusive(claims)
    _delete_members(gangs, "couple")

    def cleared() -> bool:
        found = gangs.bed.get("resourceclaim", "common", gangs.namespace)
        return found is not None and not is_allocated(found)

    until("the claim that a user made is free again", cleared)


def test_shares_and_instances_are_given_to_gangs_too(gangs: Gangs, forms: str) -> None:
    here = {"nodeSelector": {"kubernetes.io/hostname": forms}}
    share = exactly("sim-shared.dragoon.dev", capacity={"requests": {"memory": "40Gi"}})
    part = exactly("sim-mig.dragoon.dev", selectors=[_profile("3g.40gb")])
    gangs.template("share", _one(share))
    gangs.template("part", _one(part))
    for number in range(4):
        gangs.member(
            f"s{number}",
            "shares",
            4,
            container("main", "share"),
            templates={"share": "share"},
            **here,
        )
    for number in range(4):
        gangs.member(
            f"m{number}", "parts", 4, container("main", "part"), templates={"part": "part"}, **here
        )
    gangs.running("shares", 4)
    gangs.running("parts", 4)
    assert exclusive(gangs.claims("parts"))
    held = {name.partition("-mig-")[0] for one in gangs.claims("parts") for _, name in devices(one)}
    shared = {
        name.removesuffix("-shared") for one in gangs.claims("shares") for _, name in devices(one)
    }
    assert not held & shared
    _delete_members(gangs, "shares", "parts")


def test_a_fallback_is_taken_where_the_first_choice_would_leave_a_member_out(
    gangs: Gangs, forms: str
) -> None:
    """The shape of kubernetes#138765: one GPU, two members, each would rather have all of it."""
    (address, *_) = sorted(
        device["attributes"]["resource.kubernetes.io/pciBusID"]["string"]
        for piece in gangs.bed.slices(forms)
        for device in piece["spec"].get("devices") or ()
    )
    card = {"cel": {"expression": f'{ADDRESS} == "{address}"'}}
    wishes = [
        {"name": "whole", **exactly(selectors=[card])},
        {"name": "half", **exactly("sim-mig.dragoon.dev", selectors=[card, _profile("3g.40gb")])},
    ]
    gangs.template("either", {"devices": {"requests": [{"name": "gpu", "firstAvailable": wishes}]}})
    for name in ("one", "two"):
        gangs.member(
            name,
            "fallback",
            2,
            container("main", "either"),
            templates={"either": "either"},
            nodeSelector={"kubernetes.io/hostname": forms},
        )
    gangs.running("fallback", 2)
    claims = gangs.claims("fallback")
    assert exclusive(claims)
    assert all("-mig-" in name for claim in claims for _, name in devices(claim))
    _delete_members(gangs, "fallback")


def test_claims_of_another_driver_are_planned_along(gangs: Gangs, other_driver: str) -> None:
    node = gangs.nodes[-1]
    gangs.template("own", _one(exactly(count=2)))
    gangs.template("other", _one(exactly(other_driver, count=4)))
    gangs.job("both", 2, "own", "other")
    members = gangs.running("both", 2)
    assert {one["spec"]["nodeName"] for one in members} == {node}
    assert exclusive(gangs.claims("both"))
    gangs.ends("both")


def test_a_gang_larger_than_the_cluster_is_told_whether_more_nodes_would_help(
    gangs: Gangs,
) -> None:
    gangs.template("pair", PAIR)
    gangs.template("nine", claim_spec(9))
    # Of a node with eight GPUs a second one gives the gang room, and no number of them a member.
    for name, size, template, reason in (
        ("huge", 9, "pair", "NoRoom"),
        ("odd", 1, "nine", "Never"),
    ):
        gangs.job(name, size, template)
        gangs.waits(name, reason)
        assert not any(map(is_allocated, gangs.claims(name)))
        gangs.ends(name)


def test_a_member_that_comes_back_gets_the_devices_of_the_one_that_went(gangs: Gangs) -> None:
    gangs.template("pair", PAIR)
    # One that is taken away has not done its work: with 0 its Job would count it as done.
    gangs.job("train", 4, "pair", script=SLEEP.replace("exit 0", "exit 143"))
    members = gangs.running("train", 4)
    before = {device for one in gangs.claims("train") for device in devices(one)}
    lost = members[0]["metadata"]["name"]
    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, lost, "--wait=false")

    def replaced() -> bool:
        names = {one["metadata"]["name"] for one in gangs.pods("train")}
        return lost not in names and len(names) == 4

    until("a successor was made", replaced)
    gangs.running("train", 4)
    after = {device for one in gangs.claims("train") for device in devices(one)}
    assert after == before
    gangs.ends("train")


def test_pods_that_never_had_the_gate_are_reported_and_not_planned(gangs: Gangs) -> None:
    gangs.bed.kubectl("run", "late", "-n", gangs.namespace, "--image=dragoon.test/none:1")
    gangs.bed.kubectl("label", "pod", "late", "-n", gangs.namespace, f"{gang.LABEL}=late")
    gangs.bed.kubectl("annotate", "pod", "late", "-n", gangs.namespace, f"{gang.ANNOTATION_SIZE}=1")

    def told() -> bool:
        found = (gangs.gang("late") or {}).get("status") or {}
        conditions = {one["type"]: one["status"] for one in found.get("conditions") or ()}
        return conditions.get("Ungated") == "True"

    until("the Gang says that it has pods without the gate", told)
    _delete_members(gangs, "late")


def _one(request: Any) -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "gpu", "exactly": dict(request)}]}}


def _profile(name: str) -> dict[str, Any]:
    expression = f'device.attributes["gpu.dragoon.dev"].profile == "{name}"'
    return {"cel": {"expression": expression}}


def _delete_members(gangs: Gangs, *groups: str) -> None:
    for group in groups:
        selector = ("-l", f"{gang.LABEL}={group}")
        gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, *selector, "--wait=false")
    for group in groups:
        gangs.left_nothing(group)
