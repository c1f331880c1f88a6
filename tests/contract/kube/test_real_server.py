"""Whether the other tests here also ran against a real API server."""

import os
from pathlib import Path

import pytest

from dragoon.kube.connecting import connect
from dragoon.kube.port import SLICES
from tests.contract.kube.servers import REAL


@pytest.mark.e2e
async def test_the_real_server_of_these_tests_serves_resource_slices() -> None:
    if REAL not in os.environ:
        pytest.skip(f"{REAL} is not set: the fakes are not compared with a real API server")
    api = await connect(Path(os.environ[REAL]))
    try:
        assert (await api.list(SLICES)).resource_version
    finally:
        await api.close()
