"""The rights of app.permissions for claim status, on a real API server: enough, and no more.

What is checked there since 1.36 (KEP-4817, `resourceclaims/driver`) no fake imitates.
"""

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dragoon.api.claims import ClaimRef, claim_ref
from dragoon.app import permissions
from dragoon.errors import ApiError, ApiForbiddenError, ApiInvalidError, UnknownDeviceError
from dragoon.kube.connecting import connect
from dragoon.kube.events import EventRecorder
from dragoon.kube.port import CLAIMS, EVENTS, NAMESPACES, NODES, Api, Object
from dragoon.prepare.journal import Entry, HeldDevice, State
from dragoon.prepare.observing import Compared, Finished
from dragoon.prepare.settings import PrepareSettings
from dragoon.prepare.status.writing import Pace, StatusWriter
from testbed.waiting import PATIENCE
from tests.contract.kube.accounts import ROLES, account, as_account, grant
from tests.contract.kube.servers import REAL, Server

pytestmark = pytest.mark.e2e

if REAL not in os.environ:
    pytest.skip(f"{REAL} is not set", allow_module_level=True)

PLUGIN = "plugin"
NIC = {"driver": "nic.example.com", "pool": "p", "device": "eth0"}


@dataclass
class Cluster:
    """Two nodes, the rights of a plugin with a driver name of its own, and its claims."""

    server: Server
    admin: Path
    folder: Path
    clients: list[Api] = field(default_factory=list)

    @property
    def driver(self) -> str:
        return f"gpu-{self.server.unique}.dragoon.dev"

    @property
    def node(self) -> str:
        return f"node-{self.server.unique}"

    @property
    def device(self) -> dict[str, str]:
        return {"driver": self.driver, "pool": f"{self.node}/gpu", "device": "gpu-0000-10-00-0"}

    async def install(self) -> None:
        """A namespace, two nodes, the plugin's ServiceAccount and its rights."""
        server = self.server
        await server.create(NAMESPACES, {"metadata": {"name": server.namespace}})
        for name in (self.node, f"{self.node}-b"):
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            await server.create(NODES, node)
        await account(server, PLUGIN)
        rights = permissions.objects(
            self.driver, service_account=PLUGIN, namespace=server.namespace
        )
        await grant(server, rights)

    async def plugin(self, *, node: str | None) -> Api:
        api = await as_account(self.server, PLUGIN, self.admin, self.folder, node=node)
        self.clients.append(api)
        return api

    async def claim(self, name: str, node: str) -> ClaimRef:
        """A claim that has our device and a NIC on a node, as kube-scheduler writes it."""
        claim = await self.server.claim(name)
        results = [{"request": "g", **self.device}, {"request": "g", **NIC}]
        match = {"key": "metadata.name", "operator": "In", "values": [node]}
        claim["status"] = {
            "allocation": {
                "devices": {"results": results},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [match]}]},
            },
            "devices": [{**NIC, "data": {"ip": "10.0.0.1"}}],
        }
        return claim_ref(await self.server.api.replace(CLAIMS, claim, subresource="status"))

    async def raw(self, claim: ClaimRef) -> Object:
        return await self.server.api.get(CLAIMS, claim.name, namespace=claim.namespace)

    async def devices(self, claim: ClaimRef) -> list[Object]:
        return list((await self.raw(claim))["status"].get("devices") or ())

    def entry(self, claim: ClaimRef) -> Entry:
        held = HeldDevice("g", self.device["pool"], self.device["device"], "", "GPU-1", "x/y=z")
        return Entry(
            namespace=claim.namespace,
            name=claim.name,
            uid=claim.uid,
            boot_id="b",
            state=State.PREPARED,
            devices=(held,),
            steps=(),
        )

    @contextlib.asynccontextmanager
    async def writer(self, api: Api, claim: ClaimRef) -> AsyncIterator[StatusWriter]:
        """The writer of a node on which this claim is prepared."""
        settings = PrepareSettings(self.driver, self.node, self.folder, self.folder)
        recorder = EventRecorder(api, "dragoon-plugin", self.node)
        writer = StatusWriter(
            api, settings, lambda _: self.entry(claim), recorder, pace=Pace(0, released_s=0)
        )
        tasks = [asyncio.create_task(writer.run()), asyncio.create_task(recorder.run())]
        try:
            yield writer
            async with asyncio.timeout(PATIENCE):
                await writer.flush()
                await recorder.flush()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    admin = Path(os.environ[REAL])
    api = await connect(admin)
    found = Cluster(Server(api, uuid.uuid4().hex[:8]), admin, tmp_path)
    server = found.server
    try:
        await found.install()
        yield found
    finally:
        for client in found.clients:
            await client.close()
        for resource, name in reversed(server.made):
            await api.delete(resource, name)
        await api.close()


@pytest.fixture
async def checked(cluster: Cluster) -> Cluster:
    """A cluster whose server asks for the rights of a driver; 1.35 does not."""
    version = await cluster.server.api.version()
    if version.startswith("v1.35."):
        pytest.skip(f"{version} asks for the right to the whole status only")
    return cluster


