"""Compiled Python in the image: files cannot be written there, every start would compile anew.

Compiled by the Python of the image itself, since bytecode is of one version. The files say the hash
of their source and not its time, so the same source gives the same bytes.
"""

import os
import subprocess
from pathlib import Path

from imagebuild.layers import Layer
from realcluster import packages
from realcluster.failure import ClusterError

_COMPILE = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")


def compile_below(root: Path, *folders: str) -> None:
    """Compile folders of a file system that has a Python, with that Python.

    Raises ClusterError: not root, or a source that does not compile.
    """
    if os.geteuid() != 0:
        raise ClusterError("building an image needs root: its own Python compiles its files")
    done = subprocess.run(
        [
            packages.find("chroot") or "chroot",
            str(root),
            "/usr/bin/python",
            *_COMPILE,
            *(f"/{name}" for name in folders),
        ],
        # Sets in bytecode are in the order of their hashes.
        env={"PYTHONHASHSEED": "0", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ClusterError(f"compiling {', '.join(folders)} failed: {done.stdout}{done.stderr}")


def compile_beside(base: Layer, root: Path, inside: Path, folder: str) -> None:
    """Compile a folder of another layer with the Python of the base, unpacked at `inside`."""
    inside.mkdir()
    subprocess.run(["tar", "-xf", base.path, "-C", inside], check=True)
    (root / folder).rename(inside / folder)
    compile_below(inside, folder)
    (inside / folder).rename(root / folder)
