"""A share's limits in real containers: written before the start, loaded by the dynamic linker.

The library is a stand-in of ours, a few lines of C; containerd, runc and the kubelet are real.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.hooks import LIBRARY, PRELOAD, REGION
from realcluster.images import BUSYBOX, GLIBC
from testbed.bed import Bed
from testbed.objects import SLEEP, container, pod, template
from testbed.plugins import Plugin
from testbed.waiting import until
from tests.scenario.enforcement_bench import STAND_IN, compiled

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

_SAMPLES = Path(__file__).resolve().parents[2] / "deviceclasses/samples"
_GIB = 1 << 30
_LOADED = f"limits {4 * _GIB} 25"
"""What the stand-in says in every process that loads it, from the region it finds."""


@dataclass
class Node:
    """The node whose shares are of the tier hami."""

    bed: Bed
    plugin: Plugin
    library: Path
    namespace: str = ""

    def start(self, name: str, *containers: dict[str, Any], **more: Any) -> None:
        self.bed.apply(
            pod(
                name,
                self.namespace,
                *containers,
                nodeSelector={"kubernetes.io/hostname": self.plugin.node.name},
                **more,
            )
        )

    def share(self) -> None:
        """A template `share` for a part of a GPU: 4 GiB and a quarter of its compute."""
        exactly = {
            "deviceClassName": "sim-shared.dragoon.dev",
            "capacity": {"requests": {"memory": "4Gi", "cores": "25"}},
        }
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
        self.bed.apply(template("share", self.namespace, spec))

    def run(self, name: str, container: str, *command: str) -> str:
        return self.bed.run_in(name, self.namespace, container, *command)

    def said(self, name: str, *needles: str) -> None:
        """An event of the pod says all of it."""

        def look() -> bool:
            events = self.bed.items(
                "events", "-n", self.namespace, "--field-selector", f"involvedObject.name={name}"
            )
            return any(all(one in event.get("message", "") for one in needles) for event in events)

        until(f"an event of pod {name} says {needles}", look)


@pytest.fixture(scope="module")
def limiting(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One node's plugin runs with the stand-in library for as long as these tests do."""
    bed.kubectl("apply", "-f", str(_SAMPLES / "sim-shared.yaml"))
    name = max(bed.plugins)
    plain = bed.plugins[name]
    library = compiled(STAND_IN, tmp_path_factory.mktemp("library") / "libvgpu.so")
    checksum = hashlib.sha256(library.read_bytes()).hexdigest()
    plain.stop()
    plugin = plain.with_options(
        *("--forms", "whole,shared", "--hami-library", str(library), "--hami-sha256", checksum)
    )
    bed.plugins[name] = plugin
    try:
        plugin.start_and_wait()

        def enforced() -> bool:
            devices = [d for one in bed.slices(name) for d in one["spec"].get("devices") or ()]
            shared = [d["attributes"] for d in devices if d["name"].endswith("-shared")]
            found = [one.get("memoryEnforcement", {}).get("string") for one in shared]
            return bool(found) and set(found) == {"intercepted"}

        until("shares are published as enforced", enforced)
        yield Node(bed, plugin, library)
    finally:
        plugin.stop()
        bed.plugins[name] = plain
        plain.start_and_wait()


@pytest.fixture
def node(limiting: Node, namespace: str) -> Node:
    limiting.namespace = namespace
    limiting.share()
    return limiting


def test_every_process_of_a_container_loads_the_library_and_finds_the_claims_limits(
    node: Node,
) -> None:
    node.start(
        "works",
        container("main", "share", image=GLIBC),
        container("plain", image=GLIBC),
        templates={"share": "share"},
    )
    node.bed.running("works", node.namespace)

    env = node.run("works", "main", "env").splitlines()
    assert "CUDA_DEVICE_MEMORY_LIMIT_0=4096m" in env
    assert "CUDA_DEVICE_SM_LIMIT_0=25" in env
    told = node.run("works", "main", "sh", "-c", "env -i /bin/cat /proc/self/maps 2>&1")
    assert LIBRARY in told, "mapped into a process without any environment"
    assert _LOADED in told
    assert LIBRARY in node.run("works", "main", "cat", PRELOAD)
    first = node.run("works", "main", "cat", "/proc/1/maps")
    assert LIBRARY in first, "the container's first process has it too"

    (file,) = Path(node.plugin.state_folder, "regions").glob("*_main/usage")
    (usage,) = region.read(file.read_bytes())
    assert (usage.limit, usage.cores) == (4 * _GIB, 25)

    other = node.run(
        "works", "plain", "sh", "-c", "env; ls -d /dev/dragoon /usr/local/vgpu 2>&1; true"
    )
    assert "CUDA_" not in other
    assert "DRAGOON_" not in other
    assert other.count("No such file") == 2
    assert LIBRARY not in node.run("works", "plain", "cat", "/proc/self/maps")


def test_without_the_library_no_container_starts_and_with_it_they_do_again(node: Node) -> None:
    node.start(
        "waits",
        # It ends when it is told to, and is started again by the kubelet.
        container("main", "share", image=GLIBC, script=f"{SLEEP}"),
        templates={"share": "share"},
    )
    before = node.bed.running("waits", node.namespace)["status"]["containerStatuses"][0]
    aside = node.library.with_suffix(".aside")

    def now() -> dict[str, Any]:
        found = node.bed.get("pod", "waits", node.namespace)
        assert found
        status: dict[str, Any]
        (status,) = found["status"]["containerStatuses"]
        return status

    node.library.rename(aside)
    try:
        node.bed.end_container("waits", node.namespace)
        node.said("waits", node.library.name)
        # The kubelet writes statuses beside events.
        until("the container does not run", lambda: "running" not in now()["state"])
    finally:
        aside.rename(node.library)

    def again() -> bool:
        return "running" in now()["state"] and now()["containerID"] != before["containerID"]

    until("the container runs again", again)
    assert LIBRARY in node.run("waits", "main", "cat", "/proc/self/maps")


def test_an_image_without_glibc_does_not_start_with_a_share_and_says_why(node: Node) -> None:
    node.start("static", container("main", "share", image=BUSYBOX), templates={"share": "share"})
    node.said("static", "no glibc loader in this image")


def test_the_claim_of_another_pod_starts_nothing(node: Node) -> None:
    node.start("owner", container("main", "share", image=GLIBC), templates={"share": "share"})
    owner = node.bed.running("owner", node.namespace)
    (status,) = owner["status"]["resourceClaimStatuses"]
    node.start(
        "thief",
        container("main", "share", image=GLIBC),
        claims={"share": status["resourceClaimName"]},
    )
    node.said("thief", "was made for another pod", owner["metadata"]["uid"])
    limits = node.run("owner", "main", "sh", "-c", f"cat {REGION} >/dev/null; echo $?")
    assert limits.strip().endswith("0")
