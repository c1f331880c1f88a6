"""Images without a registry: a docker archive around Debian's static busybox.

One image has programs of this machine too, with glibc: libraries can be preloaded only there.
"""

import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

from realcluster.failure import ClusterError

BUSYBOX = "dragoon.test/busybox:1"
GLIBC = "dragoon.test/glibc:1"
PAUSE = "dragoon.test/pause:1"

_PROGRAM = Path("/bin/busybox")
# Of this machine, for the image with glibc; busybox stands beside them.
_DYNAMIC = ("sh", "env", "cat", "ls", "sleep")
# One date for all, so that the same busybox gives the same image.
_EPOCH = "1970-01-01T00:00:00Z"


def write_archive(path: Path, *, program: Path = _PROGRAM) -> None:
    """Write one archive with all images; they share their first layer."""
    layers = {"layer.tar": _layer(program), "glibc.tar": _glibc_layer()}
    images = {
        BUSYBOX: ({"Cmd": ["/bin/sh"]}, ["layer.tar"]),
        GLIBC: ({"Cmd": ["/bin/sh"]}, ["layer.tar", "glibc.tar"]),
        # The runtime ends a sandbox with SIGKILL, so a program that just sits there will do.
        PAUSE: ({"Entrypoint": ["/bin/sleep", "infinity"]}, ["layer.tar"]),
    }
    with tarfile.open(path, "w") as archive:
        for name, content in layers.items():
            _add(archive, name, content)
        manifest = []
        for image, (command, names) in images.items():
            config = image.partition("/")[2].replace(":", "-") + ".json"
            _add(archive, config, _config([layers[name] for name in names], command))
            manifest.append({"Config": config, "RepoTags": [image], "Layers": names})
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _config(layers: Sequence[bytes], command: dict[str, list[str]]) -> bytes:
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()],
        "os": "linux",
        "created": _EPOCH,
        "config": {"Env": ["PATH=/bin"], "WorkingDir": "/", **command},
        "rootfs": {
            "type": "layers",
            "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers],
        },
        "history": [{"created": _EPOCH} for _ in layers],
    }
    return json.dumps(config).encode()


def _glibc_layer() -> bytes:
    """Programs of this machine with the libraries and the loader that `ldd` names."""
    files: dict[str, Path] = {}
    for name in _DYNAMIC:
        found = shutil.which(name)
        if found is None:
            raise ClusterError(f"{name} is not installed: install coreutils and dash")
        files[f"bin/{name}"] = Path(found)
        listed = subprocess.run(["ldd", found], capture_output=True, text=True, check=True).stdout
        libraries = [word for word in listed.split() if word.startswith("/")]
        files |= {library.lstrip("/"): Path(library) for library in libraries}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, source in sorted(files.items()):
            _add(tar, name, source.read_bytes(), mode=0o755)
    return buffer.getvalue()


def _layer(program: Path) -> bytes:
    content = program.read_bytes()
    # The name of a loader is in the first page of every program that needs one.
    if b"/ld-linux" in content[:4096]:
        raise ClusterError(f"{program} is not static: install busybox-static")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in ("bin", "dev", "etc", "proc", "root", "sys", "tmp"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        _add(tar, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
        _add(tar, "etc/group", b"root:x:0:\n")
        _add(tar, "bin/busybox", content, mode=0o755)
        for applet in _applets(program):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return buffer.getvalue()


def _applets(program: Path) -> list[str]:
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split() if name != "busybox"]


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
