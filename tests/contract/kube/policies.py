"""A place on a real API server where the policies of deploy/ are in force, for a driver of its own."""

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dragoon.api.names import DRIVER_NAME
from dragoon.app import permissions
from dragoon.errors import ApiForbiddenError, ApiInvalidError, DragoonError
from dragoon.kube.port import CLAIMS, NAMESPACES, NODES, PODS, SLICES, Api, Object, Resource
from tests.contract.kube.accounts import account, as_account, grant
from tests.contract.kube.servers import Server
from tests.contract.kube.waiting import becomes

POLICIES = Path(__file__).parents[3] / "deploy/policies"
PLUGIN = "dragoon-plugin"
HOME = "system:serviceaccount:dragoon-system:"


@dataclass
class Place:
    """A namespace, two nodes, and the policies as they would be for a plugin in this namespace."""

    server: Server
    admin: Path
    folder: Path
    clients: list[Api]

    @property
    def api(self) -> Api:
        return self.server.api

    @property
    def driver(self) -> str:
        return f"gpu-{self.server.unique}.dragoon.dev"

    async def install(self) -> None:
        await self.server.create(NAMESPACES, {"metadata": {"name": self.server.namespace}})
        for name in ("a", "b"):
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node(name)}}
            await self.server.create(NODES, node)
        await account(self.server, PLUGIN)
        rights = permissions.objects(
            self.driver, service_account=PLUGIN, namespace=self.server.namespace
        )
        await grant(self.server, rights)
        for name in ("own-slices", "opaque-config", "void-visible-devices"):
            await self._policy(name)

    def node(self, name: str) -> str:
        return f"{name}-{self.server.unique}"

    async def _policy(self, name: str) -> None:
        """As the chart installs it: for this driver, and for a plugin in this namespace."""
        text = (POLICIES / f"{name}.yaml").read_text("utf-8")
        text = text.replace(HOME, f"system:serviceaccount:{self.server.namespace}:")
        for body in yaml.safe_load_all(text.replace(DRIVER_NAME, self.driver)):
            kind = body["kind"]
            plural = f"{kind.lower()[:-1]}ies" if kind.endswith("y") else f"{kind.lower()}s"
            resource = Resource(
                "admissionregistration.k8s.io", "v1", plural, kind, namespaced=False
            )
            await self.server.create(resource, body)

    async def plugin(self, node: str | None) -> Api:
        api = await as_account(self.server, PLUGIN, self.admin, self.folder, node=node)
        self.clients.append(api)
        return api

    def slice(self, node: str, driver: str = "") -> Object:
        return {
            "apiVersion": SLICES.api_version,
            "kind": SLICES.kind,
            "metadata": {"name": f"s-{uuid.uuid4().hex[:8]}"},
            "spec": {
                "driver": driver or self.driver,
                "nodeName": self.node(node),
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [],
            },
        }

    def claim(self, parameters: Any) -> Object:
        config = [{"opaque": {"driver": self.driver, "parameters": parameters}}]
        requests = [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]
        return {
            "apiVersion": CLAIMS.api_version,
            "kind": CLAIMS.kind,
            "metadata": {"name": f"c-{uuid.uuid4().hex[:8]}", "namespace": self.server.namespace},
            "spec": {"devices": {"requests": requests, "config": config}},
        }

    def pod(self, *containers: Object, **spec: Any) -> Object:
        return {
            "apiVersion": PODS.api_version,
            "kind": PODS.kind,
            "metadata": {"name": f"p-{uuid.uuid4().hex[:8]}", "namespace": self.server.namespace},
            "spec": {"containers": list(containers), **spec},
        }


async def in_force(place: Place) -> None:
    """Returns when each policy has taken effect."""
    plugin = await place.plugin(place.node("a"))

    async def all_of_them() -> bool:
        return (
            await refused(plugin.create(SLICES, place.slice("b"), dry_run=True))
            and await refused(place.api.create(CLAIMS, place.claim({}), dry_run=True))
            and await voided(place)
        )

    await becomes("the policies are in force", all_of_them)


async def refused(call: Any) -> bool:
    try:
        await call
    except (ApiForbiddenError, ApiInvalidError):
        return True
    return False


async def voided(place: Place) -> bool:
    try:
        made = await place.api.create(PODS, place.pod({"name": "c", "image": "i"}), dry_run=True)
    except DragoonError:
        return False  # a new namespace has its ServiceAccount a moment later
    return bool(made["spec"]["containers"][0].get("env"))
