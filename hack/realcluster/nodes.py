"""Bring up the nodes of a cluster: containerd with its images, then kubelet."""

from pathlib import Path

from realcluster import images, kubelets, mountspace, processes, runtime
from realcluster.apiserver import ApiServer, is_healthy
from realcluster.builds import Programs
from realcluster.failure import ClusterError
from realcluster.layout import Layout
from realcluster.slots import Slot
from realcluster.state import Node, Process, State
from realcluster.waiting import wait_for


def plan(layout: Layout, slot: Slot, index: int, address: str) -> Node:
    """Decide everything about a node."""
    name = f"node-{index}"
    return Node(
        name=name,
        index=index,
        address=address,
        kubelet_port=slot.kubelet_port(index),
        pod_subnet=slot.pods(index),
        kubelet_root=str(layout.kubelet_root(index)),
        cdi_folder=str(runtime.cdi_folder(layout, index)),
        containerd_socket=str(runtime.socket_path(layout, index)),
        kubeconfig=str(kubelets.kubeconfig(layout, index)),
        folder=str(layout.node(index)),
        kubelet_log=str(layout.logs / f"kubelet-{name}.log"),
        containerd_log=str(layout.logs / f"containerd-{name}.log"),
    )


def kubelet_process(node: str) -> str:
    """The component name of a node's kubelet."""
    return f"kubelet-{node}"


def containerd_process(node: str) -> str:
    """The component name of a node's containerd."""
    return f"containerd-{node}"


def configure(layout: Layout, state: State, programs: Programs) -> dict[str, Process]:
    """Write every node's files; return its programs by component name."""
    found = {}
    for node in state.nodes:
        runtime.configure(
            layout,
            node.index,
            cluster=state.name,
            subnet=node.pod_subnet,
            snapshotter=state.snapshotter,
        )
        kubelets.configure(
            layout,
            Slot(state.slot),
            node.index,
            name=node.name,
            address=node.address,
            api_url=state.api_url,
            settings=state.settings,
        )
        containerd = runtime.command(layout, node.index, programs)
        usual = state.settings.usual_paths
        root = mountspace.KUBELET_ROOT if usual else layout.kubelet_root(node.index)
        kubelet = kubelets.command(
            layout, node.index, programs, name=node.name, address=node.address, root=root
        )
        if usual:
            mountspace.create(layout, node.index, runtime.cdi_folder(layout, node.index))
            containerd = mountspace.inside(layout, node.index, containerd)
            kubelet = mountspace.inside(layout, node.index, kubelet)
        found[containerd_process(node.name)] = Process(containerd, node.containerd_log)
        found[kubelet_process(node.name)] = Process(kubelet, node.kubelet_log)
    return found


def import_images(layout: Layout, state: State) -> None:
    """Give every node's containerd the images of this tool."""
    archive = layout.folder / "images.tar"
    if not archive.exists():
        images.write_archive(archive)
    for node in state.nodes:
        process = state.processes[containerd_process(node.name)]
        wait_for(
            f"containerd of {node.name}",
            lambda node=node: _answers(state, node),  # type: ignore[misc]
            give_up=lambda process=process: processes.death_note(process),  # type: ignore[misc]
        )
        import_archive(state, node, archive)


def import_archive(state: State, node: Node, archive: Path) -> None:
    """Import a docker archive into a node's containerd."""
    arguments = ["images", "import", "--local", "--snapshotter", state.snapshotter, str(archive)]
    runtime.ctr(state.programs["ctr"], node.containerd_socket, *arguments)


def wait_ready(state: State, node: Node) -> None:
    """Return when the API server has a node as Ready."""
    server = ApiServer(state)
    process = state.processes[kubelet_process(node.name)]
    wait_for(
        f"{node.name} to be Ready",
        lambda: _is_ready(server, node.name),
        give_up=lambda: processes.death_note(process),
    )


def wait_serving(state: State, node: Node) -> None:
    """Return when a kubelet answers; its node can look Ready long after it died."""
    process = state.processes[kubelet_process(node.name)]
    port = Slot(state.slot).kubelet_health_port(node.index)
    wait_for(
        f"kubelet of {node.name}",
        lambda: is_healthy(port, tls=False),
        give_up=lambda: processes.death_note(process),
    )
    wait_ready(state, node)


def _is_ready(server: ApiServer, name: str) -> bool:
    node = server.json(f"/api/v1/nodes/{name}")
    if node is None:
        return False
    conditions = node["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _answers(state: State, node: Node) -> bool:
    try:
        runtime.ctr(state.programs["ctr"], node.containerd_socket, "version")
    except ClusterError:
        return False
    return True
