"""A snapshot in a folder: what a user can send, and what explain and simulate read again.

`snapshot.json` is the header with the version of the layout; beside it one file for each kind, a
List as the API prints it. A header and lists in one YAML file are read too. Of pods and nodes only
what the answers need is kept: no environment, no commands, no images.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from dragoon import __version__
from dragoon.diagnose.documents import MAX_SNAPSHOT_BYTES, read_files
from dragoon.diagnose.manifests import Manifests, Raw, listed, mapping, text
from dragoon.diagnose.snapshot import PARTS, ClusterSnapshot
from dragoon.errors import InvalidInputError, StateError

GROUP: Final = "diagnose.dragoon.dev"
API_VERSION: Final = f"{GROUP}/v1"
KIND: Final = "Snapshot"
_HEADER_FILE: Final = "snapshot.json"


def load(path: Path) -> ClusterSnapshot:
    """Reads a saved snapshot: a folder, or one file.

    Raises InvalidInputError for a path that is not there, a document that cannot be read, no
    header or more than one, and for a header of another version.
    """
    found = Manifests.of(read_files([path], limit=MAX_SNAPSHOT_BYTES), namespace="")
    for bad in (*found.unreadable, *found.foreign):
        raise InvalidInputError(f"{bad.origin}: {bad.problem}")
    headers = found.of_kind(KIND)
    if len(headers) != 1:
        raise InvalidInputError(
            f"{path}: found {len(headers)} objects of kind {KIND}, a saved snapshot has one",
            hint="save one with: dragoon simulate --save FOLDER",
        )
    if headers[0].api_version != API_VERSION:
        raise InvalidInputError(
            f"{headers[0].origin}: a snapshot of version {headers[0].api_version}; this version "
            f"of Dragoon ({__version__}) reads {API_VERSION}",
            hint="use the version of Dragoon that saved it, or save it again",
        )
    header = headers[0].raw
    missing = tuple(text(one) for one in listed(header.get("missing")))
    objects = [item.raw for item in found.items]
    return ClusterSnapshot.of(objects, source=str(path)).replacing(
        missing=missing, version=text(header.get("kubernetes"))
    )


def save(snapshot: ClusterSnapshot, folder: Path) -> tuple[Path, ...]:
    """Writes a snapshot into a new or empty folder (mode 0700); answers the files.

    Raises InvalidInputError for a folder with something in it, StateError where it cannot be
    written.
    """
    header = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "dragoon": __version__,
        "source": snapshot.source,
        "kubernetes": snapshot.version,
        "missing": list(snapshot.missing),
    }
    contents: dict[str, Any] = {_HEADER_FILE: header}
    for field, resource in PARTS.items():
        contents[f"{resource.plural}.json"] = {
            "apiVersion": resource.api_version,
            "kind": f"{resource.kind}List",
            "items": [_reduced(resource.kind, raw) for raw in getattr(snapshot, field)],
        }
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InvalidInputError(f"{folder}: found files in it, allowed is an empty folder")
        for name, content in contents.items():
            (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise StateError(f"{folder}: cannot be written: {error.strerror}") from error
    return tuple(folder / name for name in contents)


def _reduced(kind: str, raw: Raw) -> dict[str, Any]:
    """The object with what the answers need, and nothing that could be a secret."""
    kept = dict(raw)
    metadata = mapping(raw.get("metadata"))
    kept["metadata"] = _only(metadata, _METADATA)
    reduce = _REDUCERS.get(kind)
    if reduce is not None:
        kept.update(reduce(raw))
    return kept


def _only(raw: Raw, names: Iterable[str]) -> dict[str, Any]:
    return {name: raw[name] for name in names if name in raw}


def _pod(raw: Raw) -> dict[str, Any]:
    spec, status = mapping(raw.get("spec")), mapping(raw.get("status"))
    kept = _only(spec, _POD_SPEC)
    for field in ("initContainers", "containers", "ephemeralContainers"):
        if field in spec:
            kept[field] = [
                _only(mapping(one), ("name", "resources")) for one in listed(spec[field])
            ]
    return {"spec": kept, "status": _only(status, _POD_STATUS)}


def _node(raw: Raw) -> dict[str, Any]:
    spec, status = mapping(raw.get("spec")), mapping(raw.get("status"))
    return {
        "spec": _only(spec, ("taints", "unschedulable")),
        "status": _only(status, ("allocatable", "capacity")),
    }


_METADATA: Final = (
    *("name", "namespace", "uid", "labels", "creationTimestamp", "deletionTimestamp"),
    *("generation", "resourceVersion", "ownerReferences"),
)
_POD_SPEC: Final = (
    *("nodeName", "nodeSelector", "affinity", "tolerations", "schedulerName", "schedulingGates"),
    *("resourceClaims", "priority"),
)
_POD_STATUS: Final = (
    *("phase", "conditions", "resourceClaimStatuses", "extendedResourceClaimStatus"),
    "nominatedNodeName",
)
_REDUCERS: Final[Mapping[str, Callable[[Raw], dict[str, Any]]]] = {"Pod": _pod, "Node": _node}
