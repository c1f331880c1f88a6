"""The node while things die under it: pods come and go, and each gets its own devices."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoon.gpu.sim.hardware import Hardware
from testbed.bed import Bed, is_running
from testbed.controller import Controller
from testbed.objects import CLASS, claim_spec, container, pod, template
from testbed.plugins import Plugin
from testbed.waiting import until
from tests.e2e.gangs import exactly, exclusive

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

_SAMPLES = Path(__file__).resolve().parents[2] / "deviceclasses/samples"
_AT_ONCE = 8
_PODS = 20


class Traffic:
    """Pods with one GPU each: a few at once, and the next as soon as one has run."""

    def __init__(self, bed: Bed, namespace: str, node: str) -> None:
        self._bed = bed
        self._namespace = namespace
        self._node = node
        self._next = 0
        bed.apply(template("one", namespace, claim_spec(1)))

    def flow(self, disturb: Callable[[int], object]) -> None:
        """Lets all pods come and go; `disturb` is told how many have run before each look."""
        waiting: set[str] = set()
        done: set[str] = set()

        def all_done() -> bool:
            while len(waiting) < _AT_ONCE and self._next < _PODS:
                waiting.add(self._start())
            found = {one["metadata"]["name"]: one for one in self._pods()}
            phases = {name: one["status"].get("phase") for name, one in found.items()}
            assert "Failed" not in phases.values(), phases
            assert exclusive(self._bed.items("resourceclaims", "-n", self._namespace))
            for name in [name for name in waiting if name in found and is_running(found[name])]:
                waiting.discard(name)
                done.add(name)
                self._bed.kubectl(
                    "delete",
                    "pod",
                    "-n",
                    self._namespace,
                    name,
                    "--wait=false",
                    "--ignore-not-found",
                )
            disturb(len(done))
            return len(done) == _PODS

        until(f"{_PODS} pods have run", all_done, within=600)

    def _start(self) -> str:
        name = f"p{self._next}"
        self._next += 1
        self._bed.apply(
            pod(
                name,
                self._namespace,
                container("main", "gpu"),
                templates={"gpu": "one"},
                nodeSelector={"kubernetes.io/hostname": self._node},
            )
        )
        return name

    def _pods(self) -> list[dict[str, Any]]:
        found = self._bed.items("pods", "-n", self._namespace)
        return [one for one in found if not one["metadata"].get("deletionTimestamp")]


class Once:
    """Calls each of some things once, the first after `first` pods, then after every `step`."""

    def __init__(self, *deeds: Callable[[], object], first: int, step: int) -> None:
        self._left = [(first + step * number, deed) for number, deed in enumerate(deeds)]

    def __call__(self, done: int) -> None:
        if self._left and done >= self._left[0][0]:
            self._left.pop(0)[1]()

    @property
    def over(self) -> bool:
        return not self._left


def test_plugin_kubelet_and_containerd_are_killed_in_turn_while_pods_come_and_go(
    bed: Bed, controller: Controller, namespace: str
) -> None:
    """The controller runs: it wakes the kubelet for pods that came while the plugin was away."""
    assert controller.running
    node = min(bed.plugins)
    plugin = bed.plugins[node]

    def kill_plugin() -> None:
        plugin.kill()
        plugin.start_and_wait()

    def kill_kubelet() -> None:
        bed.cluster.stop_kubelet(node, grace=0)
        bed.cluster.start_kubelet(node)

    def kill_containerd() -> None:
        bed.cluster.stop(f"containerd-{node}", grace=0)
        bed.cluster.start(f"containerd-{node}")

    deeds = Once(kill_plugin, kill_kubelet, kill_containerd, first=3, step=5)
    Traffic(bed, namespace, node).flow(deeds)
    assert deeds.over


def test_a_newer_plugin_takes_over_under_load_and_no_pod_fails(bed: Bed, namespace: str) -> None:
    """As a rolling update with surge: both run for a while, and the old one goes when the new is ready.

    The old one is of the checkout that DRAGOON_E2E_OLDER names, else of this one too.
    """
    node = max(bed.plugins)
    new = bed.plugins[node].with_options()
    old = bed.plugins[node]
    if older := os.environ.get("DRAGOON_E2E_OLDER"):
        old.stop()
        bed.plugins[node] = old = old.of_source(Path(older) / "driver")
        old.start_and_wait()

    def take_over() -> None:
        new.start_and_wait()
        old.stop()
        bed.plugins[node] = new

    deeds = Once(take_over, first=5, step=1)
    Traffic(bed, namespace, node).flow(deeds)
    assert deeds.over


def test_a_drained_node_is_empty_and_serves_again_when_it_is_uncordoned(
    bed: Bed, namespace: str
) -> None:
    first, second = sorted(bed.plugins)
    bed.apply(template("one", namespace, claim_spec(1)))
    made = pod("x", namespace, container("main", "gpu"), templates={"gpu": "one"})
    labels = {"app": "served"}
    spec = {
        "replicas": 4,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": made["spec"]},
    }
    bed.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "served", "namespace": namespace},
            "spec": spec,
        }
    )

    def served(on: set[str]) -> bool:
        found = [
            one
            for one in bed.items("pods", "-n", namespace)
            if not one["metadata"].get("deletionTimestamp")
        ]
        where = {one["spec"].get("nodeName") for one in found}
        return len(found) == 4 and all(map(is_running, found)) and where <= on

    until("four pods run", lambda: served({first, second}))
    bed.kubectl("drain", first, "--force", "--ignore-daemonsets", "--timeout=240s")
    until("all pods run on the other node", lambda: served({second}))
    until("nothing is prepared on the drained node", bed.plugins[first].is_clean)
    bed.kubectl("uncordon", first)
    bed.apply(
        pod(
            "again",
            namespace,
            container("main", "gpu"),
            templates={"gpu": "one"},
            nodeSelector={"kubernetes.io/hostname": first},
        )
    )
    bed.running("again", namespace)


@pytest.fixture
def machine(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator["Machine"]:
    """A node of which the boot id can change, with all forms."""
    for sample in ("sim-mig.yaml", "sim-shared.yaml"):
        bed.kubectl("apply", "-f", str(_SAMPLES / sample))
    name = max(bed.plugins)
    plain = bed.plugins[name]
    folder = tmp_path_factory.mktemp("machine")
    plain.stop()
    made = Machine(bed, name, plain, folder)
    bed.plugins[name] = made.plugin
    try:
        made.plugin.start_and_wait()

        def all_there() -> bool:
            found = [d["name"] for s in bed.slices(name) for d in s["spec"].get("devices") or ()]
            return any("-mig-" in one for one in found) and any("-shared" in one for one in found)

        until("all forms are published", all_there)
        yield made
    finally:
        made.plugin.stop()
        bed.plugins[name] = plain
        plain.start_and_wait()


class Machine:
    """One node's machine, which can be rebooted."""

    def __init__(self, bed: Bed, node: str, plain: Plugin, folder: Path) -> None:
        self._bed = bed
        self._node = node
        self._boot = folder / "proc/sys/kernel/random/boot_id"
        self._boot.parent.mkdir(parents=True)
        self._boot.write_text("11111111-1111-4111-8111-111111111111\n")
        self._hardware = folder / "gpus.json"
        self.plugin = plain.with_options(
            *("--forms", "whole,shared,mig", "--allow-unenforced-shares", "true"),
            *("--proc-root", str(folder / "proc"), "--simulate-state", str(self._hardware)),
        )

    @property
    def instances(self) -> set[str]:
        """UUIDs of the MIG instances that the driver has."""
        state = Hardware(self._hardware).read()
        return {
            state.mig_uuid(one.serial)
            for card in state.cards
            for instance in card.instances
            for one in instance.compute
        }

    def reboot(self) -> None:
        """All processes end, the CDI folder is empty, the driver has forgotten, another boot id."""
        bed, node = self._bed, self._bed.cluster.state.node(self._node)
        self.plugin.kill()
        bed.cluster.stop_kubelet(self._node, grace=0)
        for task in bed.ctr(node, "tasks", "list", "--quiet").split():
            bed.ctr(node, "tasks", "kill", "--signal", "SIGKILL", task)
        for file in self.plugin.cdi_files():
            file.unlink()
        Hardware(self._hardware).reboot()
        self._boot.write_text("22222222-2222-4222-8222-222222222222\n")
        self.plugin.start()
        bed.cluster.start_kubelet(self._node)


