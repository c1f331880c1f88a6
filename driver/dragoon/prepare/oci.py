"""Putting what a container gets into its OCI runtime spec (config.json), as a runtime does: pure.

Sources: OCI runtime specification 1.2, config.md and config-linux.md; the behaviour of the CDI Go
library that containerd and CRI-O share (container edits: enforcement.md section 5.2): a variable of
CDI wins over the container's own of that name, a device file or mount replaces one at its path,
mounts are then ordered by depth, and hooks come after those that are there.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from dragoon.errors import CdiError, InvalidInputError
from dragoon.prepare.cdi import DeviceNode, Hook, Mount
from dragoon.prepare.injection import Injected

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
class Numbers:
    """What a device file of the host is: type `b`, `c` or `p`, and its numbers."""

    type: str
    major: int
    minor: int


Look = Callable[[str], Numbers | None]
"""What is at a path of the host; None where there is no device file."""


def apply(config: Mapping[str, Any], got: Injected, look: Look) -> dict[str, Any]:
    """The config of the container with all that it gets; `config` itself is left as it is.

    look is asked for the device files of which the CDI spec does not give type and numbers. Raises
    CdiError for one that is not there, which fails the start of the container, and
    InvalidInputError for what is no OCI runtime spec.
    """
    check(config)
    after: dict[str, Any] = copy.deepcopy(dict(config))
    _set_variables(after, got.env)
    for node in got.device_nodes:
        _add_node(after, node, look)
    if got.net_devices:
        devices = _at(after, "linux.netDevices", {})
        devices |= {one.host_interface_name: {"name": one.name} for one in got.net_devices}
    if got.mounts:
        _add_mounts(after, got.mounts)
    for hook in got.hooks:
        _at(after, f"hooks.{hook.hook_name}", []).append(_hook(hook))
    if got.intel_rdt is not None:
        _at(after, "linux", {})["intelRdt"] = msgspec.to_builtins(got.intel_rdt)
    if got.additional_gids:
        groups = _at(after, "process.user.additionalGids", [])
        groups += dict.fromkeys(one for one in got.additional_gids if one not in groups)
    return after


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


def _set_variables(config: dict[str, Any], env: tuple[str, ...]) -> None:
    if env:
        known = {entry.partition("=")[0]: entry for entry in _at(config, "process.env", [])}
        known |= {entry.partition("=")[0]: entry for entry in env}
        config["process"]["env"] = list(known.values())


def _add_node(config: dict[str, Any], node: DeviceNode, look: Look) -> None:
    numbers = _numbers(node, look)
    user = (config.get("process") or {}).get("user") or {}
    device: dict[str, Any] = {"path": node.path, "type": numbers.type}
    if numbers.type != "p":
        device |= {"major": numbers.major, "minor": numbers.minor}
    device |= {
        "fileMode": node.file_mode,
        "uid": user.get("uid") or None if node.uid is None else node.uid,
        "gid": user.get("gid") or None if node.gid is None else node.gid,
    }
    devices = _at(config, "linux.devices", [])
    devices[:] = [one for one in devices if one.get("path") != node.path]
    devices.append({name: value for name, value in device.items() if value is not None})
    if numbers.type in {"b", "c"}:
        rule = {"type": numbers.type, "major": numbers.major, "minor": numbers.minor}
        access = {"allow": True, **rule, "access": node.permissions or _ACCESS}
        rules = _at(config, "linux.resources.devices", [])
        if access not in rules:
            rules.append(access)


def _numbers(node: DeviceNode, look: Look) -> Numbers:
    """Of the spec where it gives them all, else of the host."""
    if node.type == "p":
        return Numbers("p", 0, 0)
    if node.type and node.major is not None and node.minor is not None:
        return Numbers(node.type, node.major, node.minor)
    where = node.host_path or node.path
    found = look(where)
    if found is None:
        raise CdiError(
            f"device file {where}: there is none on this node",
            hint="the container would not start; look whether the driver is loaded",
        )
    if node.type not in {"", found.type}:
        raise CdiError(f"device file {where}: found type {found.type}, the spec says {node.type}")
    return Numbers(
        found.type,
        found.major if node.major is None else node.major,
        found.minor if node.minor is None else node.minor,
    )


def _add_mounts(config: dict[str, Any], mounts: tuple[Mount, ...]) -> None:
    there = _at(config, "mounts", [])
    replaced = {one.container_path for one in mounts}
    kept = [one for one in there if one.get("destination") not in replaced]
    there[:] = sorted([*kept, *map(_mount, mounts)], key=_depth)


def _mount(mount: Mount) -> dict[str, Any]:
    found: dict[str, Any] = {"destination": mount.container_path, "source": mount.host_path}
    if mount.type:
        found["type"] = mount.type
    if mount.options:
        found["options"] = list(mount.options)
    return found


def _depth(mount: Mapping[str, Any]) -> int:
    return len(PurePosixPath(str(mount.get("destination", "/"))).parts)


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
