"""A node for the scenarios of the node process."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.scenario.pluginbed import Bed


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    # Sockets need a path shorter than tmp_path's.
    folder = Path(tempfile.mkdtemp(prefix="dp", dir="/tmp"))
    found = Bed(folder)
    await found.create_node()
    yield found
    shutil.rmtree(folder)
