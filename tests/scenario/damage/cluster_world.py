"""A cluster that is well: two nodes, everything that the chart installs, a claim and a gang."""

from pathlib import Path
from typing import Any, Final

import yaml

from dragoon.api import gang
from dragoon.api.names import LABEL_GANG_UID
from dragoon.app import permissions
from dragoon.app.evidence import cluster
from dragoon.diagnose.checking import Evidence
from dragoon.diagnose.installed import COMPONENT, CONTROLLER, OURS, PART_OF, PLUGIN
from dragoon.gang.admission_memory import POLICIES
from dragoon.gpu.opening import open_gpus
from dragoon.kube.port import (
    CLAIMS,
    CLASSES,
    GANGS,
    NODES,
    PODS,
    SLICES,
    TAINT_RULES,
    Object,
)
from dragoon.kube.rights_memory import AuthorizingApi
from dragoon.publish import slices

REPOSITORY: Final = Path(__file__).resolve().parents[3]
DRIVER: Final = "gpu.dragoon.dev"
HOME: Final = "dragoon-system"
NODE: Final = "n1"
READY: Final = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}


class ClusterWorld:
    """The cluster, and how it is damaged."""

    def __init__(self) -> None:
        self.admission: dict[Any, Any] = dict(POLICIES)
        self.api = AuthorizingApi(admission=self.admission)

    async def evidence(self) -> Evidence:
        """What the checks see of it from a laptop."""
        return await cluster.gather(Evidence(driver_name=DRIVER), self.api, source="the test")

    async def pod(self, name: str, namespace: str = "default", **spec: Any) -> Object:
        """A pod of somebody; its labels and status are given as `labels` and `status`."""
        labels, status = spec.pop("labels", {}), spec.pop("status", {})
        body = {
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"containers": [{"name": "main", "image": "none"}], **spec},
        }
        made = await self.api.create(PODS, body)
        if not status:
            return made
        return await self.api.patch(
            PODS, name, {"status": status}, namespace=namespace, subresource="status"
        )

    async def claim(
        self, name: str, *devices: str, node: str = NODE, part: Object | None = None
    ) -> Object:
        """A claim that has these devices of a node. part: what the result says of a share."""
        request = {"name": "gpu", "exactly": {"deviceClassName": "sim.dragoon.dev"}}
        body = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [request]}},
        }
        made = await self.api.create(CLAIMS, body)
        results = [
            {"request": "gpu", "driver": DRIVER, "pool": f"{node}/gpu", "device": one}
            | (part or {})
            for one in devices
        ]
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        made["status"] = {
            "allocation": {
                "devices": {"results": results},
                "nodeSelector": {"nodeSelectorTerms": [term]},
            }
        }
        return await self.api.replace(CLAIMS, made, subresource="status")

    async def device(self, number: int, node: str = NODE) -> str:
        """The name of a device of a node."""
        (found,) = await self.slices(node)
        return str(found["spec"]["devices"][number]["name"])

    async def slices(self, node: str = NODE) -> tuple[Object, ...]:
        return (await self.api.list(SLICES, fields={"spec.nodeName": node})).items

    async def edit_slice(self, edit: Any, node: str = NODE) -> None:
        (found,) = await self.slices(node)
        edit(found["spec"])
        await self.api.replace(SLICES, found)


async def built(folder: Path) -> ClusterWorld:
    """The cluster as it is after an install, with a workload."""
    world = ClusterWorld()
    for file in sorted((REPOSITORY / "deviceclasses").glob("*.yaml")):
        for class_ in yaml.safe_load_all(file.read_text()):
            await world.api.create(CLASSES, class_)
    world.api.policy += [
        *permissions.objects(DRIVER, service_account="plugin", namespace=HOME),
        *permissions.controller_objects(DRIVER, service_account="controller", namespace=HOME),
    ]
    for name in (NODE, "n2"):
        await _node(world, name, folder)
    await _process(world, CONTROLLER, "controller")
    await world.claim("has", await world.device(0))
    await _gang(world)
    return world


async def _node(world: ClusterWorld, name: str, folder: Path) -> None:
    info = {"containerRuntimeVersion": "containerd://2.1.4", "kubeletVersion": "v1.37.2"}
    await world.api.create(
        NODES,
        {
            "metadata": {"name": name, "labels": {"zone": name}},
            "status": {"nodeInfo": info, "allocatable": {"cpu": "64", "memory": "256Gi"}},
        },
    )
    gpus = open_gpus("dgx-h100", folder / f"{name}.json", node=name, beside_driver=True)
    try:
        inventory = gpus.inventory()
    finally:
        gpus.close()
    for one in slices.render(inventory, node=name, driver=DRIVER):
        await world.api.create(SLICES, one)
    await _process(world, PLUGIN, f"plugin-{name}", node=name)


async def _process(world: ClusterWorld, component: str, name: str, node: str = NODE) -> None:
    labels = {PART_OF: OURS, COMPONENT: component}
    await world.pod(
        name, HOME, labels=labels, status=READY, nodeName=node, serviceAccountName=component
    )


async def _gang(world: ClusterWorld) -> None:
    """A gang that runs, with its rule."""
    meta = {"name": "train", "namespace": "default"}
    made = await world.api.create(GANGS, {"metadata": meta, "spec": {"size": 1}})
    await world.api.patch(
        GANGS, "train", {"status": {"phase": "Running"}}, namespace="default", subresource="status"
    )
    await world.api.create(
        TAINT_RULES,
        {
            "metadata": {"name": "fence", "labels": {LABEL_GANG_UID: made["metadata"]["uid"]}},
            "spec": {
                "deviceSelector": {"driver": DRIVER, "pool": "n2/gpu"},
                "taint": {"key": gang.TAINT, "effect": "NoSchedule"},
            },
        },
    )
    await world.pod(
        "train-0", labels={gang.LABEL: "train"}, nodeName="n2", status={"phase": "Running"}
    )
