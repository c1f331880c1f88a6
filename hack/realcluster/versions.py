"""Kubernetes versions, and the Go modules in `modules/` that build them and their companions."""

import re
from dataclasses import dataclass
from pathlib import Path

from realcluster.failure import ClusterError

DEFAULT_KUBERNETES = "1.37.2"
MODULES = Path(__file__).resolve().parent / "modules"

_VERSION = re.compile(r"v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


@dataclass(frozen=True, order=True)
class Version:
    """A released Kubernetes version; pre-releases have no Go module with matching staging."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def staging(self) -> str:
        """The version of k8s.io/api and its siblings: v0.<minor>.<patch>."""
        return f"v0.{self.minor}.{self.patch}"


def parse(text: str) -> Version:
    """Read `1.37.2` or `v1.37.2`."""
    match = _VERSION.fullmatch(text)
    if not match:
        raise ClusterError(f"{text!r} is not a Kubernetes version like {DEFAULT_KUBERNETES}")
    return Version(*(int(part) for part in match.groups()))


@dataclass(frozen=True)
class Module:
    """One go.mod whose `tool` lines name the programs to build."""

    name: str
    version: str
    folder: Path
    # Program name -> what `go build` calls it, where the two differ.
    renamed: tuple[tuple[str, str], ...] = ()
    tags: str = ""
    stamps: tuple[str, ...] = ()

    @property
    def ldflags(self) -> str:
        """Strip symbols, and stamp the version: else the API server calls itself v0.0.0."""
        return " ".join(["-s -w", *(f"-X {stamp}" for stamp in self.stamps)])


def kubernetes(version: Version) -> Module:
    """The module of one Kubernetes version."""
    package = "k8s.io/component-base/version"
    return Module(
        name="kubernetes",
        version=str(version),
        folder=_folder("kubernetes", str(version)),
        stamps=(
            f"{package}.gitVersion=v{version}",
            f"{package}.gitMajor={version.major}",
            f"{package}.gitMinor={version.minor}",
        ),
    )


def etcd() -> Module:
    """The module of etcd, whose server package builds a program named `server`."""
    version = _only_version("etcd")
    return Module("etcd", version, _folder("etcd", version), renamed=(("etcd", "server"),))


def helm() -> Module:
    """The module of Helm, with which the chart is tested."""
    version = _only_version("helm")
    stamp = f"helm.sh/helm/v4/internal/version.version=v{version}"
    return Module("helm", version, _folder("helm", version), stamps=(stamp,))


def kueue() -> Module:
    """The module of Kueue, whose manifests lie in it."""
    version = _only_version("kueue")
    stamp = f"sigs.k8s.io/kueue/pkg/version.GitVersion=v{version}"
    return Module("kueue", version, _folder("kueue", version), stamps=(stamp,))


def containerd() -> Module:
    """The module of containerd, its runc shim and `ctr`."""
    version = _only_version("containerd")
    folder = _folder("containerd", version)
    # Both snapshotters want C headers, and nothing here uses them.
    return Module("containerd", version, folder, tags="no_btrfs,no_zfs")


def available(name: str = "kubernetes") -> list[str]:
    """The versions of a module that the repository has, oldest first."""
    prefix = f"{name}-"
    found = [entry.name.removeprefix(prefix) for entry in MODULES.glob(f"{prefix}*")]
    return [str(version) for version in sorted(parse(text) for text in found)]


def _only_version(name: str) -> str:
    found = available(name)
    if len(found) != 1:
        raise ClusterError(f"{MODULES} must hold exactly one {name}-* folder, has {found}")
    return found[0]


def _folder(name: str, version: str) -> Path:
    folder = MODULES / f"{name}-{version}"
    if not (folder / "go.mod").is_file():
        have = ", ".join(available(name)) or "none"
        raise ClusterError(
            f"no Go module for {name} {version} (there are: {have}); "
            f"`hack/cluster module --kubernetes {version}` writes one"
            if name == "kubernetes"
            else f"no Go module for {name} {version}"
        )
    return folder
