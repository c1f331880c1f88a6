"""Runs a command of a page as a reader would type it."""

import os
import subprocess
import sys
from pathlib import Path


def printed(command: str, folder: Path, *programs: Path, **variables: str) -> str:
    """What a command prints, on both streams.

    programs: folders of programs that come before those of this environment.
    """
    path = (*map(str, programs), str(Path(sys.executable).parent), os.environ["PATH"])
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, **variables, "PATH": os.pathsep.join(path), "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=300,
    )
    return done.stdout
