from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.unit.gpu.rig import Simulate, rig


@pytest.fixture
def simulate(tmp_path: Path) -> Iterator[Simulate]:
    """Makes a simulated machine by name, each in a folder of its own."""
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(rig(name, tmp_path / name))
