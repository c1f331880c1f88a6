"""The servers that must behave alike: in process, the same behind HTTP, and a real one."""

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
