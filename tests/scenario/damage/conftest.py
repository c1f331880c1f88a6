"""The worlds that are damaged."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.scenario.damage import cluster_world, node_world
from tests.scenario.damage.cluster_world import ClusterWorld
from tests.scenario.damage.node_world import NodeWorld
from tests.scenario.pluginbed import Bed


@pytest.fixture
async def node() -> AsyncIterator[NodeWorld]:
    # Sockets need a path shorter than tmp_path's.
    folder = Path(tempfile.mkdtemp(prefix="dd", dir="/tmp"))
    bed = Bed(folder)
    await bed.create_node()
    try:
        async with node_world.running(bed) as world:
            yield world
    finally:
        shutil.rmtree(folder)


@pytest.fixture
async def cluster(tmp_path: Path) -> ClusterWorld:
    return await cluster_world.built(tmp_path)
