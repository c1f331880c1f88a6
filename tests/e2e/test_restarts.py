"""Restarts and losses under a running pod: the container is not disturbed."""

import time
from typing import Any

import pytest

from testbed.bed import Bed
from testbed.objects import claim_spec, container, pod, template
from testbed.waiting import settles, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def _one_gpu_pod(bed: Bed, namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    bed.apply(
        template("one", namespace, claim_spec(1)),
        pod(name, namespace, container("c", "gpu"), templates={"gpu": "one"}, **spec),
    )
    return bed.running(name, namespace)


def _container_id(pod_object: dict[str, Any]) -> tuple[str, int]:
    status = pod_object["status"]["containerStatuses"][0]
    return status["containerID"], status["restartCount"]


def _gpus(bed: Bed, node: str) -> dict[str, Any]:
    """What a node publishes of its whole GPUs, by name."""
    found = bed.whole_gpus(node)
    return {name: (one["attributes"], one["capacity"]) for name, one in found.items()}


def test_a_killed_plugin_disturbs_no_container_and_the_next_pod_is_fine(
    bed: Bed, namespace: str
) -> None:
    first = _one_gpu_pod(bed, namespace, "first")
    node = first["spec"]["nodeName"]
    plugin = bed.plugins[node]
    journal, files = plugin.journal(), [path.read_bytes() for path in plugin.cdi_files()]

    plugin.kill()
    plugin.start_and_wait()
    second = _one_gpu_pod(bed, namespace, "second", nodeSelector={"kubernetes.io/hostname": node})

    assert second["spec"]["nodeName"] == node
    after = bed.get("pod", "first", namespace)
    assert after is not None
    assert _container_id(after) == _container_id(first)
    assert set(journal) < set(plugin.journal())
    assert all(content in [p.read_bytes() for p in plugin.cdi_files()] for content in files)
    first_sees, _ = bed.devices_seen("first", namespace, "c")
    second_sees, _ = bed.devices_seen("second", namespace, "c")
    assert len(first_sees) == len(second_sees) == 1
    assert not first_sees & second_sees


def test_a_restarted_kubelet_finds_the_slices_back(bed: Bed, namespace: str) -> None:
    first = _one_gpu_pod(bed, namespace, "first")
    node = first["spec"]["nodeName"]
    before = _gpus(bed, node)
    assert len(before) == 8
    old = {piece["metadata"]["uid"] for piece in bed.slices(node)}

    bed.cluster.stop_kubelet(node)
    bed.cluster.start(f"kubelet-{node}")
    until(
        "the kubelet has wiped the old slices",
        lambda: not old & {piece["metadata"]["uid"] for piece in bed.slices(node)},
    )
    wiped = time.monotonic()

    # They come one after the other. What tests before had divided GPUs into may be gone for good.
    settles(lambda: _gpus(bed, node), before)
    bed.figures.append(
        f"kubelet restart: slices back {time.monotonic() - wiped:.2f} s after the wipe was seen"
    )

    bed.cluster.start_kubelet(node)
    again = bed.running("first", namespace)
    assert _container_id(again) == _container_id(first)
    _one_gpu_pod(bed, namespace, "second", nodeSelector={"kubernetes.io/hostname": node})


def test_a_deleted_cdi_file_is_back_before_the_container_restarts(bed: Bed, namespace: str) -> None:
    first = _one_gpu_pod(bed, namespace, "first")
    plugin = bed.plugins[first["spec"]["nodeName"]]
    (spec,) = plugin.cdi_files()
    content = spec.read_bytes()
    seen = bed.devices_seen("first", namespace, "c")

    spec.unlink()
    until("the CDI file is back", spec.exists)
    assert spec.read_bytes() == content
    bed.end_container("first", namespace)

    def restarted() -> bool:
        now = bed.get("pod", "first", namespace)
        assert now is not None
        status = now["status"]["containerStatuses"][0]
        return status["restartCount"] == 1 and "running" in status["state"]

    until("the container has restarted", restarted)
    assert bed.devices_seen("first", namespace, "c") == seen


def test_c35_after_a_forced_delete_the_next_pod_waits_and_never_overlaps(
    bed: Bed, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The first container ignores SIGTERM and writes its last sign of life to the host."""
    node = next(iter(bed.plugins))
    folder = tmp_path_factory.mktemp("signs")
    where: dict[str, Any] = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "volumes": [{"name": "signs", "hostPath": {"path": str(folder)}}],
    }

    def all_eight(name: str, script: str) -> dict[str, Any]:
        c = container("c", "gpu", script=script)
        c["volumeMounts"] = [{"name": "signs", "mountPath": "/signs"}]
        return pod(name, namespace, c, templates={"gpu": "eight"}, **where)

    clock = "read up _ </proc/uptime; echo $up"
    stubborn = f"trap '' TERM; while :; do {clock} >>/signs/first; usleep 20000; done"
    bed.apply(template("eight", namespace, claim_spec(8)), all_eight("first", stubborn))

    def signs(name: str) -> list[float]:
        """Whole lines only: a writer may have been killed, or may be writing."""
        path = folder / name
        text = path.read_text() if path.exists() else ""
        return [float(line) for line in text.split("\n")[:-1]]

    # Not before the kubelet knows that it runs: a kubelet that is stopped in the middle of a start takes
    # the container for dead while it lives. And it runs before its shell has come to anything.
    bed.running("first", namespace)
    until("the first container has given a sign", lambda: signs("first"))
    bed.kubectl("delete", "pod", "-n", namespace, "first", "--grace-period=0", "--force")
    bed.apply(all_eight("second", f"{clock} >/signs/second; trap 'exit 0' TERM; sleep 3600 & wait"))
    bed.running("second", namespace)

    started, *_ = until("the second container has given its sign", lambda: signs("second"))
    last_sign = signs("first")[-1]
    bed.figures.append(
        f"forced delete: second started {started - last_sign:.2f} s after the first's last sign"
    )
    assert last_sign < started
