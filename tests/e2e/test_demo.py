"""`hack/demo --real` plays its whole story on a cluster of its own."""

import subprocess
from pathlib import Path

import pytest

from testbed.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

_ROOT = Path(__file__).resolve().parents[2]


def test_the_real_demo_shows_every_part_and_leaves_nothing() -> None:
    before = _folders()
    done = subprocess.run(
        [_ROOT / "hack" / "demo", "--real"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    parts = [line for line in done.stdout.splitlines() if line.startswith("== ")]
    assert parts == [
        "== The node",
        "== A pod that needs a GPU with at least 40Gi of memory",
        "== A pod that needs 2 GPUs in one NVLink domain",
        "== A claim that cannot fit",
        "== The plugin is killed while the pod runs",
        "== Try next",
    ]
    assert "kube-scheduler says: 0/1 nodes are available" in done.stdout
    # Another checkout may play it, too; a folder of that one goes as well.
    until("no folder is left", lambda: _folders() <= before)


def _folders() -> set[Path]:
    return set(Path("/tmp").glob("dragoon-demo-*"))
