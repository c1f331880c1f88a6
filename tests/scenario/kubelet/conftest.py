"""A kubelet root and what lives on it."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.kubelet.preparers import ScriptedPreparer


@pytest.fixture
def root() -> Iterator[Path]:
    """A kubelet root with a path short enough for sockets, which tmp_path has not."""
    folder = Path(tempfile.mkdtemp(prefix="dk", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def preparer() -> ScriptedPreparer:
    return ScriptedPreparer()
