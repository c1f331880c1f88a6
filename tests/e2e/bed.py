"""The test bed: the real cluster with one Dragoon plugin process per node."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from realcluster.cluster import Cluster
from realcluster.failure import ClusterError
from realcluster.state import Node

Object = dict[str, Any]
T = TypeVar("T")

SYSTEM = "dragoon-system"
ACCOUNT = "dragoon-plugin"
DRIVER = "gpu.dragoon.dev"


def until(what: str, look: Callable[[], T | None], *, within: float = 60.0) -> T:
    """What `look` answers, as soon as it is something; fails with `what` after `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} s: {what} (last: {found!r})")
        time.sleep(0.05)


class Plugin:
    """The plugin process of one node; it can be killed and started again."""

    def __init__(self, cluster: Cluster, node: Node, folder: Path, machine: str) -> None:
        self.node = node
        self.state_folder = Path(node.kubelet_root, "plugins", DRIVER)
        self.log = folder / f"plugin-{node.name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._endpoint = f"127.0.0.1:{_free_port()}"
        kubeconfig = cluster.account_kubeconfig(
            ACCOUNT, folder / f"{node.name}.kubeconfig", namespace=SYSTEM, node=node.name
        )
        self._command = [
            *(sys.executable, "-m", "dragoon", "plugin"),
            *("--node-name", node.name),
            *("--kubeconfig", str(kubeconfig)),
            *("--kubelet-root", node.kubelet_root),
            *("--cdi-root", node.cdi_folder),
            *("--simulate", machine),
            *("--simulate-state", str(folder / f"{node.name}.gpus.json")),
            *("--listen", self._endpoint),
        ]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=os.environ
            )

    def start_and_wait(self) -> None:
        """Starts, and returns when the kubelet has registered this process."""
        self.start()
        until(f"the plugin of {self.node.name} is ready", self._is_ready)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self._endpoint}/readyz") as answer:
                return bool(answer.status == HTTPStatus.OK)
        except OSError:
            return False

    def kill(self) -> None:
        """SIGKILL, as a crash would be."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.wait(timeout=30)
        self._process = None

    def journal(self) -> list[str]:
        """Names of the journal entries on this node."""
        return sorted(path.name for path in (self.state_folder / "journal").glob("*.json"))

    def is_clean(self) -> bool:
        """No claim is prepared here and none is half prepared."""
        return not self.journal() and not self.cdi_files()

    def cdi_files(self) -> list[Path]:
        return sorted(Path(self.node.cdi_folder).glob("*.json"))


class Bed:
    """The cluster, kubectl, and the plugins by node name."""

    def __init__(self, cluster: Cluster, plugins: dict[str, Plugin]) -> None:
        self.cluster = cluster
        self.plugins = plugins
        self.figures: list[str] = []
        """Measured values, printed at the end of the run."""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl(*arguments, stdin=stdin)

    def apply(self, *objects: Object) -> None:
        """Applies all objects with one kubectl call."""
        listing = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(listing))

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        scope = ["-n", namespace] if namespace else []
        try:
            found: Object = json.loads(self.kubectl("get", kind, name, *scope, "-o", "json"))
        except ClusterError as error:
            if "NotFound" in str(error):
                return None
            raise
        return found

    def items(self, kind: str, *selection: str) -> list[Object]:
        found: list[Object] = json.loads(self.kubectl("get", kind, *selection, "-o", "json"))[
            "items"
        ]
        return found

    def slices(self, node: str) -> list[Object]:
        """The slices of our driver on a node."""
        selector = f"spec.driver={DRIVER},spec.nodeName={node}"
        return self.items("resourceslices", "--field-selector", selector)

    def running(self, name: str, namespace: str, *, within: float = 60.0) -> Object:
        """The pod, once all its containers run."""

        def look() -> Object | None:
            pod = self.get("pod", name, namespace)
            return pod if pod and is_running(pod) else None

        return until(f"pod {namespace}/{name} runs", look, within=within)

    def gone(self, kind: str, name: str, namespace: str, *, within: float = 60.0) -> None:
        until(
            f"{kind} {namespace}/{name} is gone",
            lambda: self.get(kind, name, namespace) is None,
            within=within,
        )

    def run_in(self, pod: str, namespace: str, container: str, *command: str) -> str:
        """Runs a command in a container and answers its output."""
        return self.kubectl("exec", "-n", namespace, pod, "-c", container, "--", *command)

    def devices_seen(self, pod: str, namespace: str, container: str) -> tuple[set[str], set[str]]:
        """The marker nodes below /dev/dragoon and the devices named in the environment."""
        script = "ls /dev/dragoon 2>/dev/null; echo --; env"
        nodes, _, env = self.run_in(pod, namespace, container, "sh", "-c", script).partition("--\n")
        named = {
            line.partition("=")[0].removeprefix("DRAGOON_").lower().replace("_", "-")
            for line in env.splitlines()
            if line.startswith("DRAGOON_GPU_")
        }
        return set(nodes.split()), named

    def allocated(self, claim: str, namespace: str) -> list[str]:
        """The names of the devices that a claim got."""
        found = self.get("resourceclaim", claim, namespace)
        assert found is not None
        results = found["status"]["allocation"]["devices"]["results"]
        return [result["device"] for result in results]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_running(pod: Object) -> bool:
    """Every container of the pod runs now."""
    statuses = pod.get("status", {}).get("containerStatuses") or []
    return bool(statuses) and all("running" in status["state"] for status in statuses)
