"""Images without a registry: docker archives around Debian's static busybox."""

import hashlib
import io
import json
import platform
import subprocess
import tarfile
from pathlib import Path

from realcluster.failure import ClusterError

BUSYBOX = "dragoon.test/busybox:1"
PAUSE = "dragoon.test/pause:1"

_PROGRAM = Path("/bin/busybox")
# One date for all, so that the same busybox gives the same image.
_EPOCH = "1970-01-01T00:00:00Z"


def write_archive(path: Path, *, program: Path = _PROGRAM) -> None:
    """Write one archive with both images; they share their only layer."""
    layer = _layer(program)
    commands = {
        BUSYBOX: {"Cmd": ["/bin/sh"]},
        # The runtime ends a sandbox with SIGKILL, so a program that just sits there will do.
        PAUSE: {"Entrypoint": ["/bin/sleep", "infinity"]},
    }
    with tarfile.open(path, "w") as archive:
        _add(archive, "layer.tar", layer)
        manifest = []
        for image, command in commands.items():
            name = image.partition("/")[2].replace(":", "-") + ".json"
            _add(archive, name, _config(layer, command))
            manifest.append({"Config": name, "RepoTags": [image], "Layers": ["layer.tar"]})
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _config(layer: bytes, command: dict[str, list[str]]) -> bytes:
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()],
        "os": "linux",
        "created": _EPOCH,
        "config": {"Env": ["PATH=/bin"], "WorkingDir": "/", **command},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created": _EPOCH}],
    }
    return json.dumps(config).encode()


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
