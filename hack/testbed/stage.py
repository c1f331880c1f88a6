"""The stage of `hack/demo --real`: kube-scheduler, kubelet and containerd are the real ones."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from dragoon.allocator.allocate import Allocated, allocate
from dragoon.api import names
from dragoon.api.claims import AllocatedDevice, allocation, claim_ref
from dragoon.app.demo.stage import Answer, DemoError, Inside
from dragoon.prepare.cdi import Mount
from dragoon.prepare.injection import Injected
from testbed import objects
from testbed.bed import Bed, Object, is_running
from testbed.plugins import Plugin
from testbed.waiting import NotInTimeError, until

_NAMESPACE = "default"
_OURS = ("DRAGOON_", "NVIDIA_")
_OPTIONS = ("ro", "nosuid", "nodev", "noexec")
_T = TypeVar("_T")


class RealStage:
    """Implements `dragoon.app.demo.stage.Stage` on a cluster with one node."""

    driver = names.DRIVER_NAME
    device_class = names.CLASS_SIMULATED

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        (self._node,) = bed.cluster.nodes
        self._plugin: Plugin = bed.plugins[self._node.name]

    async def slices(self) -> tuple[Object, ...]:
        return tuple(await _step(lambda: self._bed.slices(self._node.name)))

    async def ask(self, claim: Object) -> Answer:
        return await _step(lambda: self._ask(claim))

    async def start_pod(self, claim: str) -> Inside:
        return await _step(lambda: self._inside(claim))

    async def end_pod(self, claim: str) -> None:
        await _step(lambda: self._end_pod(claim))

    async def kill_plugin(self) -> int:
        pid = self._plugin.pid
        await _step(self._plugin.kill)
        return pid

    async def restart_plugin(self) -> None:
        await _step(self._plugin.start_and_wait)

    async def start_again(self, claim: str) -> Inside:
        return await _step(lambda: self._start_again(claim))

    def _ask(self, claim: Object) -> Answer:
        """What kube-scheduler answers; why, our allocator says, and it must come to the same."""
        name = claim["metadata"]["name"]
        self._bed.apply(claim)
        (raw,) = (c for c in self._claims() if c["metadata"]["name"] == name)
        expected = allocate(
            [raw],
            classes=self._bed.items("deviceclasses"),
            slices=self._bed.items("resourceslices"),
            allocated_claims=self._claims(),
            node=self._bed.items("nodes")[0],
        )
        ours: tuple[AllocatedDevice, ...] = ()
        if isinstance(expected, Allocated):
            ours = _devices({"status": {"allocation": expected.allocations[0]}})
        self._bed.apply(_pod(name))

        def decided() -> Answer | None:
            """Its first answer may be of a moment at which it had not yet seen everything."""
            found = self._decision(name)
            return found if found is not None and found.devices == ours else None

        try:
            got = until(f"the scheduler decides on claim {name}", decided)
        except NotInTimeError as error:
            raise DemoError(
                f"kube-scheduler decided {self._decision(name)}, our allocator {ours}"
            ) from error
        return Answer(got.devices, (*expected.lines(), *got.why))

    def _decision(self, name: str) -> Answer | None:
        claim = self._bed.get("resourceclaim", name, _NAMESPACE) or {}
        if devices := _devices(claim):
            return Answer(devices)
        pod = self._bed.get("pod", name, _NAMESPACE) or {}
        for condition in pod.get("status", {}).get("conditions") or ():
            if condition.get("reason") == "Unschedulable":
                return Answer(why=(f"kube-scheduler says: {condition['message']}",))
        return None

    def _inside(self, name: str) -> Inside:
        pod = self._bed.running(name, _NAMESPACE)
        claim = self._bed.get("resourceclaim", name, _NAMESPACE)
        if pod["spec"]["nodeName"] != self._node.name or claim is None:
            raise DemoError(f"pod {name} is not where it should be")
        uid = claim_ref(claim).uid
        spec = next(path for path in self._plugin.cdi_files() if uid in path.name)
        script = "env; echo --; cat /proc/self/mountinfo"
        env, _, mounts = self._bed.run_in(
            name, _NAMESPACE, objects.MAIN, "sh", "-c", script
        ).partition("--\n")
        given = Injected(
            env=tuple(sorted(line for line in env.splitlines() if line.startswith(_OURS))),
            mounts=tuple(sorted(_mounts(mounts), key=lambda mount: mount.container_path)),
        )
        return Inside(given, spec, spec.read_text("utf-8"))

    def _start_again(self, name: str) -> Inside:
        """A new sandbox after a restart of the kubelet: only then the plugin is asked again."""
        before = self._bed.running(name, _NAMESPACE)["status"]["containerStatuses"][0]
        asked = self._prepared_count(name)
        self._bed.cluster.restart_kubelet(self._node.name)
        self._kill_sandbox(name)

        def again() -> bool:
            pod = self._bed.get("pod", name, _NAMESPACE)
            return (
                pod is not None
                and is_running(pod)
                and pod["status"]["containerStatuses"][0]["containerID"] != before["containerID"]
                and self._prepared_count(name) > asked
            )

        until(f"pod {name} runs in a new sandbox", again)
        return self._inside(name)

    def _prepared_count(self, name: str) -> int:
        """How often the plugin has prepared the claim, as its log says."""
        lines = self._plugin.log.read_text().splitlines()
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        return sum(
            entry.get("event") == "prepared" and f"/{name} " in entry.get("claim", "")
            for entry in entries
        )

    def _kill_sandbox(self, name: str) -> None:
        label = f'labels."io.kubernetes.pod.name"=={name}'
        kind = 'labels."io.cri-containerd.kind"==sandbox'
        (sandbox,) = self._bed.ctr(
            self._node, "containers", "list", "--quiet", f"{label},{kind}"
        ).split()
        self._bed.ctr(self._node, "tasks", "kill", "--signal", "SIGKILL", sandbox)

    def _end_pod(self, name: str) -> None:
        for kind in ("pod", "resourceclaim"):
            self._bed.kubectl("delete", kind, "-n", _NAMESPACE, name)

    def _claims(self) -> list[Object]:
        return self._bed.items("resourceclaims", "-n", _NAMESPACE)


async def _step(work: Callable[[], _T]) -> _T:
    """Runs blocking work off the loop; what does not come true ends the demo with its reason."""
    try:
        return await asyncio.to_thread(work)
    except NotInTimeError as error:
        raise DemoError(str(error)) from error


def _pod(claim: str) -> Object:
    container = objects.container(objects.MAIN, "gpus")
    return objects.pod(claim, _NAMESPACE, container, claims={"gpus": claim})


def _devices(claim: dict[str, Any]) -> tuple[AllocatedDevice, ...]:
    found = allocation(claim)
    return found.devices if found else ()


def _mounts(mountinfo: str) -> list[Mount]:
    """The mounts below /dev/dragoon; fields as in proc(5): root, mount point, options."""
    rows = [line.split() for line in mountinfo.splitlines() if " /dev/dragoon/" in line]
    return [
        Mount(
            host_path=str(Path(row[3])),
            container_path=row[4],
            options=tuple(option for option in _OPTIONS if option in row[5].split(",")),
        )
        for row in rows
    ]
