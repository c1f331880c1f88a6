"""A running cluster, as tests use it: `Cluster.open()` and then kubectl, nodes, restarts."""

import os
import subprocess
from pathlib import Path

from realcluster import nodes, processes
from realcluster.credentials import Credentials
from realcluster.failure import ClusterError
from realcluster.layout import Layout, cluster_layout, default_name
from realcluster.state import Node, State, load


class Cluster:
    """One cluster, found by its name."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    @classmethod
    def open(cls, name: str | None = None) -> "Cluster":
        """The cluster of a name, else this checkout's own; it must have been started."""
        cluster = cls(cluster_layout(name or default_name()))
        _ = cluster.state
        return cluster

    @property
    def state_file(self) -> Path:
        return self._layout.state_file

    @property
    def state(self) -> State:
        """What the state file says now."""
        return load(self._layout.state_file)

    @property
    def nodes(self) -> list[Node]:
        return self.state.nodes

    def kubectl(self, *arguments: str, stdin: str | None = None, user: str = "admin") -> str:
        """Run kubectl; return what it printed, or fail with what it complained about."""
        done = subprocess.run(
            [self.state.programs["kubectl"], *arguments],
            input=stdin,
            env=self.environment(user),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ClusterError(f"kubectl {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout

    def environment(self, user: str = "admin") -> dict[str, str]:
        """The environment in which kubectl and other clients reach this cluster."""
        state = self.state
        return {
            **os.environ,
            "KUBECONFIG": state.kubeconfigs[user],
            # kubectl remembers APIs by address, for hours: those of the cluster that had it before.
            "KUBECACHEDIR": str(Path(state.folder, "kubectl")),
            "NO_PROXY": "*",
            **self.mark,
        }

    @property
    def mark(self) -> dict[str, str]:
        """A variable for the environment of processes that are to end with the cluster at the latest.

        What was killed cannot end what it started; the next `down` does, also before a new `up`.
        """
        return {processes.MARK: self.state.folder}

    def start(self, component: str) -> None:
        """Start a component of the state file, if it does not run."""
        processes.start(self.state_file, component)

    def stop(self, component: str, *, grace: float = 10.0) -> None:
        """Stop a component: SIGTERM, and SIGKILL after the grace period (0: at once)."""
        processes.stop(self.state_file, component, grace=grace)

    def restart(self, component: str) -> None:
        self.stop(component)
        self.start(component)

    def start_kubelet(self, node: str) -> None:
        """Start a node's kubelet; return when it answers and its node is Ready."""
        self.start(nodes.kubelet_process(node))
        nodes.wait_serving(self.state, self.state.node(node))

    def stop_kubelet(self, node: str, *, grace: float = 10.0) -> None:
        self.stop(nodes.kubelet_process(self.state.node(node).name), grace=grace)

    def restart_kubelet(self, node: str, *, grace: float = 10.0) -> None:
        self.stop_kubelet(node, grace=grace)
        self.start_kubelet(node)

    def import_image(self, archive: Path, *, node: str | None = None) -> None:
        """Import a docker archive into one node's containerd, or into all of them."""
        state = self.state
        for each in [state.node(node)] if node else state.nodes:
            nodes.import_archive(state, each, archive)

    def account_kubeconfig(
        self, account: str, path: Path, *, namespace: str = "default", node: str | None = None
    ) -> Path:
        """A kubeconfig for a service account; with `node` its token is bound to that node.

        A static token says nothing about a node, and rules such as `associated-node` need one.
        """
        bound = ["--bound-object-kind=Node", f"--bound-object-name={node}"] if node else []
        command = ["create", "token", account, f"--namespace={namespace}", "--duration=8h"]
        token = self.kubectl(*command, *bound).strip()
        state = self.state
        credentials = Credentials(self._layout.credentials)
        return credentials.kubeconfig(account, state.api_url, path, token=token)

    def running(self) -> dict[str, bool]:
        """Component -> whether it runs."""
        found = self.state.processes
        return {name: processes.is_alive(process) for name, process in found.items()}
