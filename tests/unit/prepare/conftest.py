"""A node with GPUs for every test of prepare."""

import pytest

from tests.unit.prepare.scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()
