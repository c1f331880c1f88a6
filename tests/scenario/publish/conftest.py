"""A bench with a node for every test of the publisher."""

import pytest

from tests.scenario.publish.bench import Bench


@pytest.fixture
async def bench() -> Bench:
    made = Bench()
    await made.node()
    return made