async def patched(api: Api, claim: ClaimRef, *devices: Object) -> Object:
    return await api.patch(
        CLAIMS,
        claim.name,
        {"status": {"devices": list(devices)}},
        namespace=claim.namespace,
        subresource="status",
    )


async def test_the_plugin_of_the_claims_node_writes_its_entry_and_no_other(
    cluster: Cluster,
) -> None:
    claim = await cluster.claim("a", cluster.node)
    api = await cluster.plugin(node=cluster.node)
    other = await cluster.devices(claim)
    async with cluster.writer(api, claim) as writer:
        writer.observe(Finished("prepare", claim, 0.1))
        await writer.flush()
        written = await cluster.raw(claim)
        writer.observe(Compared(cluster.entry(claim), written))
    assert await cluster.raw(claim) == written, "what is there already is not written again"
    *others, mine = written["status"]["devices"]
    assert others == other
    assert mine["conditions"][0]["reason"] == "Prepared"
    assert mine["data"] == {"gpuUUID": "GPU-1"}


async def test_a_refusal_stands_in_status_and_event_and_goes_with_success(
    cluster: Cluster,
) -> None:
    claim = await cluster.claim("a", cluster.node)
    api = await cluster.plugin(node=cluster.node)
    error = UnknownDeviceError("no such card", hint="delete the pod")
    async with cluster.writer(api, claim) as writer:
        for _ in range(3):
            writer.observe(Finished("prepare", claim, 0.1, error))
            await writer.flush()
        (event,) = await events(cluster, claim)
        _, mine = await cluster.devices(claim)
        assert (event["reason"], event["note"]) == ("UnknownDevice", str(error))
        assert mine["conditions"][0]["message"] == str(error)
        assert mine["data"] == {"onRefusal": "Report"}
        writer.observe(Finished("prepare", claim, 0.1))
    _, mine = await cluster.devices(claim)
    assert mine["conditions"][0]["status"] == "True"


async def events(cluster: Cluster, claim: ClaimRef) -> list[Object]:
    """The events about the claim as soon as there is one."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await cluster.server.api.list(EVENTS, namespace=claim.namespace)
            about = [one for one in found.items if one["regarding"].get("uid") == claim.uid]
            if about:
                return about
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("claims_node", "bound"), [("-b", True), ("", False)], ids=["another node's", "no node's"]
)
async def test_a_claim_of_another_node_and_a_token_without_a_node_are_refused(
    checked: Cluster, claims_node: str, bound: bool
) -> None:
    claim = await checked.claim("a", f"{checked.node}{claims_node}")
    api = await checked.plugin(node=checked.node if bound else None)
    with pytest.raises(ApiError) as refused:
        await patched(api, claim, NIC, checked.device)
    check_named(refused.value)


async def test_entries_of_another_driver_are_not_ours_to_change(checked: Cluster) -> None:
    claim = await checked.claim("a", checked.node)
    api = await checked.plugin(node=checked.node)
    with pytest.raises(ApiError) as refused:
        await patched(api, claim, {**NIC, "data": {"ip": "6.6.6.6"}}, checked.device)
    check_named(refused.value)


async def test_nothing_else_of_a_claim_can_be_written(checked: Cluster) -> None:
    claim = await checked.claim("a", checked.node)
    api = await checked.plugin(node=checked.node)
    raw = await checked.server.api.get(CLAIMS, "a", namespace=claim.namespace)
    with pytest.raises(ApiForbiddenError):
        await api.replace(CLAIMS, raw, subresource="status")
    with pytest.raises(ApiForbiddenError):
        await api.patch(
            CLAIMS, "a", {"metadata": {"labels": {"a": "b"}}}, namespace=claim.namespace
        )
    status: Any = {"status": {"allocation": None, "devices": None}}
    with pytest.raises(ApiError):
        await api.patch(CLAIMS, "a", status, namespace=claim.namespace, subresource="status")


async def test_the_right_to_the_status_alone_is_not_enough(checked: Cluster) -> None:
    claim = await checked.claim("a", checked.node)
    role = await checked.server.api.get(ROLES, f"{checked.driver}:plugin")
    role["rules"] = [r for r in role["rules"] if r["resources"] != ["resourceclaims/driver"]]
    await checked.server.api.replace(ROLES, role)
    api = await checked.plugin(node=checked.node)
    with pytest.raises(ApiError) as refused:
        await patched_until_refused(api, claim, checked.device)
    check_named(refused.value)


async def patched_until_refused(api: Api, claim: ClaimRef, device: Object) -> None:
    """The authorizer sees a change of a role a moment later."""
    async with asyncio.timeout(PATIENCE):
        while True:
            await patched(api, claim, NIC, {**device, "data": {"n": str(uuid.uuid4())}})


def check_named(error: ApiError) -> None:
    """The answer names what is missing. It is a finding of validation, not an HTTP 403."""
    assert isinstance(error, ApiInvalidError | ApiForbiddenError)
    assert "resourceclaims/driver" in str(error)
