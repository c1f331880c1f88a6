"""Where prepare keeps what: the only place where a name from outside becomes a path."""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from dragoon.errors import InvalidInputError

_UID = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z-]{0,62}[0-9A-Za-z])?")
_LABEL = re.compile(r"[0-9a-z](?:[0-9a-z-]{0,61}[0-9a-z])?")

TEMPORARY = ".tmp"
SET_ASIDE = ".broken"
PRELOAD = ".preload"
_WHOLE, _RECORD = ".json", ".cards"


@lru_cache(maxsize=1024)  # one prepare asks for the same one eight times
def check_uid(uid: str) -> str:
    """Returns a claim's UID that is safe in a file name, or raises InvalidInputError."""
    if _UID.fullmatch(uid) is None:
        raise InvalidInputError(
            f"claim UID: found {uid!r}, allowed are 1 to 64 letters, digits and inner dashes"
        )
    return uid


def check_device(device: str) -> str:
    """Returns a device name that is a DNS label, or raises InvalidInputError."""
    if _LABEL.fullmatch(device) is None:
        raise InvalidInputError(
            f"device name: found {device!r}, allowed is a DNS label of 1 to 63 characters"
        )
    return device


def check_container(name: str) -> str:
    """Returns the name of a container that is a DNS label, or raises InvalidInputError."""
    if _LABEL.fullmatch(name) is None:
        raise InvalidInputError(
            f"container name: found {name!r}, allowed is a DNS label of 1 to 63 characters"
        )
    return name


@lru_cache(maxsize=1024)
def _inside(folder: Path, name: str) -> Path:
    """A path in a folder.

    Kept, for the same few are wanted again and again, and pathlib is slow.
    """
    return folder / name


@lru_cache(maxsize=1024)
def temporary(path: Path) -> Path:
    """The name under which a file is written before it is renamed to `path`.

    Container runtimes read `*.json` and `*.yaml` of the CDI folder: this ends in neither.
    """
    return path.with_name(f".{path.name}{TEMPORARY}")


def is_temporary(path: Path) -> bool:
    """Whether a file of ours was never finished."""
    return path.name.startswith(".") and path.name.endswith(TEMPORARY)


def _unit(kind: str) -> str:
    return f"kubepods-{kind}" if kind else "kubepods"


def _slices(kind: str) -> str:
    return f"{_unit(kind)}.slice" if kind else ""


@dataclass(frozen=True)
class Paths:
    """The files of one plugin on one node; several instances of it share them."""

    driver: str
    state_folder: Path
    cdi_folder: Path
    cgroup_root: Path = Path("/sys/fs/cgroup")

    @cached_property
    def lock(self) -> Path:
        return self.state_folder / "effects.lock"

    @cached_property
    def journal_folder(self) -> Path:
        return self.state_folder / "journal"

    @cached_property
    def marker_folder(self) -> Path:
        return self.state_folder / "markers"

    @cached_property
    def region_folder(self) -> Path:
        return self.state_folder / "regions"

    def journal(self, uid: str) -> Path:
        return _inside(self.journal_folder, f"{check_uid(uid)}.json")

    def spec(self, uid: str) -> Path:
        return _inside(self.cdi_folder, f"{self._spec_prefix}{check_uid(uid)}.json")

    def card_record(self, uid: str) -> Path:
        """Beside the spec, so that it goes with the boot; runtimes read other endings only."""
        return self.spec(uid).with_suffix(_RECORD)

    def marker(self, uid: str, device: str) -> Path:
        return _inside(self.marker_folder, f"{check_uid(uid)}_{check_device(device)}.json")

    def region(self, pod_uid: str, container: str) -> Path:
        """The folder that one container may write, in which its limits and its usage stand."""
        return self.region_folder / f"{check_uid(pod_uid)}_{check_container(container)}"

    def preload(self, pod_uid: str, container: str) -> Path:
        """The file that one container gets as /etc/ld.so.preload; it cannot write this one."""
        folder = self.region(pod_uid, container)
        return folder.with_name(folder.name + PRELOAD)

    def region_of(self, path: Path) -> str:
        """The region, `<pod UID>_<container>`, to which something in its folder belongs."""
        return path.name.removeprefix(".").removesuffix(TEMPORARY).removesuffix(PRELOAD)

    def pod_cgroups(self, pod_uid: str) -> tuple[Path, ...]:
        """Where the kubelet may have put the cgroup of a pod: by driver and quality of service.

        Source: kubelet's cgroup manager; the systemd driver writes dashes of the UID as "_".
        """
        uid = check_uid(pod_uid)
        escaped = uid.replace("-", "_")
        return tuple(
            path
            for kind in ("", "burstable", "besteffort")
            for path in (
                self.cgroup_root
                / "kubepods.slice"
                / _slices(kind)
                / f"{_unit(kind)}-pod{escaped}.slice",
                self.cgroup_root / "kubepods" / kind / f"pod{uid}",
            )
        )

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """Every folder in which files of claims are."""
        return (self.journal_folder, self.cdi_folder, self.marker_folder, self.region_folder)

    def uid_of_entry(self, name: str) -> str | None:
        """The claim of a whole journal entry, by its name; None for any other name."""
        uid = name.removesuffix(".json")
        return uid if uid != name and _UID.fullmatch(uid) else None

    def uid_of(self, path: Path) -> str | None:
        """The claim of a file, whole, temporary or set aside; None if the file is not ours."""
        name = path.name.removeprefix(".").removesuffix(TEMPORARY).partition(SET_ASIDE)[0]
        prefix = self._spec_prefix if path.parent == self.cdi_folder else ""
        stem, _, ending = name.removeprefix(prefix).rpartition(".")
        allowed = (_WHOLE, _RECORD) if path.parent == self.cdi_folder else (_WHOLE,)
        if not name.startswith(prefix) or f".{ending}" not in allowed:
            return None
        uid, _, device = stem.partition("_")
        if bool(device) is not (path.parent == self.marker_folder):
            return None
        return uid if _UID.fullmatch(uid) else None

    @cached_property
    def _spec_prefix(self) -> str:
        return f"{self.driver}-claim-"
