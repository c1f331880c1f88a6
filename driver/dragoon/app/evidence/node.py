"""What this node shows: driver, runtime, kubelet, and what was prepared for claims.

Needs neither the API server nor a plugin that runs. Everything here blocks, but the sockets.
"""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from dragoon.app import cdi_view, hardware, mig_view, node_claims
from dragoon.app.config import PluginConfig, parse_listen
from dragoon.app.patience import DRIVER_SECONDS, in_time
from dragoon.diagnose.checking.evidence import (
    CdiFolder,
    DriverFiles,
    Evidence,
    KubeletFolders,
    Partition,
    PluginSocket,
    SpecFile,
    Unread,
)
from dragoon.diagnose.runtime_config import RuntimeCdi, read_config
from dragoon.errors import DragoonError, KubeletError, StateError
from dragoon.gpu.model import Inventory
from dragoon.kubelet.client import get_info, open_channel
from dragoon.prepare import cdi, cdi_check
from dragoon.prepare.driver_files import has_libraries, missing_nodes
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.host_root import HostRoot
from dragoon.reading import text_of

T = TypeVar("T")

RUNTIME_CONFIGS: Final = (
    "/etc/containerd/config.toml",
    "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
    "/etc/crio/crio.conf.d/10-crio.conf",
    "/etc/crio/crio.conf",
)
"""Where runtimes have their configuration; the first that is there is read."""
_FOLDERS: Final = ("", "plugins", "plugins_registry")
_ANSWER_SECONDS: Final = 10.0
"""As long as the chart's probes wait: a plugin that is slow on a busy node is not to be told dead."""
_DIRECT: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""The plugin is on this machine: a proxy of the environment would look for it on its own."""


def is_node(config: PluginConfig) -> bool:
    """Whether this machine looks like a node: a kubelet, a driver, or a simulation."""
    kernel = Path(config.proc_root) / "driver/nvidia/version"
    simulated = bool(config.simulate or config.simulate_state)
    return simulated or Path(config.kubelet_root).is_dir() or kernel.exists()


async def gather(
    evidence: Evidence,
    config: PluginConfig,
    runtime: Path | None,
    *,
    patience: float = DRIVER_SECONDS,
) -> Evidence:
    """The evidence with the parts of this node.

    runtime: what `containerd config dump` printed. patience: seconds for the driver to answer.
    """
    problem, inventory = await _look(config, patience)
    found = await asyncio.to_thread(_of_files, evidence, config, runtime)
    return replace(
        found,
        driver_problem=problem,
        inventory=inventory,
        driver_files=_read(lambda: driver_files(config, inventory)),
        partitions=inventory
        if isinstance(inventory, Unread)
        else await _ask(lambda: partitions(config), patience),
        sockets=await sockets(config),
    )


def _of_files(evidence: Evidence, config: PluginConfig, runtime: Path | None) -> Evidence:
    return replace(
        evidence,
        driver_name=config.driver_name,
        runtime=_read(lambda: runtime_config(config, runtime)),
        cdi=_read(lambda: cdi_folder(config)),
        kubelet=_read(lambda: kubelet_folders(config)),
        readiness=_read(lambda: readiness(config)),
        boot_id=_read(lambda: boot_id(config)),
        journal=_read(lambda: node_claims.contents(config)),
        specs=_read(lambda: spec_files(config)),
    )


async def _look(config: PluginConfig, patience: float) -> tuple[str, Inventory | Unread]:
    """What is wrong with the driver, and what it says."""
    try:
        return "", await in_time(lambda: hardware.look_once(config), patience)
    except DragoonError as error:
        return error.message, Unread(f"the driver cannot be asked: {error.message}")


async def _ask(look: Callable[[], T | Unread], patience: float) -> T | Unread:
    try:
        return await in_time(look, patience)
    except DragoonError as error:
        return Unread(error.message)


def driver_files(config: PluginConfig, inventory: Inventory | Unread) -> DriverFiles | Unread:
    """What containers need of the driver that was found."""
    if isinstance(inventory, Unread):
        return inventory
    if inventory.simulated:
        return Unread("simulated GPUs need no files of a driver")
    return files_below(config, inventory.driver_version or "")


def files_below(config: PluginConfig, version: str) -> DriverFiles:
    """The same for a driver of that version."""
    host = HostRoot(Path(config.host_root))
    root = host.here(Path(config.driver_root))
    return DriverFiles(
        root,
        version,
        has_libraries(root, version),
        missing_nodes(host.here(Path(config.dev_root))),
    )


def runtime_config(config: PluginConfig, file: Path | None) -> RuntimeCdi | Unread:
    """What the container runtime's configuration says. Raises DragoonError."""
    if file is not None:
        return read_config(text_of(file), config.cdi_root)
    host = HostRoot(Path(config.host_root))
    places = [host.here(Path(one)) for one in RUNTIME_CONFIGS]
    for place in places:
        try:
            text = place.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            return Unread(f"{place}: {error}")
        found = read_config(text, config.cdi_root)
        if found.imports:
            return Unread(
                f"{place} imports other files: give what `containerd config dump` prints with "
                "--runtime-config"
            )
        return found
    looked = ", ".join(map(str, places))
    return Unread(f"no configuration of a runtime at {looked}; name one with --runtime-config")


