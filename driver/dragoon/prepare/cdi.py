"""CDI specs: the structure, and the one spec that each claim gets.

Source: Container Device Interface 1.1.0, the schema of the spec and its released versions. Field
names are CDI's own. A container runtime refuses unknown fields, so decoding does too.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import CdiError


class _Part(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    pass


class DeviceNode(_Part, frozen=True):
    """A device file. host_path is where it is on the host, if elsewhere than `path`."""

    path: str
    host_path: str = ""
    type: str = ""
    major: int | None = None
    minor: int | None = None
    file_mode: int | None = None
    permissions: str = ""
    uid: int | None = None
    gid: int | None = None


class Mount(_Part, frozen=True):
    """A bind mount."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""


class Hook(_Part, frozen=True):
    """A program that the runtime starts on the host, as root."""

    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class IntelRdt(_Part, frozen=True, rename=None):
    """Cache and bandwidth allocation; read for completeness, never written."""

    clos_id: str = msgspec.field(default="", name="closID")
    l3_cache_schema: str = msgspec.field(default="", name="l3CacheSchema")
    mem_bw_schema: str = msgspec.field(default="", name="memBwSchema")
    enable_cmt: bool = msgspec.field(default=False, name="enableCMT")
    enable_mbm: bool = msgspec.field(default=False, name="enableMBM")
    schemata: tuple[str, ...] = ()
    enable_monitoring: bool = msgspec.field(default=False, name="enableMonitoring")


class NetDevice(_Part, frozen=True):
    """A network interface to move into the container; read for completeness, never written."""

    host_interface_name: str
    name: str


class Edits(_Part, frozen=True):
    """What a container gets: of one device, or of every device of the spec."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    net_devices: tuple[NetDevice, ...] = ()
    hooks: tuple[Hook, ...] = ()
    mounts: tuple[Mount, ...] = ()
    intel_rdt: IntelRdt | None = None
    additional_gids: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return self != Edits()


class Device(_Part, frozen=True):
    """A device that can be asked for by `<kind>=<name>`."""

    name: str
    container_edits: Edits
    annotations: dict[str, str] = {}


class Spec(_Part, frozen=True):
    """One file of the CDI folder."""

    cdi_version: str
    kind: str
    devices: tuple[Device, ...]
    container_edits: Edits = Edits()
    annotations: dict[str, str] = {}


VOID: Final = "NVIDIA_VISIBLE_DEVICES=void"
"""Tells NVIDIA's older runtime hook, which reads the environment, to add no device by itself."""


VARIABLE_PREFIX: Final = "DRAGOON_"
"""Begins the variables by which containers see which devices they have."""


def encode(spec: Spec) -> bytes:
    """The bytes of the file; the same spec gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n"


def decode(data: bytes) -> Spec:
    """Reads a JSON spec. Raises CdiError when it is none, with the field that is wrong."""
    try:
        return msgspec.json.decode(data, type=Spec)
    except UNDECODABLE as error:
        raise CdiError(f"not a CDI spec: {error}") from error


def device_name(uid: str, request: str, device: str, share_id: str | None = None) -> str:
    """The CDI name of one allocated device, unique in the cluster.

    `request` may be `name/subrequest`; the slash is not allowed in a CDI name and becomes a dot,
    which no request name holds.
    """
    parts = [uid, request.replace("/", "."), device]
    return "_".join(parts if share_id is None else [*parts, share_id])


def qualified(kind: str, name: str) -> str:
    """The id by which the kubelet asks the runtime for a device."""
    return f"{kind}={name}"


def device_variable(device: str, uuid: str) -> str:
    """One variable for each device, so that those of several claims stand side by side.

    `gpu-0000-65-00-0` gives `DRAGOON_GPU_0000_65_00_0=<uuid>`.
    """
    return f"{VARIABLE_PREFIX}{device.upper().replace('-', '_')}={uuid}"


def devices_given(spec: Spec) -> tuple[tuple[str, str], ...]:
    """What a spec of ours hands out: names out of `device_name`, UUIDs of `device_variable`."""
    return tuple(
        ("".join(device.name.split("_")[2:3]), variable.partition("=")[2])
        for device in spec.devices
        for variable in device.container_edits.env
        if variable.startswith(VARIABLE_PREFIX)
    )


def claim_spec(kind: str, devices: Sequence[Device], common: Edits) -> Spec:
    """The spec of one claim: its devices, and what every container with one of them needs."""
    from_common = tuple(entry for entry in common.env if entry != VOID)
    spec = Spec(
        cdi_version="",
        kind=kind,
        devices=tuple(devices),
        container_edits=msgspec.structs.replace(common, env=(VOID, *from_common)),
    )
    return msgspec.structs.replace(spec, cdi_version=lowest_version(spec))


def lowest_version(spec: Spec) -> str:
    """The lowest version that knows everything in the spec: older runtimes refuse newer ones.

    Never below 0.5.0, the first that allows a device name to begin with a digit, as a claim UID
    may. Source: the release table of the CDI specification.
    """
    edits = (spec.container_edits, *(device.container_edits for device in spec.devices))
    if any(one.net_devices for one in edits):
        return "1.1.0"
    if any(one.additional_gids or one.intel_rdt for one in edits):
        return "0.7.0"
    annotated = bool(spec.annotations) or any(device.annotations for device in spec.devices)
    if annotated or "." in spec.kind.partition("/")[2]:
        return "0.6.0"
    return "0.5.0"
