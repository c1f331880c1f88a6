"""One GPU of a real cluster is whole, shared and divided by turns, as claims ask for it.

The real kube-scheduler decides by the published counters what the card becomes next.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoon.api.names import TAINT_XID
from dragoon.gpu.sim.occupants import ConditionState
from dragoon.publish.floor import floor
from testbed import version
from testbed.bed import Bed
from testbed.objects import CLASS, container, pod, template
from testbed.waiting import until
from tests.e2e.standing import all_forms

_VERSION = version.chosen()
_HAS_FORMS = floor(_VERSION).forms

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
needs_forms = pytest.mark.skipif(not _HAS_FORMS, reason=f"{_VERSION} has whole GPUs only")

_LABEL = "dragoon.dev/forms"
_SAMPLES = Path(__file__).resolve().parents[2] / "deviceclasses/samples"
_GPU = 'device.attributes["resource.kubernetes.io"].pciBusID == "{}"'
_ADDRESS = "resource.kubernetes.io/pciBusID"
_PROFILE = 'device.attributes["gpu.dragoon.dev"].profile == "{}"'


@dataclass
class Card:
    """The one GPU that all claims of these tests ask for."""

    bed: Bed
    node: str
    address: str
    namespace: str = ""

    def start(self, name: str, device_class: str, *selectors: str, **exactly: Any) -> None:
        """A pod with one claim of this card."""
        every = (_GPU.format(self.address), *selectors)
        wish = {
            "deviceClassName": device_class,
            "selectors": [{"cel": {"expression": text}} for text in every],
            **exactly,
        }
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": wish}]}}
        self.bed.apply(
            template(name, self.namespace, spec),
            pod(
                name,
                self.namespace,
                container("main", "gpu"),
                templates={"gpu": name},
                nodeSelector={"kubernetes.io/hostname": self.node},
            ),
        )

    def whole(self, name: str) -> None:
        self.start(name, CLASS)

    def share(self, name: str, memory: str) -> None:
        self.start(name, "sim-shared.dragoon.dev", capacity={"requests": {"memory": memory}})

    def part(self, name: str, profile: str) -> None:
        self.start(name, "sim-mig.dragoon.dev", _PROFILE.format(profile))

    def devices(self, *names: str) -> list[str]:
        """What the containers of these pods see, once they all run."""
        found = []
        for name in names:
            self.bed.running(name, self.namespace)
            marked, named = self.bed.devices_seen(name, self.namespace, "main")
            assert marked == named
            (device,) = marked
            found.append(device)
        return found

    def uuid(self, name: str) -> str:
        """The UUID that the container of a pod is given."""
        env = self.bed.run_in(name, self.namespace, "main", "env")
        (line,) = [line for line in env.splitlines() if line.startswith("DRAGOON_GPU_")]
        return line.partition("=")[2]

    def waits(self, *names: str) -> None:
        """These pods find no place: kube-scheduler says so."""
        for name in names:
            until(f"pod {name} has no place", partial(self.bed.unschedulable, name, self.namespace))

    def end(self, *names: str) -> None:
        self.bed.kubectl("delete", "pod", "-n", self.namespace, *names, "--wait=false")
        for name in names:
            self.bed.gone("pod", name, self.namespace)


@pytest.fixture(scope="module")
def published(bed: Bed) -> Iterator[Card]:
    """One node publishes all forms, for as long as these tests run."""
    with all_forms(bed) as node:
        devices = [one for piece in bed.slices(node) for one in piece["spec"].get("devices") or ()]
        whole = [one for one in devices if one["attributes"]["type"]["string"] == "gpu"]
        first = min(whole, key=lambda one: str(one["name"]))
        yield Card(bed, node, first["attributes"][_ADDRESS]["string"])


@pytest.fixture
def card(published: Card, namespace: str) -> Card:
    published.namespace = namespace
    return published


@needs_forms
def test_shares_then_instances_then_smaller_ones_then_the_whole_gpu(card: Card) -> None:
    name = f"gpu-{card.address.replace(':', '-').replace('.', '-')}"
    card.share("one", "32Gi")
    card.share("two", "32Gi")
    assert card.devices("one", "two") == [f"{name}-shared"] * 2
    card.share("three", "32Gi")
    card.whole("all")
    card.part("part", "1g.10gb")
    card.waits("three", "all", "part")
    card.end("three", "all", "part", "one", "two")

    card.part("big", "4g.40gb")
    card.part("small", "3g.40gb")
    assert card.devices("big", "small") == [f"{name}-mig-4g40gb-0", f"{name}-mig-3g40gb-4"]
    uuids = {card.uuid("big"), card.uuid("small")}
    assert len(uuids) == 2
    assert all(uuid.startswith("MIG-") for uuid in uuids)
    card.whole("all")
    card.waits("all")
    card.end("all", "big", "small")

    sevenths = [f"p{number}" for number in range(7)]
    for seventh in sevenths:
        card.part(seventh, "1g.10gb")
    assert set(card.devices(*sevenths)) == {f"{name}-mig-1g10gb-{n}" for n in range(7)}
    card.part("eighth", "1g.10gb")
    card.waits("eighth")
    card.end("eighth", *sevenths)

    card.whole("all")
    assert card.devices("all") == [name]
    assert card.uuid("all").startswith("GPU-")


@needs_forms
def test_an_error_of_one_instance_shows_in_its_pod_and_not_in_that_of_its_neighbour(
    card: Card,
) -> None:
    card.part("ill", "4g.40gb")
    card.part("well", "3g.40gb")
    ill, well = card.devices("ill", "well")
    hardware = card.bed.plugins[card.node].hardware
    state = hardware.read()
    (slot,) = (n for n in range(len(state.cards)) if str(state.address(n)) == card.address)
    (instance,) = (one for one in state.cards[slot].instances if one.start == 0)

    def tainted() -> set[str]:
        return {
            device["name"]
            for piece in card.bed.slices(card.node)
            for device in piece["spec"].get("devices") or ()
            if TAINT_XID in {taint["key"] for taint in device.get("taints") or ()}
        }

    def says(pod: str, health: str) -> bool:
        found = card.bed.device_health(pod, card.namespace)
        return found is not None and found["health"] == health

    until("both are healthy", lambda: all(says(pod, "Healthy") for pod in ("ill", "well")))
    hardware.raise_xid(slot, 48, gpu_instance=instance.identity)
    until("the instance's device is tainted", lambda: ill in tainted())
    until("its pod says so", lambda: says("ill", "Unhealthy"))
    assert says("well", "Healthy")
    assert well not in tainted()
    shared = f"{ill.partition('-mig')[0]}-shared"  # may stand in another slice
    until("so are the shares of its card", lambda: shared in tainted())

    # Recovered is a card that needed recovery and needs none any more.
    for recovery in (1, 0):
        hardware.set_condition(slot, ConditionState(recovery=recovery))
        hardware.raise_xid(slot, 154)
        until(
            "the plugin has heard it",
            lambda: says("well", "Unhealthy" if recovery else "Healthy"),  # noqa: B023
        )
    until("the pod is healthy", lambda: says("ill", "Healthy"))
    until("no device is tainted", lambda: not tainted())


@pytest.mark.skipif(_HAS_FORMS, reason=f"{_VERSION} has all forms; see {version.VARIABLE}")
def test_where_counters_are_given_twice_only_whole_gpus_are_published(
    bed: Bed, namespace: str
) -> None:
    bed.kubectl("apply", "-f", str(_SAMPLES / "sim-shared.yaml"))
    node = min(bed.plugins)
    before = bed.slices(node)
    bed.kubectl("label", "node", node, f"{_LABEL}=whole_shared_mig")
    try:
        plugin = bed.plugins[node]
        until("the plugin says why", lambda: "kubernetes#139034" in plugin.log.read_text())
        found = bed.slices(node)
        assert [one["spec"] for one in found] == [one["spec"] for one in before]
        devices = [device for one in found for device in one["spec"]["devices"]]
        assert {device["attributes"]["type"]["string"] for device in devices} == {"gpu"}
        assert not any("consumesCounters" in device for device in devices)
        card = Card(bed, node, devices[0]["attributes"][_ADDRESS]["string"], namespace)
        card.whole("one")
        assert card.devices("one") == [devices[0]["name"]]
        card.share("part", "8Gi")
        card.waits("part")
    finally:
        bed.kubectl("label", "node", node, f"{_LABEL}-")
