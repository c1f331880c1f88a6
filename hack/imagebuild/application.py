"""The Python packages of the image: the lock file's, each with its hash, the project's wheel."""

import base64
import csv
import hashlib
import os
import platform
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

from realcluster.failure import ClusterError

APP = "app"
"""The folder with the packages, as in the Dockerfile."""

SOURCES = ("driver", "pyproject.toml", "uv.lock", "README.md", "LICENSE", "Dockerfile")
"""What of a checkout decides the image."""

# What installers write about themselves and this machine; nothing reads it.
_ABOUT_INSTALLING = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
# Zip archives, and so wheels, have no older date: 1980-01-01.
_OLDEST_ZIP = 315532800
_PROGRAM = """\
#!/usr/bin/python
import sys

from dragoon.cli.main import main

sys.exit(main())
"""


def requirements(checkout: Path) -> str:
    """The dependencies as the lock file pins them, with hashes."""
    return _uv(
        *("export", "--frozen", "--no-dev", "--no-emit-project", "--no-header", "--quiet"),
        folder=checkout,
    )


def fill_dependencies(root: Path, scratch: Path, *, wanted: str, python: str) -> None:
    """Install the dependencies below a folder, for that version of Python."""
    listed = scratch / "requirements.txt"
    listed.write_text(wanted, "utf-8")
    target = root / APP
    # uv's cache shares its files with environments, in which others may change them: as a machine
    # does that adds its own authority to certifi's. Hashes are checked only when it downloads.
    for more in ((), ("--no-cache",)):
        shutil.rmtree(target, ignore_errors=True)
        _uv(
            *("pip", "install", "--quiet", "--target", str(target), "--link-mode", "copy", *more),
            *("--python-version", python),
            *("--python-platform", f"{platform.machine()}-manylinux_2_28"),
            *("--require-hashes", "--only-binary", ":all:", "--no-deps", "-r", str(listed)),
            folder=scratch,
        )
        if not (changed := changed_files(target)):
            break
    else:
        raise ClusterError(f"not as their wheels say: {', '.join(changed)}")
    # Commands of the dependencies, which start with the path of this machine's Python.
    shutil.rmtree(target / "bin", ignore_errors=True)
    _forget_installer(target)


def changed_files(target: Path) -> list[str]:
    """The files of installed wheels that are not as their wheel's RECORD says (PEP 376, 427)."""
    found = []
    for record in sorted(target.glob("*.dist-info/RECORD")):
        for name, digest, _ in csv.reader(record.read_text("utf-8").splitlines()):
            method, _, expected = digest.partition("=")
            if method and _digest(target / name, method) != expected:
                found.append(name)
    return found


def _digest(path: Path, method: str) -> str:
    """As RECORD has it; empty where there is no file."""
    if not path.is_file():
        return ""
    made = hashlib.new(method, path.read_bytes()).digest()
    return base64.urlsafe_b64encode(made).decode().rstrip("=")


def leave_out(root: Path, patterns: Sequence[str]) -> None:
    """Remove what the image does not need. Raises ClusterError for a pattern that finds nothing."""
    for pattern in patterns:
        found = list((root / APP).glob(pattern))
        if not found:
            raise ClusterError(f"hack/imagebuild/unused.txt: {pattern} finds nothing")
        for path in found:
            path.unlink()


def snapshot(checkout: Path, folder: Path) -> Path:
    """Copy what the image is made of, so that nobody edits it meanwhile; return the folder."""
    folder.mkdir()
    for name in SOURCES:
        source = checkout / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


def fill_project(root: Path, scratch: Path, sources: Path, epoch: int) -> None:
    """Build the wheel from the sources, and unpack it."""
    wheels = scratch / "wheels"
    _uv("build", "--quiet", "--wheel", "--out-dir", str(wheels), folder=sources, epoch=epoch)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(root / APP)
    _forget_installer(root / APP)
    program = root / "usr/bin/dragoon"
    program.parent.mkdir(parents=True)
    program.write_text(_PROGRAM, "utf-8")
    program.chmod(0o755)


def _forget_installer(target: Path) -> None:
    for folder in target.glob("*.dist-info"):
        for name in _ABOUT_INSTALLING:
            (folder / name).unlink(missing_ok=True)
    (target / ".lock").unlink(missing_ok=True)


def _uv(*arguments: str, folder: Path, epoch: int = 0) -> str:
    program = shutil.which("uv")
    if program is None:
        raise ClusterError("uv is not installed; hack/env installs it")
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(max(epoch, _OLDEST_ZIP))},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ClusterError(f"`uv {arguments[0]}` failed: {done.stderr.strip()}")
    return done.stdout
