"""A node with shares for every test of a tier."""

import pytest

from tests.unit.prepare.scene import Scene
from tests.unit.prepare.sharing import sharing_scene


@pytest.fixture
def scene() -> Scene:
    return sharing_scene()
