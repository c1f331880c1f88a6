"""A bench with a node for every test of the publisher, and one with cards for those of forms."""

import pytest

from tests.scenario.publish.bench import Bench
from tests.scenario.publish.formbed import Node


@pytest.fixture
async def bench() -> Bench:
    made = Bench()
    await made.node()
    return made


@pytest.fixture
async def node() -> Node:
    made = Node()
    await made.bench.node()
    return made
