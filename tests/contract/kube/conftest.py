"""The servers that must behave alike: in process, the same behind HTTP, and a real one."""

import contextlib
import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoon.errors import ApiNotFoundError
from dragoon.kube.connecting import connect
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import NAMESPACES
from dragoon.kube.serving import EmbeddedApi
from tests.contract.kube.policies import Place, in_force
from tests.contract.kube.servers import REAL, Server

# One skip (test_real_server) says that the real one is missing, not one for each test.
KINDS = [
    "memory",
    "http",
    *([pytest.param("real", marks=pytest.mark.e2e)] if REAL in os.environ else []),
]


@pytest.fixture(params=KINDS)
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    unique = uuid.uuid4().hex[:8]
    if request.param == "memory":
        yield Server(MemoryApi(), unique)
        return
    embedded = EmbeddedApi(MemoryApi())
    if request.param == "http":
        await embedded.start()
        kubeconfig = embedded.write_kubeconfig(tmp_path / "kubeconfig")
    else:
        kubeconfig = Path(os.environ[REAL])
    api = await connect(kubeconfig)
    found = Server(api, unique)
    await found.create(NAMESPACES, {"metadata": {"name": found.namespace}})
    try:
        yield found
    finally:
        for resource, name in found.made:
            try:
                await api.delete(resource, name)
            except ApiNotFoundError:
                continue
        await api.close()
        await embedded.stop()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    admin = Path(os.environ[REAL])
    api = await connect(admin)
    server = Server(api, uuid.uuid4().hex[:8])
    found = Place(server, admin, tmp_path, [api])
    try:
        await found.install()
        await in_force(found)
        yield found
    finally:
        for resource, name in reversed(server.made):
            with contextlib.suppress(ApiNotFoundError):
                await api.delete(resource, name)
        for client in found.clients:
            await client.close()
