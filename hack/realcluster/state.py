"""The state file of a cluster: what runs where, and what a test needs to reach it."""

import contextlib
import dataclasses
import fcntl
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from realcluster.failure import ClusterError

FORMAT = 1


@dataclass
class Process:
    """A program of the cluster: how to start it, and which process it is now."""

    command: list[str]
    log: str
    pid: int | None = None
    # In clock ticks since boot: a process ID alone may belong to somebody else by now.
    start_time: int | None = None


@dataclass
class Node:
    """One kubelet with its containerd."""

    name: str
    index: int
    address: str
    kubelet_port: int
    pod_subnet: str
    kubelet_root: str
    cdi_folder: str
    containerd_socket: str
    kubeconfig: str
    folder: str
    kubelet_log: str
    containerd_log: str


@dataclass(frozen=True)
class Settings:
    """What `up` was asked for beyond size and version."""

    scale: bool = False
    default_rates: bool = False
    """Keep the clients' default rates in a scale run."""
    feature_gates: str = ""
    runtime_config: str = ""
    usual_paths: bool = False
    """Every node finds its own folders at /var/lib/kubelet and /var/run/cdi, as DaemonSets need
    it."""


@dataclass
class State:
    """All that is known of a cluster."""

    name: str
    folder: str
    kubernetes: str
    settings: Settings
    programs: dict[str, str]
    images: dict[str, str]
    # What follows is decided when the cluster gets its share of ports and addresses.
    slot: int = 0
    address: str = ""
    api_url: str = ""
    ca_file: str = ""
    # User -> kubeconfig: `admin`, and `dragoon-plugin`, which has no rights until a test grants.
    kubeconfigs: dict[str, str] = field(default_factory=dict)
    snapshotter: str = ""
    nodes: list[Node] = field(default_factory=list)
    processes: dict[str, Process] = field(default_factory=dict)
    format: int = FORMAT

    def node(self, name: str) -> Node:
        """A node by its name."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise ClusterError(f"no node {name!r}; there are {[node.name for node in self.nodes]}")


def load(path: Path) -> State:
    """Read a state file."""
    try:
        raw = json.loads(path.read_text())
    except FileNotFoundError:
        raise ClusterError(f"no cluster here: {path} does not exist") from None
    if raw.get("format") != FORMAT:
        raise ClusterError(f"{path} is of another version of this tool; run `hack/cluster down`")
    raw["settings"] = Settings(**raw["settings"])
    raw["nodes"] = [Node(**node) for node in raw["nodes"]]
    raw["processes"] = {name: Process(**process) for name, process in raw["processes"].items()}
    return State(**raw)


def save(path: Path, state: State) -> None:
    """Write a state file in one step: a reader sees the old or the new one."""
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(dataclasses.asdict(state), indent=2) + "\n")
    scratch.chmod(0o600)
    scratch.replace(path)


@contextlib.contextmanager
def edit(path: Path) -> Iterator[State]:
    """Change a state file while no other process does: tests restart kubelets side by side."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = load(path)
        yield state
        save(path, state)
