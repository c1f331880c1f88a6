"""The settings of `dragoon plugin`: defaults, one config file, the environment, flags.

A later source wins over an earlier one. Every setting has one entry here, from which its key in
the file, its flag, its environment variable and its line in docs/configuration.md follow.
"""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from dragoon.api.forms import parse_forms, parse_profiles
from dragoon.api.names import check_driver_name
from dragoon.app import loading
from dragoon.app.process_config import Listen, ProcessConfig
from dragoon.app.setting import Absolute, AbsoluteOrNone, matching
from dragoon.errors import ConfigError
from dragoon.health.settings import HealthSettings, parse_effects, parse_xids
from dragoon.publish.choosing import Wishes
from dragoon.publish.slices import check_node_name


class PluginConfig(ProcessConfig, frozen=True, kw_only=True, rename="camel"):
    """The settings of one node process. Paths are absolute, times in seconds."""

    node_name: Annotated[
        str, Meta(description="This node's name in the API server; the plugin needs it.")
    ] = ""
    kubelet_root: Annotated[Absolute, Meta(description="The kubelet's root folder.")] = (
        "/var/lib/kubelet"
    )
    cdi_root: Annotated[
        Absolute, Meta(description="Where the container runtime looks for CDI specs.")
    ] = "/var/run/cdi"
    state_dir: Annotated[
        AbsoluteOrNone,
        Meta(
            description="Where the journal is kept; empty means `<kubeletRoot>/plugins/<driverName>`.",
        ),
    ] = ""
    sys_root: Annotated[Absolute, Meta(description="Where sysfs is mounted.")] = "/sys"
    proc_root: Annotated[Absolute, Meta(description="Where procfs is mounted.")] = "/proc"
    dev_root: Annotated[
        Absolute, Meta(description="The folder that has the node's `dev/` with the device nodes.")
    ] = "/"
    host_root: Annotated[
        Absolute,
        Meta(
            description="Where the node's root folder is mounted, in a container; driver and device files are looked for below it."
        ),
    ] = "/"
    driver_root: Annotated[
        Absolute,
        Meta(description="Where the NVIDIA driver is installed, such as /run/nvidia/driver."),
    ] = "/"
    without_driver: Annotated[
        Literal["exit", "wait"],
        Meta(
            description="What to do where no NVIDIA driver is found: end with a message, or wait for one with nothing to publish. The chart waits: a driver container may come later, or the node has no GPU."
        ),
    ] = "exit"
    nvidia_ctk: Annotated[
        str,
        Meta(
            description="NVIDIA's container toolkit program; empty means as found on PATH, if at all."
        ),
    ] = ""
    simulate: Annotated[
        str,
        Meta(
            description="Simulate this machine: a shipped profile or a topology file; the plugin refuses it beside a real driver."
        ),
    ] = ""
    simulate_state: Annotated[
        str,
        Meta(description="The file that keeps the simulated hardware's state over restarts."),
    ] = ""
    hami_library: Annotated[
        AbsoluteOrNone,
        Meta(
            description="Where the node has HAMi-core's library, for shares of the tier hami; empty means not offered.",
        ),
    ] = ""
    hami_sha256: Annotated[
        str,
        matching("^([0-9a-f]{64})?$", "64 characters of 0-9 and a-f, or nothing"),
        Meta(
            description="The library's SHA-256; with another one no share is prepared.",
        ),
    ] = ""
    cgroup_root: Annotated[
        Absolute,
        Meta(
            description="Where the node's cgroup v2 tree is mounted, for shares of the tier cgroup."
        ),
    ] = "/sys/fs/cgroup"
    allow_unenforced_shares: Annotated[
        bool,
        Meta(description="Offer shares that nothing limits (tier none) where no other tier works."),
    ] = False
    shares_time_slice: Annotated[
        Literal["Default", "Short", "Medium", "Long"],
        Meta(description="The time slice of GPUs with shares of the tier none."),
    ] = "Default"
    on_refusal: Annotated[
        Literal["Report", "Evict"],
        Meta(
            description="What becomes of pods whose claim this node will never prepare: Report tells it in the claim's status, Evict also asks the controller to evict those that have an owner. See docs/refusals.md."
        ),
    ] = "Report"
    listen: Listen = ":8080"
    forms: Annotated[
        str,
        matching(
            "^(whole|shared|mig)(,(whole|shared|mig))*$",
            "one or more of whole, shared, mig, with commas between them",
        ),
        Meta(
            description="In which forms GPUs are published; the node's label dragoon.dev/forms wins. See docs/publishing.md.",
        ),
    ] = "whole"
    mig_profiles: Annotated[
        str,
        matching("^[^ ]*$", "names with commas between them and no blanks, or nothing"),
        Meta(
            description="MIG profiles to publish beside the main ones, such as `1g.10gb+me,1g.20gb`, or `all`.",
        ),
    ] = ""
    inventory_seconds: Annotated[
        float, Meta(ge=1, le=3600, description="How often the hardware is looked at, in seconds.")
    ] = 60.0
    taint_effects: Annotated[
        str,
        matching("^[^ ]*$", "KIND=EFFECT pairs with commas between them and no blanks, or nothing"),
        Meta(
            description="What becomes of GPUs that are not well, such as `xid=NoExecute,fabric=NoSchedule`. See docs/health.md.",
        ),
    ] = ""
    ignored_xids: Annotated[
        str,
        matching("^[0-9,]*$", "numbers of XIDs with commas between them, or nothing"),
        Meta(
            description="XIDs that say nothing about the GPU, beside those of applications, such as `46,119`.",
        ),
    ] = ""
    unknown_xids: Annotated[
        Literal["taint", "report"],
        Meta(description="What an XID leads to that this version does not know."),
    ] = "taint"
    pod_namespace: Annotated[str, Meta(description="This pod's namespace (downward API).")] = ""
    pod_uid: Annotated[
        str,
        matching("^[0-9A-Za-z-]{0,63}$", "at most 63 letters, digits and -"),
        Meta(
            description="This pod's UID (downward API); stands in socket names, so that two instances can hand over.",
        ),
    ] = ""

    @property
    def state_folder(self) -> Path:
        """Where the journal is kept."""
        return Path(self.state_dir or f"{self.kubelet_root}/plugins/{self.driver_name}")

    @property
    def health(self) -> HealthSettings:
        """What errors of GPUs lead to. Raises ConfigError."""
        return HealthSettings(
            parse_effects(self.taint_effects, "taintEffects"),
            parse_xids(self.ignored_xids, "ignoredXids"),
            trust_unknown=self.unknown_xids == "report",
        )

    @property
    def wishes(self) -> Wishes:
        """What is to be published of GPUs, where the node's label does not say."""
        return Wishes(parse_forms(self.forms, "forms"), parse_profiles(self.mig_profiles))


