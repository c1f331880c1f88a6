"""Finding what a container runtime would refuse in a CDI spec, before the kubelet is answered.

A pod shows every problem as "unresolvable CDI devices"; the reason stands only in the runtime's
log. So a spec of ours is checked here, more strictly than the runtime
does: a hook must have an environment of its own, since without one it runs as host root with the
container's, `LD_PRELOAD` included.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from dragoon.errors import CdiError
from dragoon.prepare.cdi import DeviceNode, Edits, Hook, Mount, Spec

VERSIONS: Final = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
_VENDOR = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_CLASS = _VENDOR
_DEVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[^\0\r\n]*")
_PERMISSIONS = re.compile(r"[rwm]*")
_NODE_TYPES = frozenset({"", "b", "c", "u", "p"})
_HOOKS = frozenset(
    {"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"}
)


def check(spec: Spec) -> None:
    """Raises CdiError with everything that is wrong with the spec."""
    found = (*problems(spec), *_unsafe_hooks(spec))
    if found:
        raise CdiError(
            f"the container runtime would refuse the CDI spec: {'; '.join(found)}",
            hint="report this with the claim and the output of `dragoon devices`",
        )


def problems(spec: Spec) -> Iterator[str]:
    """What a runtime refuses in a spec: each field, what was found and what is allowed."""
    if spec.cdi_version not in VERSIONS:
        yield f"cdiVersion: found {spec.cdi_version!r}, allowed are {', '.join(VERSIONS)}"
    vendor, _, kind_class = spec.kind.partition("/")
    if not _VENDOR.fullmatch(vendor) or not _CLASS.fullmatch(kind_class):
        yield f"kind: found {spec.kind!r}, allowed is <vendor>/<class>"
    if not spec.devices:
        yield "devices: found none, at least one is needed"
    for name, times in Counter(device.name for device in spec.devices).items():
        if times > 1:
            yield f"devices: {name!r} stands there {times} times"
    for device in spec.devices:
        if not _DEVICE.fullmatch(device.name):
            yield f"device name: found {device.name!r}, allowed are letters, digits and inner _.:-"
        if not device.container_edits:
            yield f"device {device.name}: containerEdits are empty"
        yield from _edits(device.container_edits, f"device {device.name}")
    yield from _edits(spec.container_edits, "containerEdits")


def _unsafe_hooks(spec: Spec) -> Iterator[str]:
    for edits in (spec.container_edits, *(device.container_edits for device in spec.devices)):
        for hook in edits.hooks:
            if not hook.env:
                yield f"hook {hook.path} has no env of its own and would run with the container's"


def _edits(edits: Edits, where: str) -> Iterator[str]:
    yield from _environment(edits.env, where)
    for node in edits.device_nodes:
        yield from _node(node, where)
    for mount in edits.mounts:
        yield from _mount(mount, where)
    for hook in edits.hooks:
        yield from _hook(hook, where)


def _environment(env: tuple[str, ...], where: str) -> Iterator[str]:
    for entry in env:
        if not _VARIABLE.fullmatch(entry):
            yield f"{where}: env: found {entry!r}, allowed is NAME=value on one line"


def _node(node: DeviceNode, where: str) -> Iterator[str]:
    for field, path in (("path", node.path), ("hostPath", node.host_path)):
        if not _absolute(path) and (path or field == "path"):
            yield f"{where}: deviceNodes: {field}: found {path!r}, allowed is an absolute path"
    if node.type not in _NODE_TYPES:
        yield f"{where}: deviceNodes: type: found {node.type!r}, allowed are b, c, u, p"
    if not _PERMISSIONS.fullmatch(node.permissions):
        yield f"{where}: deviceNodes: permissions: found {node.permissions!r}, allowed are r, w, m"


def _mount(mount: Mount, where: str) -> Iterator[str]:
    for field, path in (("hostPath", mount.host_path), ("containerPath", mount.container_path)):
        if not _absolute(path):
            yield f"{where}: mounts: {field}: found {path!r}, allowed is an absolute path"


def _hook(hook: Hook, where: str) -> Iterator[str]:
    if hook.hook_name not in _HOOKS:
        yield f"{where}: hooks: hookName: found {hook.hook_name!r}, allowed are {sorted(_HOOKS)}"
    if not _absolute(hook.path):
        yield f"{where}: hooks: path: found {hook.path!r}, allowed is an absolute path"
    yield from _environment(hook.env, f"{where}: hooks")


def _absolute(path: str) -> bool:
    return path.startswith("/") and "\0" not in path and ".." not in path.split("/")
