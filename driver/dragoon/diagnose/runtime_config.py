"""Whether a container runtime applies our CDI specs, by its configuration (case C31). Pure.

A runtime that has CDI off, or reads other folders, starts containers without a GPU and without an
error, and nothing tells the plugin. Source: containerd's and CRI-O's configuration. In containerd
the switch is `enable_cdi`, off by default in 1.7 and on since 2.0; its plugin has another name
since version 3 of the file. CRI-O has CDI always on. cri-dockerd does not pass the ids on at all.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dragoon.errors import InvalidInputError
from dragoon.prepare.cdi import VARIABLE_PREFIX

_DEFAULT_FOLDERS: Final = ("/etc/cdi", "/var/run/cdi")
_OLD_PLUGIN, _PLUGIN = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"
_FIRST_WITH_NEW_NAME: Final = 3


@dataclass(frozen=True, slots=True)
class RuntimeCdi:
    """What a runtime does with CDI. on: None where the file leaves it to the runtime's version.

    imports: other files are read too, and may say otherwise.
    """

    runtime: str
    on: bool | None
    folders: tuple[str, ...]
    problems: tuple[str, ...] = ()
    imports: bool = False

    def reads(self, folder: str) -> bool:
        """Whether specs in that folder are read."""
        return _same(folder) in map(_same, self.folders)


def read_config(text: str, folder: str) -> RuntimeCdi:
    """What the configuration says, and what is wrong with it for specs in `folder`.

    Best is what the runtime itself prints: `containerd config dump`, `crio status config`. Raises
    InvalidInputError for text that is no configuration of one of them.
    """
    if text.lstrip().startswith("{"):
        told = "cri-dockerd passes no CDI ids on to Docker, so containers get no GPU"
        return RuntimeCdi("Docker", on=False, folders=(), problems=(told,))
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"the runtime's configuration is not TOML: {error}") from error
    if "crio" in found:
        return _of_crio(found["crio"], folder)
    if "plugins" in found or "version" in found:
        return _of_containerd(found, folder)
    raise InvalidInputError(
        "the runtime's configuration: found neither [crio] nor [plugins] nor version",
        hint="give what `containerd config dump` or `crio status config` prints",
    )


def container_problem(environment: str) -> str:
    """What is wrong with a container that should have a GPU, by what `env` prints in it.

    Empty if a CDI spec of ours was applied: each sets a variable.
    """
    if any(line.startswith(VARIABLE_PREFIX) for line in environment.splitlines()):
        return ""
    return (
        f"the container has no variable {VARIABLE_PREFIX}*, so its runtime applied no CDI spec of "
        "ours, though prepare may have succeeded: look at the runtime's configuration, and whether "
        "the container names its claim"
    )


def _of_crio(found: Mapping[str, Any], folder: str) -> RuntimeCdi:
    folders = _folders(_table(found, "runtime"))
    return RuntimeCdi("CRI-O", on=True, folders=folders, problems=tuple(_unread(folders, folder)))


def _of_containerd(found: Mapping[str, Any], folder: str) -> RuntimeCdi:
    version = found.get("version", 1)
    is_new = isinstance(version, int) and version >= _FIRST_WITH_NEW_NAME
    name = _PLUGIN if is_new else _OLD_PLUGIN
    plugin = _table(_table(found, "plugins"), name)
    on = plugin.get("enable_cdi", True if is_new else None)
    folders = _folders(plugin)
    return RuntimeCdi(
        "containerd",
        on=on if isinstance(on, bool) else None,
        folders=folders,
        problems=(*_switched_off(on, name), *_unread(folders, folder), *_imported(found)),
        imports=bool(found.get("imports")),
    )


def _switched_off(on: object, plugin: str) -> Iterator[str]:
    where = f"enable_cdi = true under [plugins.'{plugin}']"
    if on is None:
        yield f"the file does not say whether CDI is on; before containerd 2.0 it is off: set {where}"
    elif on is not True:
        yield f"CDI is off, so containers get no GPU and no error: set {where}"


def _unread(folders: Sequence[str], ours: str) -> Iterator[str]:
    if _same(ours) not in map(_same, folders):
        read = ", ".join(folders) or "none"
        yield (
            f"cdi_spec_dirs: found {read}, and our specs are in {ours}: add it there, or set cdiRoot "
            "to one that is read"
        )


def _imported(found: Mapping[str, Any]) -> Iterator[str]:
    if found.get("imports"):
        yield "other files are imported: give what `containerd config dump` prints"


def _folders(found: Mapping[str, Any]) -> tuple[str, ...]:
    folders = found.get("cdi_spec_dirs")
    return tuple(map(str, folders)) if isinstance(folders, list) else _DEFAULT_FOLDERS


def _table(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = found.get(name)
    return table if isinstance(table, Mapping) else {}


def _same(folder: str) -> str:
    """/var/run is a link to /run on every node that Kubernetes runs on."""
    return folder.rstrip("/").removeprefix("/var")
