"""The base of the image: Python and what its wheels need, from this machine's Debian sources.

apt works out the packages as for an empty machine and fetches them, checked as always; they are
only unpacked. No maintainer script runs, so nothing but their files is in the image.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import unquote

from realcluster.failure import ClusterError

WANTED = ("base-files", "python3-minimal", "libpython3-stdlib", "libssl3", "libstdc++6")

# Needed by maintainer scripts only, which do not run here.
_ONLY_FOR_SCRIPTS = frozenset(
    ("debconf", "dpkg", "libacl1", "libmd0", "libpcre2-8-0", "libselinux1", "mawk", "tar")
)
_LEFT_OUT = (
    *("./usr/share/man", "./usr/share/locale", "./usr/share/info", "./usr/share/lintian"),
    *("./usr/share/bug", "./usr/share/python3", "./usr/share/menu", "./usr/share/gdb"),
    # Only iconv reads them; Python has codecs of its own.
    "./usr/lib/*/gconv",
    *("./usr/lib/python3*/test", "./usr/lib/python3*/idlelib", "./usr/lib/python3*/lib2to3"),
    *("./usr/lib/python3*/pydoc_data", "./usr/lib/python3*/ensurepip"),
    *("./usr/lib/python3*/tkinter", "./usr/lib/python3*/turtle*"),
)
_ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\n"
    "nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n",
    "etc/group": "root:x:0:\nnonroot:x:65532:\n",
}
_PACKAGE = re.compile(r"(?P<name>[a-z0-9][a-z0-9.+-]*)_(?P<version>[^_]+)_(?P<arch>[^_]+)\.deb")


@dataclass(frozen=True)
class Base:
    """The packages of a base image, by the names of their files."""

    files: tuple[str, ...]
    python: str
    """The version of Python that they bring, such as `3.11`."""

    @property
    def key(self) -> str:
        """What decides the bytes of the layer, beside this code."""
        return json.dumps(self.files)


def resolve(scratch: Path) -> Base:
    """What apt would install now; asks for its lists first where it has none of use."""
    listed = _apt(scratch, "--print-uris", check=False)
    if listed is None:
        _run(["apt-get", "update", "--quiet"])
        listed = _apt(scratch, "--print-uris")
    assert listed is not None
    # One a line: 'address' file size checksum. The epoch of a version is escaped in the file.
    names = [line.split()[1] for line in listed.splitlines() if line.startswith("'")]
    chosen = tuple(sorted(name for name in names if _package(name) not in _ONLY_FOR_SCRIPTS))
    (python,) = (
        match[1] for name in chosen if (match := re.match(r"python(3\.\d+)-minimal_", name))
    )
    return Base(chosen, python)


def fill(base: Base, root: Path, scratch: Path) -> None:
    """Fetch the packages and unpack them below a folder."""
    if _apt(scratch, "--download-only", check=False) is None:
        # Lists of yesterday name files that are gone.
        _run(["apt-get", "update", "--quiet"])
        _apt(scratch, "--download-only")
    _merged_usr(root)
    records = root / "var/lib/dpkg/status.d"
    records.mkdir(parents=True)
    for name in base.files:
        package = scratch / "archives" / name
        if not package.exists():
            raise ClusterError(f"{unquote(name)} is not what apt fetches any more: build again")
        _unpack(package, root)
        # Scanners read what is installed from here, as in other images without dpkg.
        control = subprocess.run(
            ["dpkg-deb", "--field", package], capture_output=True, text=True, check=True
        )
        (records / _package(name)).write_text(control.stdout, "utf-8")
    for path, text in _ACCOUNTS.items():
        (root / path).write_text(text, "utf-8")
    (root / "usr/bin/python").symlink_to(f"python{base.python}")
    _only_copyright(root / "usr/share/doc")


def _merged_usr(root: Path) -> None:
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)


def _unpack(package: Path, root: Path) -> None:
    content = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    excluded = [f"--exclude={pattern}" for pattern in _LEFT_OUT]
    # Owners are written into the layer, so it does not matter who unpacks.
    options = ["--keep-directory-symlink", "--no-same-owner", "--wildcards", "--anchored"]
    with content:
        _run(["tar", "-x", *options, *excluded, "-C", str(root)], stdin=content.stdout)
    if content.returncode:
        raise ClusterError(f"{package.name} cannot be read")


def _only_copyright(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.name != "copyright":
            path.unlink()


def _apt(scratch: Path, *action: str, check: bool = True) -> str | None:
    """What apt-get says to installing the packages on an empty machine; None if it cannot."""
    (scratch / "archives/partial").mkdir(parents=True, exist_ok=True)
    (scratch / "status").touch()
    options = {
        "Dir::State::status": scratch / "status",
        "Dir::Cache::archives": scratch / "archives",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "1",
    }
    flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    command = ["apt-get", "-qq", *flags, *action, "install", *WANTED]
    done = _run(command, check=check)
    return done.stdout if done.returncode == 0 else None


def _package(file: str) -> str:
    match = _PACKAGE.fullmatch(file)
    if match is None:
        raise ClusterError(f"{file!r} is not the name of a Debian package")
    return match["name"]


def _run(
    command: Sequence[str], *, check: bool = True, stdin: IO[bytes] | None = None
) -> subprocess.CompletedProcess[str]:
    if shutil.which(command[0]) is None:
        raise ClusterError(f"{command[0]} is needed: the image is built from Debian packages")
    done = subprocess.run(
        command,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
        stdin=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if check and done.returncode:
        raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done
