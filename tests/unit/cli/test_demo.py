from pathlib import Path

import pytest

from dragoon.cli.demo import how_called

HERE = Path("/home/me/dragoon")


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("/home/me/dragoon/.venv/bin/dragoon", ".venv/bin/dragoon"),
        ("/usr/local/bin/dragoon", "dragoon"),
        ("dragoon", "dragoon"),
        ("/home/me/dragoon/driver/dragoon/__main__.py", "python -m dragoon"),
        ("/usr/local/bin/kubectl-dragoon", "kubectl-dragoon"),
    ],
)
def test_commands_to_try_are_written_as_the_reader_can_type_them(
    argument: str, expected: str
) -> None:
    assert how_called(argument, HERE) == expected
