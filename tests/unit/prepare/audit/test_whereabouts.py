"""Which pod a process is in, by what the kernel says of its cgroup."""

import pytest

from dragoon.prepare.audit.whereabouts import PodPlace, pod_place

UID = "6b4f2b1c-0f0e-4c7e-9d3a-1f2e3d4c5b6a"
ESCAPED = UID.replace("-", "_")
STATIC = UID.replace("-", "")
CONTAINER = "0123456789abcdef" * 4
SCOPE = f"cri-containerd-{CONTAINER}.scope"


@pytest.mark.parametrize(
    "path",
    [
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{ESCAPED}.slice/{SCOPE}",
        f"/kubepods.slice/kubepods-pod{ESCAPED}.slice/{SCOPE}",
        f"/kubepods/besteffort/pod{UID}/{CONTAINER}",
        f"/kubepods/pod{UID}/{CONTAINER}",
        f"/../../kubepods-besteffort-pod{ESCAPED}.slice/{SCOPE}",
        f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{ESCAPED}.slice/{SCOPE}",
        f"/kubepods.slice/kubepods-pod{ESCAPED}.slice/crio-{CONTAINER}.scope/inner",
        f"/kubepods/burstable/pod{UID}/{CONTAINER}/docker/{'f' * 64}",
    ],
)
def test_the_pod_and_the_container_are_told_however_the_kubelet_names_cgroups(path: str) -> None:
    assert pod_place(f"0::{path}\n") == PodPlace(UID, CONTAINER)


def test_a_static_pod_has_a_hash_for_a_uid() -> None:
    assert pod_place(f"0::/kubepods/pod{STATIC}/{CONTAINER}") == PodPlace(STATIC, CONTAINER)


def test_a_process_of_the_pod_s_own_cgroup_is_in_no_container() -> None:
    assert pod_place(f"0::/kubepods.slice/kubepods-pod{ESCAPED}.slice") == PodPlace(UID)


def test_of_the_many_lines_of_cgroup_v1_any_will_do() -> None:
    text = f"13:misc:/\n12:cpu,cpuacct:/kubepods/pod{UID}/{CONTAINER}\n1:name=systemd:/a:b\n"
    assert pod_place(text) == PodPlace(UID, CONTAINER)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0::/\n",
        "nonsense",
        "0::/system.slice/nvidia-dcgm.service\n",
        "0::/user.slice/user-1000.slice/session-2.scope\n",
        "0::/system.slice/kubepods.slice\n",
        "0::/kubepods.slice/kubepods-burstable.slice\n",
        "0::/machine.slice/libpod-" + CONTAINER + ".scope\n",
        "0::/podman.slice\n",
        f"0::/system.slice/tripod{UID}\n",
    ],
)
def test_a_process_of_the_host_is_in_no_pod(text: str) -> None:
    assert pod_place(text) is None