SETTINGS: Final = loading.table_of(PluginConfig)


def load(
    flags: Mapping[str, Any], environment: Mapping[str, str], *, file: str | None = None
) -> PluginConfig:
    """The settings of the plugin from all sources; see `loading.load`."""
    return loading.load(PluginConfig, SETTINGS, flags, environment, file=file)


def check_plugin(config: PluginConfig) -> PluginConfig:
    """Checks what the node process needs beyond types. Raises ConfigError."""
    check_driver_name(config.driver_name)
    if not config.node_name:
        raise ConfigError(
            "nodeName: found nothing, the plugin needs the name of its Node",
            hint="set NODE_NAME by the downward API (spec.nodeName) or give --node-name",
        )
    check_node_name(config.node_name)
    if bool(config.hami_library) is not bool(config.hami_sha256):
        lacking = "hamiSha256" if config.hami_library else "hamiLibrary"
        raise ConfigError(
            f"{lacking}: found nothing, but the other of hamiLibrary and hamiSha256 is set",
            hint="set both: the checksum pins what is loaded into every process of a share",
        )
    parse_listen(config.listen)
    _ = config.health
    return config


def parse_listen(text: str) -> tuple[str | None, int]:
    """`address:port`, `[v6]:port` or `:port` (all addresses, None). Raises ConfigError."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else 65536
    if not colon or number > 65535 or not _is_address(host):
        raise ConfigError(
            f"listen: found {text!r}, allowed is address:port or :port with a port of 0 to 65535"
        )
    return host or None, number


def reference() -> str:
    """docs/configuration.md, made from the table."""
    lines = [
        "# Configuration",
        "",
        "`dragoon plugin` takes its settings from one YAML file (`--config FILE` or",
        f"`{loading.CONFIG_VARIABLE}`), environment variables and flags. A flag wins over a variable, a",
        "variable over the file, the file over the default. An unknown field, a wrong type or a",
        "value that is not allowed stops the start with a message and exit code 2. An empty",
        "variable counts as not set. Text has no line break and no other control character.",
        "",
        *loading.table_lines(SETTINGS.values()),
    ]
    lines += [
        "",
        "Example:",
        "",
        "```yaml",
        "driverName: gpu.dragoon.dev",
        "listen: 127.0.0.1:8080",
        "inventorySeconds: 30",
        "logLevel: debug",
        "```",
    ]
    return "\n".join(lines) + "\n"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host or "::")
    except ValueError:
        return False
    return True
