"""A process that logs does not load rich; one that shows tables still can."""

import subprocess
import sys

_SCRIPT = """
import sys
from dragoon.telemetry import logs
assert "structlog" in sys.modules
assert not [name for name in sys.modules if name.partition(".")[0] == "rich"]
logs.configure(form="text", stream=sys.stdout)
try:
    raise ValueError("why")
except ValueError:
    logs.structlog.get_logger("x").exception("told")
from rich.table import Table
print(Table.__name__)
"""


def test_logs_are_written_without_rich_and_tables_are_drawn_with_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "ValueError: why" in done.stdout
    assert done.stdout.endswith("Table\n")