def test_after_a_reboot_pods_come_back_on_the_same_placements(
    bed: Bed, machine: Machine, namespace: str
) -> None:
    node = machine.plugin.node.name
    profile = {"cel": {"expression": 'device.attributes["gpu.dragoon.dev"].profile == "3g.40gb"'}}
    wishes = {
        "whole": exactly(CLASS),
        "share": exactly("sim-shared.dragoon.dev", capacity={"requests": {"memory": "8Gi"}}),
        "part": exactly("sim-mig.dragoon.dev", selectors=[profile]),
    }
    for name, wish in wishes.items():
        request = {"name": "gpu", "exactly": dict(wish)}
        bed.apply(
            template(name, namespace, {"devices": {"requests": [request]}}),
            pod(
                name,
                namespace,
                container("main", "gpu"),
                templates={"gpu": name},
                nodeSelector={"kubernetes.io/hostname": node},
            ),
        )
    before = {}
    for name in wishes:
        status = bed.running(name, namespace)["status"]["containerStatuses"][0]
        before[name] = (status["containerID"], bed.devices_seen(name, namespace, "main"))
    assert len(machine.instances) == 1

    machine.reboot()

    def again(name: str) -> bool:
        found = bed.get("pod", name, namespace)
        if found is None or not is_running(found):
            return False
        return bool(found["status"]["containerStatuses"][0]["containerID"] != before[name][0])

    for name in wishes:
        until(f"pod {name} runs again", lambda name=name: again(name))  # type: ignore[misc]
        assert bed.devices_seen(name, namespace, "main") == before[name][1]
    env = bed.run_in("part", namespace, "main", "env")
    assert any(uuid in env for uuid in machine.instances)
    assert len(machine.instances) == 1
