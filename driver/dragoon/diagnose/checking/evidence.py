"""What the checks look at: parts that were gathered, each of which may be missing with a reason."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dragoon.api.names import DRIVER_NAME
from dragoon.diagnose.codes import Check
from dragoon.diagnose.runtime_config import RuntimeCdi
from dragoon.diagnose.snapshot import ClusterSnapshot, NotReadError
from dragoon.gpu.model import Inventory
from dragoon.kube.port import Resource
from dragoon.prepare.journal import Contents

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unread:
    """A part that was not gathered, and why."""

    why: str


def known(part: "T | Unread") -> T:
    """The part. Raises NotReadError."""
    if isinstance(part, Unread):
        raise NotReadError(part.why)
    return part


@dataclass(frozen=True, slots=True)
class DriverFiles:
    """What containers need of the driver. libraries: whether libcuda of that version is there."""

    root: Path
    version: str
    libraries: bool
    missing_nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CdiFolder:
    """The folder for CDI specs. bad: files that a runtime cannot read, with the reason.

    ours: specs of ours, by the UID of their claim.
    """

    path: Path
    bad: Mapping[str, str]
    ours: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class KubeletFolders:
    """The kubelet's root folder, and which of the folders that it makes are not there."""

    root: Path
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginSocket:
    """A registration socket of our driver.

    problem: why nobody serves behind it, empty if they do.
    """

    path: Path
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SpecFile:
    """The CDI spec of a prepared claim. state: `as written`, `changed` or `missing`."""

    claim: str
    path: Path
    state: str


@dataclass(frozen=True, slots=True)
class Partition:
    """A MIG instance that is on a card. claim: who has it, empty for nobody of this node."""

    gpu: str
    device: str
    uuid: str
    claim: str = ""


@dataclass(frozen=True, slots=True)
class MissingRight:
    """Something that a process of ours may not do, and what it needs it for.

    who: a ServiceAccount, `namespace/name`. right: as `kubectl auth can-i` takes it.
    """

    who: str
    right: str
    why: str


@dataclass(frozen=True, slots=True)
class Admission:
    """What the server does to new objects: the gate of gang pods, the finalizer of our claims."""

    gate: bool
    finalizer: bool


_NOBODY_LOOKED = Unread("nobody looked")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything about one node, one cluster, or both.

    driver_problem: why NVML cannot be opened, empty if it can. readiness: what the plugin that
    runs here says is missing. served: of each resource, why it is not served, empty if it is.
    kept: which features of slices (`publish.probing.Feature`) the server keeps. denied: what
    whoever asks may not do.
    """

    driver_name: str = DRIVER_NAME
    driver_problem: str | Unread = _NOBODY_LOOKED
    inventory: Inventory | Unread = _NOBODY_LOOKED
    driver_files: DriverFiles | Unread = _NOBODY_LOOKED
    runtime: RuntimeCdi | Unread = _NOBODY_LOOKED
    cdi: CdiFolder | Unread = _NOBODY_LOOKED
    kubelet: KubeletFolders | Unread = _NOBODY_LOOKED
    sockets: tuple[PluginSocket, ...] | Unread = _NOBODY_LOOKED
    readiness: tuple[str, ...] | Unread = _NOBODY_LOOKED
    boot_id: str | Unread = _NOBODY_LOOKED
    journal: Contents | Unread = _NOBODY_LOOKED
    specs: tuple[SpecFile, ...] | Unread = _NOBODY_LOOKED
    partitions: tuple[Partition, ...] | Unread = _NOBODY_LOOKED
    version: str | Unread = _NOBODY_LOOKED
    cluster: ClusterSnapshot | Unread = _NOBODY_LOOKED
    served: Mapping[Resource, str | Unread] | Unread = _NOBODY_LOOKED
    kept: Mapping[str, bool] | Unread = _NOBODY_LOOKED
    rights: tuple[MissingRight, ...] | Unread = _NOBODY_LOOKED
    admission: Admission | Unread = _NOBODY_LOOKED
    denied: tuple[str, ...] | Unread = _NOBODY_LOOKED


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with one thing. after: the command to type next."""

    about: str
    found: str
    after: str = ""


Look = Callable[[Evidence], Iterable[Problem]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A check and the function that looks. before: also asked before anything is installed."""

    check: Check
    look: Look
    before: bool = False
