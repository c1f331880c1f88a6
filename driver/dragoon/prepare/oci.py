"""Putting what a container gets into its OCI runtime spec (config.json), as a runtime does: pure.

Sources: OCI runtime specification 1.2, config.md and config-linux.md; the behaviour of the CDI Go
library 1.1.0 that containerd and CRI-O share, with which this was compared on random specs: edits
are applied one after the other; variables follow the container's own, and the last of a name is the
one that the container sees; a device file or mount takes the place of
one at its path; mounts are then ordered by depth; hooks come after those that are there; a rule of
the device cgroup is added for every edit.
"""

import copy
import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from dragoon.errors import CdiError, InvalidInputError
from dragoon.prepare.cdi import DeviceNode, Edits, Hook, Mount

_ACCESS: Final = "rwm"
_SHAPES: Final[Mapping[str, type]] = {
    "process": dict,
    "process.env": list,
    "process.user": dict,
    "process.user.additionalGids": list,
    "mounts": list,
    "hooks": dict,
    "linux": dict,
    "linux.devices": list,
    "linux.resources": dict,
    "linux.resources.devices": list,
    "linux.netDevices": dict,
}


@dataclass(frozen=True, slots=True)
class HostFile:
    """What a device file of the host is: type `b`, `c` or `p`, numbers, permission bits."""

    type: str
    major: int
    minor: int
    mode: int


Look = Callable[[str], HostFile | None]
"""What is at a path of the host, links not followed; None where there is no device file."""


def apply(config: Mapping[str, Any], edits: Iterable[Edits], look: Look) -> dict[str, Any]:
    """The config of the container after the edits; `config` itself is left as it is.

    look tells what a CDI spec may leave out of a device file. Raises CdiError for one that would
    fail the start of the container, and InvalidInputError for what is no OCI runtime spec.
    """
    check(config)
    after: dict[str, Any] = copy.deepcopy(dict(config))
    env: dict[str, str] = {}
    for one in edits:
        env |= {entry.partition("=")[0]: entry for entry in one.env}
        _apply(after, one, look)
    if env:
        _at(after, "process.env", []).extend(env.values())
    return after


def _apply(config: dict[str, Any], edits: Edits, look: Look) -> None:
    for node in edits.device_nodes:
        _add_node(config, node, look)
    for device in edits.net_devices:
        _at(config, "linux.netDevices", {})[device.host_interface_name] = {"name": device.name}
    for mount in edits.mounts:
        _put(_at(config, "mounts", []), "destination", _mount(mount))
    if edits.mounts:
        config["mounts"].sort(key=_depth)
    for hook in edits.hooks:
        _at(config, f"hooks.{hook.hook_name}", []).append(_hook(hook))
    if edits.intel_rdt is not None:
        _at(config, "linux", {})["intelRdt"] = msgspec.to_builtins(edits.intel_rdt)
    for group in filter(None, edits.additional_gids):
        groups = _at(config, "process.user.additionalGids", [])
        if group not in groups:
            groups.append(group)


def check(config: object) -> None:
    """Raises InvalidInputError where what is written to has another shape than OCI gives it."""
    if not isinstance(config, Mapping) or "ociVersion" not in config:
        raise InvalidInputError(
            "ociVersion: found nothing, allowed is an OCI runtime spec (config.json)",
            hint="containerd keeps it below /run/containerd/io.containerd.runtime.v2.task",
        )
    for path, kind in _SHAPES.items():
        found: Any = config
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        if found is not None and not isinstance(found, kind):
            allowed = "an object" if kind is dict else "a list"
            raise InvalidInputError(f"{path}: found {found!r}, allowed is {allowed}")


def _put(found: list[dict[str, Any]], key: str, new: dict[str, Any]) -> None:
    """Takes out the first one with that key, and appends the new one."""
    for number, one in enumerate(found):
        if one.get(key) == new[key]:
            del found[number]
            break
    found.append(new)


def _add_node(config: dict[str, Any], node: DeviceNode, look: Look) -> None:
    file = _completed(node, look(node.host_path or node.path))
    user = (config.get("process") or {}).get("user") or {}
    device: dict[str, Any] = {"path": node.path, "type": file.type}
    if file.type != "p":
        device |= {"major": file.major, "minor": file.minor}
    device |= {
        "fileMode": file.mode if node.file_mode is None else node.file_mode,
        "uid": user.get("uid") or None if node.uid is None else node.uid,
        "gid": user.get("gid") or None if node.gid is None else node.gid,
    }
    kept = {name: value for name, value in device.items() if value is not None}
    _put(_at(config, "linux.devices", []), "path", kept)
    if file.type in {"b", "c"}:
        rule = {"allow": True, "type": file.type, "major": file.major, "minor": file.minor}
        access = node.permissions or _ACCESS
        _at(config, "linux.resources.devices", []).append({**rule, "access": access})


@dataclass(frozen=True, slots=True)
class _Node:
    type: str
    major: int
    minor: int
    mode: int | None


def _completed(node: DeviceNode, there: HostFile | None) -> _Node:
    """What the spec says, else the host. A major of 0 counts as not said, as the library has it."""
    where = node.host_path or node.path
    major, minor = node.major or 0, node.minor or 0
    if node.type and (major or node.type == "p"):
        return _Node(node.type, major, minor, there.mode if there else None)
    if there is None:
        raise CdiError(
            f"device file {where}: there is none on this node",
            hint="the container would not start; look whether the driver is loaded",
        )
    if node.type not in {"", there.type}:
        raise CdiError(f"device file {where}: found type {there.type}, the spec says {node.type}")
    if not major and there.type != "p":
        major, minor = there.major, there.minor
    return _Node(there.type, major, minor, there.mode)


def _mount(mount: Mount) -> dict[str, Any]:
    found: dict[str, Any] = {"destination": mount.container_path, "source": mount.host_path}
    if mount.type:
        found["type"] = mount.type
    if mount.options:
        found["options"] = list(mount.options)
    return found


def _depth(mount: Mapping[str, Any]) -> int:
    return posixpath.normpath(str(mount.get("destination", "/"))).count("/")


def _hook(hook: Hook) -> dict[str, Any]:
    found: dict[str, Any] = {"path": hook.path}
    if hook.args:
        found["args"] = list(hook.args)
    if hook.env:
        found["env"] = list(hook.env)
    if hook.timeout is not None:
        found["timeout"] = hook.timeout
    return found


def _at(config: dict[str, Any], path: str, missing: Any) -> Any:
    """What is at a path of the config; made there, with the objects around it, where it is not."""
    *around, last = path.split(".")
    for name in around:
        if config.get(name) is None:
            config[name] = {}
        config = config[name]
    if config.get(last) is None:
        config[last] = missing
    return config[last]
