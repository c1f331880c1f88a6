"""The test bed: the real cluster with one Dragoon plugin process per node."""

import json
from typing import Any

from dragoon.api.names import DRIVER_NAME
from realcluster import runtime
from realcluster.apiserver import ApiServer
from realcluster.cluster import Cluster
from realcluster.state import Node
from testbed.plugins import Plugin
from testbed.reading import Reader
from testbed.waiting import until

Object = dict[str, Any]


class Bed:
    """The cluster, kubectl, and the plugins by node name."""

    def __init__(self, cluster: Cluster, plugins: dict[str, Plugin]) -> None:
        self.cluster = cluster
        self.plugins = plugins
        self._reader = Reader(ApiServer(cluster.state))
        self.figures: list[str] = []
        """Measured values, printed at the end of the run."""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl(*arguments, stdin=stdin)

    def apply(self, *objects: Object) -> None:
        """Applies all objects with one kubectl call."""
        listing = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(listing))

    def ctr(self, node: Node, *arguments: str) -> str:
        """Runs containerd's own client against a node."""
        program = self.cluster.state.programs["ctr"]
        return runtime.ctr(program, node.containerd_socket, *arguments)

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        return self._reader.get(kind, name, namespace)

    def items(self, kind: str, *selection: str) -> list[Object]:
        """The objects of a kind. selection: pairs such as `-n`, NAMESPACE, `-l`, LABEL=VALUE."""
        return self._reader.items(kind, *selection)

    def slices(self, node: str) -> list[Object]:
        """The slices of our driver on a node."""
        selector = f"spec.driver={DRIVER_NAME},spec.nodeName={node}"
        return self.items("resourceslices", "--field-selector", selector)

    def whole_gpus(self, node: str) -> dict[str, Object]:
        """The whole GPUs of a node by name, whatever they can be divided into besides.

        What a node does not offer any more stays published, tainted, for minutes.
        """
        return {
            device["name"]: device
            for piece in self.slices(node)
            for device in piece["spec"].get("devices") or ()
            if device["attributes"]["type"]["string"] == "gpu"
        }

    def running(self, name: str, namespace: str) -> Object:
        """The pod, once all its containers run."""

        def look() -> Object | None:
            pod = self.get("pod", name, namespace)
            return pod if pod and is_running(pod) else None

        return until(f"pod {namespace}/{name} runs", look)

    def gone(self, kind: str, name: str, namespace: str) -> None:
        until(
            f"{kind} {namespace}/{name} is gone",
            lambda: self.get(kind, name, namespace) is None,
        )

    def run_in(self, pod: str, namespace: str, container: str, *command: str) -> str:
        """Runs a command in a container and answers its output."""
        return self.kubectl("exec", "-n", namespace, pod, "-c", container, "--", *command)

    def end_container(self, pod: str, namespace: str) -> None:
        """SIGTERM to the first process of a pod's only container.

        From outside: a shell inside that sends it can be killed with the container, and then it fails.
        """
        found = self.get("pod", pod, namespace)
        assert found is not None
        (status,) = found["status"]["containerStatuses"]
        node = self.cluster.state.node(found["spec"]["nodeName"])
        identity = status["containerID"].removeprefix("containerd://")
        self.ctr(node, "tasks", "kill", "--signal", "SIGTERM", identity)

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

    def claims_of(self, pod: str, namespace: str) -> list[Object]:
        """The claims that were made for a pod, by its status."""
        found = self.get("pod", pod, namespace) or {}
        made = found.get("status", {}).get("resourceClaimStatuses") or ()
        names = {one["resourceClaimName"] for one in made}
        every = self.items("resourceclaims", "-n", namespace)
        return [one for one in every if one["metadata"]["name"] in names]

    def unschedulable(self, pod: str, namespace: str) -> bool:
        """Whether kube-scheduler says that it has found no place for a pod."""
        found = self.get("pod", pod, namespace) or {}
        conditions = found.get("status", {}).get("conditions") or ()
        return any(one.get("reason") == "Unschedulable" for one in conditions)

    def device_health(self, pod: str, namespace: str) -> Object | None:
        """What a pod's status says of its only device; None before the kubelet has said it."""
        found = self.get("pod", pod, namespace)
        assert found is not None
        (status,) = found["status"]["containerStatuses"]
        for claim in status.get("allocatedResourcesStatus") or ():
            device: Object
            (device,) = claim["resources"]
            return device
        return None

    def allocated(self, claim: str, namespace: str) -> list[str]:
        """The names of the devices that a claim got."""
        found = self.get("resourceclaim", claim, namespace)
        assert found is not None
        results = found["status"]["allocation"]["devices"]["results"]
        return [result["device"] for result in results]


def is_running(pod: Object) -> bool:
    """Every container of the pod runs now."""
    statuses = pod.get("status", {}).get("containerStatuses") or []
    return bool(statuses) and all("running" in status["state"] for status in statuses)