def cdi_folder(config: PluginConfig) -> CdiFolder:
    """The specs in the CDI folder. Raises StateError."""
    folder, paths = Path(config.cdi_root), node_claims.paths_of(config)
    bad: dict[str, str] = {}
    ours: dict[str, str] = {}
    for file in cdi_view.spec_files(folder) if folder.is_dir() else ():
        uid = paths.uid_of(file)
        if uid:
            ours[uid] = file.name
        reason = _unreadable(file)
        if reason:
            bad[file.name] = reason
    return CdiFolder(folder, bad, ours)


def _unreadable(file: Path) -> str:
    try:
        return "; ".join(cdi_check.problems(cdi.decode(cdi_view.read_spec(file))))
    except StateError as error:  # Also what CDI itself would refuse.
        return error.message


def kubelet_folders(config: PluginConfig) -> KubeletFolders:
    """Which of the kubelet's folders are there. Raises OSError where they cannot be seen."""
    root = Path(config.kubelet_root)
    missing = tuple(one for one in _FOLDERS if not (root / one).is_dir())
    return KubeletFolders(root, missing[:1])


async def sockets(config: PluginConfig) -> tuple[PluginSocket, ...] | Unread:
    """The registration sockets of our driver. Of the others nobody is told but their kubelet."""
    folder = Path(config.kubelet_root) / "plugins_registry"
    try:
        paths = sorted(one for one in folder.iterdir() if one.name.endswith("-reg.sock"))
    except OSError as error:
        return Unread(f"{folder}: {error.strerror}")
    found = [await _socket(path, config.driver_name) for path in paths]
    return tuple(one for one in found if one is not None)


async def _socket(path: Path, driver: str) -> PluginSocket | None:
    """None for the socket of another driver."""
    try:
        async with open_channel(path) as channel:
            info = await get_info(channel, timeout=_ANSWER_SECONDS)
    except KubeletError as error:
        # Names of the third form do not tell their driver (kubelet.sockets).
        return PluginSocket(path, error.message) if path.name.startswith(driver) else None
    if info.name != driver:
        return None
    served = _read(info.endpoint.exists)
    if isinstance(served, Unread):
        return PluginSocket(path, served.why)
    return PluginSocket(path, "" if served else f"names {info.endpoint}, which is not there")


def readiness(config: PluginConfig) -> tuple[str, ...] | Unread:
    """What the plugin that listens here says is missing. Raises ConfigError."""
    host, port = parse_listen(config.listen)
    if port == 0:
        return Unread("the plugin's port is not known")
    url = f"http://{_in_url(host)}:{port}/readyz"
    try:
        with _DIRECT.open(url, timeout=_ANSWER_SECONDS):
            return ()
    except urllib.error.HTTPError as error:
        with error:
            return _lines(error.read())
    except (OSError, ValueError) as error:
        return Unread(f"no plugin answers at {url}: {error}")


def _in_url(host: str | None) -> str:
    if host is None:
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _lines(body: bytes) -> tuple[str, ...]:
    return tuple(body.decode("utf-8", "replace").splitlines()[:20]) or ("no reason is told",)


def boot_id(config: PluginConfig) -> str:
    """Of this boot. Raises StateError."""
    return HostEffects(Path(config.proc_root)).boot_id()


def spec_files(config: PluginConfig) -> tuple[SpecFile, ...]:
    """The specs that containers of this boot may ask for. Raises StateError."""
    boot = boot_id(config)
    entries = node_claims.contents(config).entries
    answered = {entry.uid for entry in entries if entry.answered_in(boot)}
    return tuple(
        SpecFile(f"{one.claim.namespace}/{one.claim.name}", one.file, one.state.value)
        for one in cdi_view.specs(config, None).written
        if one.claim.uid in answered
    )


def partitions(config: PluginConfig) -> tuple[Partition, ...] | Unread:
    """The MIG instances of the cards. Raises HardwareError, StateError."""
    division = mig_view.look(config)
    if division.problems:
        return Unread("; ".join(division.problems))
    return tuple(
        Partition(
            str(card.card.address),
            card.name(one.profile, one.placement),
            one.uuid or "",
            "" if card.owner(one) == mig_view.NOBODY else card.owner(one),
        )
        for card in division.cards
        for one in card.instances
    )


def _read(look: Callable[[], T | Unread]) -> T | Unread:
    try:
        return look()
    except DragoonError as error:
        return Unread(error.message)
    except OSError as error:
        # Most folders of a node are root's: who is not learns which, and what needs none of them.
        return Unread(f"{error.filename}: {error.strerror}")


def elsewhere(evidence: Evidence) -> Evidence:
    """The evidence of a machine that is no node."""
    why = Unread("this is no node: run it on one, or in the pod of its plugin")
    return replace(
        evidence,
        driver_problem=why,
        inventory=why,
        driver_files=why,
        runtime=why,
        cdi=why,
        kubelet=why,
        sockets=why,
        readiness=why,
        boot_id=why,
        journal=why,
        specs=why,
        partitions=why,
    )
