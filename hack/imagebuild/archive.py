"""An OCI archive: one tar with an image's layers, its configuration and an index that names it."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from imagebuild.dockerfile import Described
from imagebuild.layers import Layer

_MEDIA = "application/vnd.oci.image"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Image:
    """What was built."""

    digest: str
    """Of the manifest: what a registry would call it by."""
    layers: tuple[Layer, ...]

    @property
    def size(self) -> int:
        """Bytes of all layers, uncompressed: what the image takes on a node."""
        return sum(layer.size for layer in self.layers)


def write(
    target: Path, name: str, layers: Sequence[Layer], described: Described, epoch: int
) -> Image:
    """Write the archive; `name` is how a runtime lists it, such as `registry/dragoon:tag`."""
    created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = _encode(_configuration(layers, described, created))
    manifest = _encode(
        {
            "schemaVersion": 2,
            "mediaType": f"{_MEDIA}.manifest.v1+json",
            "config": _blob(config, f"{_MEDIA}.config.v1+json"),
            "layers": [
                {
                    "mediaType": f"{_MEDIA}.layer.v1.tar",
                    "digest": layer.digest,
                    "size": layer.size,
                }
                for layer in layers
            ],
        }
    )
    named = {
        **_blob(manifest, f"{_MEDIA}.manifest.v1+json"),
        # The first for containerd, the second for everybody else.
        "annotations": {
            "io.containerd.image.name": name,
            "org.opencontainers.image.ref.name": name.rpartition(":")[2],
        },
    }
    index = _encode({"schemaVersion": 2, "manifests": [named]})
    target.parent.mkdir(parents=True, exist_ok=True)
    written = target.with_name(f".{target.name}.new")
    with tarfile.open(written, "w", format=tarfile.GNU_FORMAT) as tar:
        _add(tar, "oci-layout", _encode({"imageLayoutVersion": "1.0.0"}), epoch)
        _add(tar, "index.json", index, epoch)
        for content in (manifest, config):
            _add(tar, _path(_digest(content)), content, epoch)
        for layer in layers:
            entry = tarfile.TarInfo(_path(layer.digest))
            entry.size, entry.mtime, entry.mode = layer.size, epoch, 0o644
            with layer.path.open("rb") as content_of_layer:
                tar.addfile(entry, content_of_layer)
    written.rename(target)
    return Image(_digest(manifest), tuple(layers))


def _configuration(layers: Sequence[Layer], described: Described, created: str) -> dict[str, Any]:
    return {
        "created": created,
        "architecture": _MACHINES[platform.machine()],
        "os": "linux",
        "config": {
            "User": described.user,
            "Env": [f"{name}={value}" for name, value in described.environment.items()],
            "Entrypoint": described.entrypoint,
            "Cmd": described.command,
            "Labels": described.labels,
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        "history": [{"created": created, "created_by": layer.name} for layer in layers],
    }


def _blob(content: bytes, media: str) -> dict[str, Any]:
    return {"mediaType": media, "digest": _digest(content), "size": len(content)}


def _encode(document: object) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _add(tar: tarfile.TarFile, name: str, content: bytes, epoch: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = len(content), epoch, 0o644
    tar.addfile(entry, io.BytesIO(content))
