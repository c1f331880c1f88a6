import threading
from pathlib import Path

import pytest

from realcluster import state
from realcluster.failure import ClusterError
from realcluster.state import Node, Process, Settings, State


def example() -> State:
    return State(
        name="e2e",
        folder="/tmp/dragoon-e2e",
        kubernetes="1.37.2",
        settings=Settings(scale=True),
        programs={"kubectl": "/cache/kubectl"},
        images={"busybox": "dragoon.test/busybox:1"},
        nodes=[
            Node(
                name="node-0",
                index=0,
                address="192.0.2.2",
                kubelet_port=20010,
                pod_subnet="10.100.1.0/24",
                kubelet_root="/tmp/dragoon-e2e/k0",
                cdi_folder="/tmp/dragoon-e2e/node0/cdi",
                containerd_socket="/tmp/dragoon-e2e/node0/containerd.sock",
                kubeconfig="/tmp/dragoon-e2e/node0/kubelet.kubeconfig",
                folder="/tmp/dragoon-e2e/node0",
                kubelet_log="/tmp/dragoon-e2e/logs/kubelet-node-0.log",
                containerd_log="/tmp/dragoon-e2e/logs/containerd-node-0.log",
            )
        ],
        processes={"etcd": Process(["/cache/etcd"], "/tmp/etcd.log", 7, 1234)},
    )


def test_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    state.save(path, example())
    assert state.load(path) == example()
    assert path.stat().st_mode & 0o077 == 0


def test_node_by_name() -> None:
    assert example().node("node-0").index == 0
    with pytest.raises(ClusterError, match="no node 'node-7'"):
        example().node("node-7")


def test_no_state_file_means_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no cluster here"):
        state.load(tmp_path / "state.json")


def test_state_of_another_format_is_not_guessed_at(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"format": 99}')
    with pytest.raises(ClusterError, match="another version of this tool"):
        state.load(path)


def test_failed_edit_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    state.save(path, example())

    def change_and_fail() -> None:
        with state.edit(path) as edited:
            edited.name = "changed"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change_and_fail()
    assert state.load(path) == example()


def test_edits_side_by_side_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    state.save(path, example())

    def add(number: int) -> None:
        with state.edit(path) as edited:
            edited.processes[f"extra-{number}"] = Process(["true"], "/dev/null")

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(state.load(path).processes) == 9
