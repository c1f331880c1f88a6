"""A server under test and short ways to put objects into it."""

from dataclasses import dataclass, field
from typing import Any

from dragoon.kube.port import CLAIMS, CLASSES, SLICES, Api, Object, Resource

REAL = "DRAGOON_E2E_KUBECONFIG"
"""The variable with the kubeconfig of a real API server that may be written to."""


@dataclass
class Server:
    """A server with a namespace of its own; `made` cluster-scoped objects are removed at the end."""

    api: Api
    unique: str
    made: list[tuple[Resource, str]] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        return f"dragoon-{self.unique}"

    async def create(self, resource: Resource, body: Object) -> Object:
        stored = await self.api.create(resource, body)
        if not resource.namespaced:
            self.made.append((resource, stored["metadata"]["name"]))
        return stored

    async def claim(self, name: str, **meta: Any) -> Object:
        requests = [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]
        body = {
            "apiVersion": CLAIMS.api_version,
            "kind": CLAIMS.kind,
            "metadata": {"name": name, "namespace": self.namespace, **meta},
            "spec": {"devices": {"requests": requests}},
        }
        return await self.create(CLAIMS, body)

    async def slice(self, suffix: str, *, devices: Any = (), **meta: Any) -> Object:
        node = f"node-{self.unique}"
        body = {
            "apiVersion": SLICES.api_version,
            "kind": SLICES.kind,
            "metadata": {"name": f"{node}-{suffix}", **meta},
            "spec": {
                "driver": "gpu.dragoon.dev",
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": list(devices) or [{"name": "gpu-0"}],
            },
        }
        return await self.create(SLICES, body)

    async def device_class(self, suffix: str, **meta: Any) -> Object:
        body = {
            "apiVersion": CLASSES.api_version,
            "kind": CLASSES.kind,
            "metadata": {"name": f"class-{self.unique}-{suffix}", **meta},
            "spec": {"selectors": [{"cel": {"expression": "true"}}]},
        }
        return await self.create(CLASSES, body)
