"""A cluster for commands that ask one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoon.kube.rights import REVIEWS
from dragoon.kube.serving import EmbeddedApi
from tests.scenario.damage import cluster_world
from tests.scenario.damage.cluster_world import ClusterWorld


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[tuple[ClusterWorld, str]]:
    """One that is well, behind HTTP, and the kubeconfig for it."""
    world = await cluster_world.built(tmp_path)
    served = EmbeddedApi(world.api, resources=[REVIEWS])
    await served.start()
    try:
        yield world, str(served.write_kubeconfig(tmp_path / "kubeconfig"))
    finally:
        await served.stop()
