"""The CDI specs of this node, and what a container would get of them, for a command."""

import enum
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dragoon.api.claims import ClaimRef
from dragoon.api.decoding import NOT_YAML
from dragoon.app import node_claims
from dragoon.app.config import PluginConfig
from dragoon.errors import CdiError, InvalidInputError, StateError
from dragoon.prepare import cdi, cdi_check, oci
from dragoon.prepare.injection import edits_for
from dragoon.prepare.journal import Entry
from dragoon.prepare.oci import HostFile
from dragoon.prepare.steps import CdiFile

_SUFFIXES = frozenset({".json", ".yaml"})
_TYPES = {stat.S_IFBLK: "b", stat.S_IFCHR: "c", stat.S_IFIFO: "p"}


class FileState(enum.StrEnum):
    """What has become of the file that prepare wrote."""

    WHOLE = "as written"
    CHANGED = "changed"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Written:
    """The spec of a claim: as the journal has it, and what has become of its file."""

    claim: ClaimRef
    file: Path
    spec: cdi.Spec
    state: FileState

    @property
    def ids(self) -> tuple[str, ...]:
        """What the kubelet asks the container runtime for."""
        return tuple(cdi.qualified(self.spec.kind, one.name) for one in self.spec.devices)


@dataclass(frozen=True, slots=True)
class Specs:
    """The specs of claims, and what of the journal cannot be told."""

    written: tuple[Written, ...]
    problems: tuple[str, ...] = ()


def specs(config: PluginConfig, claim: str | None) -> Specs:
    """The specs of the claims that are meant (`node_claims.chosen`). Blocks."""
    journal = node_claims.contents(config)
    paths = node_claims.paths_of(config)
    found = tuple(
        Written(entry.claim, file, step.spec, _state(file, step.data()))
        for entry in node_claims.chosen(journal, claim)
        for step in _cdi_steps(entry)
        for file in (step.path(paths, entry.uid),)
    )
    return Specs(found, node_claims.problems(journal))


@dataclass(frozen=True, slots=True)
class Tried:
    """The config of a container after the injection, and the files that the runtime would skip."""

    config: dict[str, Any]
    skipped: tuple[str, ...] = ()


def try_injection(files: Sequence[Path], ids: Sequence[str], config: Any) -> Tried:
    """What a container runtime would make of an OCI runtime spec. Changes nothing.

    ids: what the container asks for; without any, all that the files offer. Raises CdiError as the
    runtime fails, InvalidInputError for what is no OCI runtime spec, StateError for a file that
    cannot be read.
    """
    oci.check(config)
    documents: list[bytes] = []
    skipped: list[str] = []
    offered: list[str] = []
    for file in files:
        document = read_spec(file)
        try:
            spec = cdi.decode(document)
            wrong = "; ".join(cdi_check.problems(spec))
        except CdiError as error:
            wrong = error.message
        if wrong:
            skipped.append(f"{file}: {wrong}")
            continue
        documents.append(document)
        offered += [cdi.qualified(spec.kind, one.name) for one in spec.devices]
    return Tried(oci.apply(config, edits_for(documents, ids or offered), look_at), tuple(skipped))


def spec_files(folder: Path) -> tuple[Path, ...]:
    """The files that a container runtime reads in a CDI folder. Raises StateError."""
    try:
        return tuple(sorted(one for one in folder.iterdir() if one.suffix in _SUFFIXES))
    except OSError as error:
        raise StateError(f"CDI folder {folder}: {error.strerror}") from error


def read_config(text: str) -> Any:
    """What is in a config.json. Raises InvalidInputError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"OCI runtime spec: not JSON: {error}") from error


def look_at(path: str) -> HostFile | None:
    """The device file at a path of this node (`oci.Look`)."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    kind = _TYPES.get(stat.S_IFMT(found.st_mode))
    if kind is None:
        return None
    numbers = os.major(found.st_rdev), os.minor(found.st_rdev)
    return HostFile(kind, *numbers, stat.S_IMODE(found.st_mode))


def edits_of(one: Written) -> Iterator[tuple[str, str, str]]:
    """(device, what kind of edit, what it is) for people; `every device` for the common ones."""
    yield from (("every device", *edit) for edit in _told(one.spec.container_edits))
    for device in one.spec.devices:
        name = cdi.qualified(one.spec.kind, device.name)
        yield from ((name, *edit) for edit in _told(device.container_edits))


def _told(edits: cdi.Edits) -> Iterator[tuple[str, str]]:
    yield from (("variable", one) for one in edits.env)
    yield from (("device file", _arrow(one.host_path, one.path)) for one in edits.device_nodes)
    for mount in edits.mounts:
        options = f" ({','.join(mount.options)})" if mount.options else ""
        yield "mount", f"{_arrow(mount.host_path, mount.container_path)}{options}"
    yield from (
        ("hook", f"{one.hook_name}: {' '.join((one.path, *one.args[1:]))}") for one in edits.hooks
    )


def _arrow(host: str, inside: str) -> str:
    return inside if host in {"", inside} else f"{host} -> {inside}"


def _cdi_steps(entry: Entry) -> Iterable[CdiFile]:
    return (step for step in entry.steps if isinstance(step, CdiFile))


def _state(file: Path, wanted: bytes) -> FileState:
    try:
        return FileState.WHOLE if file.read_bytes() == wanted else FileState.CHANGED
    except FileNotFoundError:
        return FileState.MISSING
    except OSError as error:
        raise StateError(f"{file}: {error.strerror}") from error


def read_spec(file: Path) -> bytes:
    """A CDI file as JSON: a spec may be YAML. Raises StateError."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise StateError(f"{file}: {error.strerror}") from error
    if file.suffix != ".yaml":
        return data
    try:
        return json.dumps(yaml.safe_load(data)).encode()
    except (TypeError, *NOT_YAML):
        return b""  # no spec: skipped like every other file that is none
