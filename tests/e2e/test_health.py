"""GPUs that fall ill under running pods: the real kubelet says so in the pod's status."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from dragoon.api import names
from dragoon.gpu.naming import whole_name
from dragoon.gpu.sim.occupants import ConditionState
from dragoon.health.verdict import TAINT_KEYS
from testbed import version
from testbed.bed import Bed
from testbed.objects import claim_spec, container, pod, template
from testbed.plugins import Plugin
from testbed.waiting import settles, until

_VERSION = version.chosen()
_KEEPS_TAINTS = tuple(map(int, _VERSION.split(".")[:2])) >= (1, 36)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not _KEEPS_TAINTS, reason=f"{_VERSION}: device taints and health are off by default"
    ),
]

_DOMAIN = "nvlinkDomain"


@dataclass
class Node:
    """One node, its plugin, and the namespace of the test."""

    bed: Bed
    plugin: Plugin
    namespace: str

    def start(self, name: str) -> str:
        """A pod with one GPU of the node; the device that it got."""
        here = {"kubernetes.io/hostname": self.plugin.node.name}
        self.bed.apply(
            template("one", self.namespace, claim_spec(1)),
            pod(
                name,
                self.namespace,
                container("c", "gpu"),
                templates={"gpu": "one"},
                nodeSelector=here,
            ),
        )
        self.bed.running(name, self.namespace)
        ((device,), _) = self.bed.devices_seen(name, self.namespace, "c")
        return str(device)

    def slot(self, device: str) -> int:
        """Which card of the simulated machine a device is."""
        state = self.plugin.hardware.read()
        slots = range(len(state.cards))
        return next(slot for slot in slots if whole_name(state.address(slot)) == device)

    def says(self, name: str, health: str, why: str = "") -> bool:
        """Whether the status of a pod says so of its device, with a message that begins so."""
        found = self.bed.device_health(name, self.namespace) or {}
        return found.get("health") == health and found.get("message", "").startswith(why)

    def devices(self) -> dict[str, dict[str, Any]]:
        """The whole GPUs."""
        return self.bed.whole_gpus(self.plugin.node.name)

    def tainted(self) -> dict[str, list[tuple[str, str]]]:
        """Key and value of the taints of those that are not well."""
        found = {
            name: [
                (taint["key"], taint.get("value", ""))
                for taint in device.get("taints") or ()
                if taint["key"] in TAINT_KEYS.values()
            ]
            for name, device in self.devices().items()
        }
        return {name: taints for name, taints in found.items() if taints}

    def linked(self) -> bool:
        """Whether every card is in an NVLink domain."""
        return all(_DOMAIN in one["attributes"] for one in self.devices().values())

    def has_xid_79(self, device: str) -> bool:
        """Not only what its card says of itself, which may be seen before the event."""
        return (names.TAINT_XID, "79") in self.tainted().get(device, ())


@pytest.fixture
def node(bed: Bed, namespace: str) -> Iterator[Node]:
    """A node whose cards are well again afterwards."""
    plugin = next(iter(bed.plugins.values()))
    made = Node(bed, plugin, namespace)
    yield made
    hardware = plugin.hardware
    state = hardware.read()
    for slot, card in enumerate(state.cards):
        for link in card.links_down:
            hardware.raise_link(slot, link)
        if card.links_down:
            hardware.raise_xid(slot, 74)  # its links have changed
        if card.condition != ConditionState():
            hardware.set_condition(slot, ConditionState(recovery=0))
            hardware.raise_xid(slot, 154)  # the recovery action has changed
    settles(made.tainted, {})
    until("all cards are linked", made.linked)


def test_c01_xid_79_on_one_of_eight_gpus_shows_in_its_pod_and_the_others_work_on(
    node: Node,
) -> None:
    ill, well = node.start("ill"), node.start("well")
    until("both are healthy", lambda: all(node.says(p, "Healthy") for p in ("ill", "well")))

    slot = node.slot(ill)
    node.plugin.hardware.set_condition(slot, ConditionState(recovery=1))
    raised = time.monotonic()
    node.plugin.hardware.raise_xid(slot, 79)
    until("the device is tainted", lambda: node.has_xid_79(ill))
    tainted = time.monotonic()
    until("the pod says so", lambda: node.says("ill", "Unhealthy", "XID 79: "))
    shown = time.monotonic()
    node.bed.figures.append(
        f"XID 79: tainted after {tainted - raised:.2f} s, in the pod's status after "
        f"{shown - raised:.2f} s"
    )

    assert set(node.tainted()) == {ill}
    assert node.says("ill", "Unhealthy", "XID 79: the GPU has fallen off the bus")
    assert node.says("well", "Healthy")
    assert node.start("another") not in {ill, well}
    node.bed.running("ill", node.namespace)  # NoSchedule evicts nobody


def test_a_card_that_was_reset_is_healthy_in_the_pods_status_and_free_again(node: Node) -> None:
    device = node.start("first")
    slot = node.slot(device)
    node.plugin.hardware.set_condition(slot, ConditionState(recovery=1))
    node.plugin.hardware.raise_xid(slot, 79)
    until("the device is tainted", lambda: node.has_xid_79(device))
    until("the pod says so", lambda: node.says("first", "Unhealthy", "XID 79: "))

    node.plugin.kill()
    node.plugin.start_and_wait()
    assert node.has_xid_79(device)
    until("it still says so", lambda: node.says("first", "Unhealthy", "XID 79: "))

    node.plugin.hardware.set_condition(slot, ConditionState(recovery=0))
    node.plugin.hardware.raise_xid(slot, 154)
    until("the pod is healthy", lambda: node.says("first", "Healthy"))
    until("the device is free", lambda: not node.tainted())


def test_with_no_execute_the_pod_on_the_sick_gpu_is_evicted_and_no_other(node: Node) -> None:
    strict = node.plugin.with_options(
        "--allow-unenforced-shares", "true", "--taint-effects", "xid=NoExecute"
    )
    node.plugin.stop()
    strict.start_and_wait()
    try:
        ill = node.start("ill")
        node.start("well")
        slot = node.slot(ill)
        node.plugin.hardware.set_condition(slot, ConditionState(recovery=1))
        node.plugin.hardware.raise_xid(slot, 79)
        node.bed.gone("pod", "ill", node.namespace)
        node.bed.running("well", node.namespace)
        assert node.start("next") != ill
    finally:
        strict.stop()
        node.plugin.start_and_wait()


def test_links_that_go_down_change_the_nvlink_domain(node: Node) -> None:
    before = node.devices()
    device = min(before)
    slot = node.slot(device)
    assert node.linked()
    for link in range(len(node.plugin.hardware.read().machine.cards[slot].wires)):
        node.plugin.hardware.drop_link(slot, link)
    node.plugin.hardware.raise_xid(slot, 74)
    until("it has no domain", lambda: _DOMAIN not in node.devices()[device]["attributes"])
    assert {
        name: one["attributes"][_DOMAIN] for name, one in node.devices().items() if name != device
    } == {name: one["attributes"][_DOMAIN] for name, one in before.items() if name != device}
