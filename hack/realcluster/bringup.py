"""`up`: from nothing, or from whatever is there, to a cluster whose nodes are Ready."""

import contextlib
import dataclasses
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from realcluster import builds, network, nodes, packages, processes, runtime, slots, versions
from realcluster.apiserver import ApiServer, is_healthy
from realcluster.builds import Programs
from realcluster.controlplane import API_SERVER, ETCD, KUBE_SCHEDULER, MANAGER, ControlPlane
from realcluster.credentials import ADMIN, PLUGIN, Credentials
from realcluster.failure import ClusterError
from realcluster.images import BUSYBOX, GLIBC, PAUSE
from realcluster.layout import MAX_NODES, Layout, cluster_layout, folder_lock
from realcluster.slots import Slot
from realcluster.state import Process, Settings, State, edit, load, save
from realcluster.waiting import wait_for

# Under load the API server's own roles can be late, and then these two give up and exit.
_RESTARTS = 5


def up(
    name: str,
    *,
    node_count: int = 1,
    kubernetes: str = versions.DEFAULT_KUBERNETES,
    settings: Settings | None = None,
    install: bool = False,
) -> State:
    """Start a cluster, or what is missing of it; return its state."""
    settings = settings or Settings()
    if not 0 <= node_count <= MAX_NODES:
        raise ClusterError(f"0 to {MAX_NODES} nodes are possible, not {node_count}")
    version = versions.parse(kubernetes)
    layout = cluster_layout(name)
    packages.require_root()
    packages.require(install=install)
    programs = builds.build_all(version)
    with folder_lock(layout.folder):
        if layout.state_file.exists():
            _check_same(load(layout.state_file), str(version), node_count, settings)
        else:
            state = State(
                name=name,
                folder=str(layout.folder),
                kubernetes=str(version),
                settings=settings,
                programs={program: programs.path(program) for program in ("kubectl", "ctr")},
                images={"busybox": BUSYBOX, "glibc": GLIBC, "pause": PAUSE},
            )
            _plan(layout, state, node_count)
        _configure(layout, programs)
        _start(layout)
        return load(layout.state_file)


def _check_same(state: State, version: str, node_count: int, settings: Settings) -> None:
    pairs = {
        "kubernetes": (state.kubernetes, version),
        "nodes": (len(state.nodes), node_count),
        **{
            name: (value, getattr(settings, name))
            for name, value in dataclasses.asdict(state.settings).items()
        },
    }
    differs = [
        f"{name} {have!r}, not {ask!r}" for name, (have, ask) in pairs.items() if have != ask
    ]
    if differs:
        raise ClusterError(
            f"cluster {state.name} is there already and has {'; '.join(differs)}: "
            "run `hack/cluster down` first"
        )


def _plan(layout: Layout, state: State, node_count: int) -> None:
    """Decide the rest, write it down, and reserve what other clusters could take."""
    layout.logs.mkdir(exist_ok=True)
    credentials = layout.credentials
    with _slot_lock():
        slot = slots.choose(node_count, network.networks())
        own = network.machine_address()
        state.slot = slot.number
        state.address = own or slot.spare_address
        state.api_url = f"https://127.0.0.1:{slot.api_port}"
        state.ca_file = str(Credentials(credentials).ca)
        state.kubeconfigs = {
            user: str(credentials / f"{user}.kubeconfig") for user in (ADMIN, PLUGIN)
        }
        state.snapshotter = runtime.choose_snapshotter(layout.folder)
        state.nodes = [
            nodes.plan(layout, slot, index, state.address) for index in range(node_count)
        ]
        # First the state, so that `down` finds the reserved addresses whatever happens here.
        save(layout.state_file, state)
        network.reserve(slot, spare=own is None)


def _configure(layout: Layout, programs: Programs) -> None:
    """Write every file, and every program's command into the state."""
    with edit(layout.state_file) as state:
        slot = Slot(state.slot)
        network.reserve(slot, spare=state.address == slot.spare_address)
        network.open_service(slot, state.address)
        credentials = Credentials(layout.credentials)
        credentials.create(
            addresses=["127.0.0.1", state.address, slot.service_address],
            nodes=[node.name for node in state.nodes],
        )
        for user, path in state.kubeconfigs.items():
            credentials.kubeconfig(user, state.api_url, Path(path))
        plane = ControlPlane(layout, slot, programs, state.settings)
        wanted = {
            name: Process(command, str(layout.logs / f"{name}.log"))
            for name, command in plane.commands(state.address, state.api_url).items()
        }
        wanted |= nodes.configure(layout, state, programs)
        for name, process in wanted.items():
            # What runs keeps its process ID, and the command it was started with.
            state.processes.setdefault(name, process)


def _start(layout: Layout) -> None:
    state = load(layout.state_file)
    containerds = [nodes.containerd_process(node.name) for node in state.nodes]
    for component in (ETCD, API_SERVER, *containerds):
        processes.start(layout.state_file, component)
    nodes.import_images(layout, load(layout.state_file))
    _wait_for_api(load(layout.state_file))
    _start_controllers(layout, Slot(state.slot))
    for node in state.nodes:
        processes.start(layout.state_file, nodes.kubelet_process(node.name))
    state = load(layout.state_file)
    for node in state.nodes:
        nodes.wait_ready(state, node)
    server = ApiServer(state)
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    # Without it no pod can be created; the controller manager makes it.
    wait_for("the default ServiceAccount", lambda: server.text(account) is not None)


def _wait_for_api(state: State) -> None:
    pair = [state.processes[ETCD], state.processes[API_SERVER]]
    server = ApiServer(state)
    wait_for(
        "the API server",
        server.is_ready,
        give_up=lambda: next(filter(None, map(processes.death_note, pair)), None),
    )


def _start_controllers(layout: Layout, slot: Slot) -> None:
    ports = {MANAGER: slot.controller_manager_port, KUBE_SCHEDULER: slot.scheduler_port}
    for component in ports:
        processes.start(layout.state_file, component)
    for component, port in ports.items():
        _wait_healthy(layout, component, port)


def _wait_healthy(layout: Layout, component: str, port: int) -> None:
    restarts = 0

    def healthy() -> bool:
        nonlocal restarts
        note = processes.death_note(load(layout.state_file).processes[component])
        if note is None:
            return is_healthy(port)
        restarts += 1
        if restarts > _RESTARTS:
            raise ClusterError(note)
        processes.start(layout.state_file, component)
        return False

    wait_for(component, healthy)


@contextlib.contextmanager
def _slot_lock() -> Iterator[None]:
    """One choice at a time on this machine; the lock is the temporary folder everybody has."""
    descriptor = os.open(tempfile.gettempdir(), os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
