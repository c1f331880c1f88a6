"""What the kernel of a simulated machine lists besides its buses: MIG capabilities, processes.

Capabilities are laid as the NVIDIA module lays them: one `access` file per instance, which names
the minor number of its device file. Device files are plain marker files.
"""

import shutil
from pathlib import Path

from dragoon.gpu.pci import Roots
from dragoon.gpu.sim.state import State

_CAPS_MAJOR = 234  # dynamic on real machines
_CARDS_MAJOR = 195
_CONFIG, _MONITOR = 1, 2  # capabilities of every machine that has MIG
_CGROUPS = "fs/cgroup"


def lay_kernel_files(state: State, roots: Roots) -> None:
    """Makes the files say what the state says. Idempotent."""
    _put(roots.proc / "sys/kernel/random/boot_id", state.boot_id)
    _put(
        roots.proc / "devices",
        f"Character devices:\n{_CARDS_MAJOR} nvidia\n{_CAPS_MAJOR} nvidia-caps\n\nBlock devices:",
    )
    _lay_capabilities(state, roots)
    _lay_processes(state, roots)


def _lay_capabilities(state: State, roots: Roots) -> None:
    folder = roots.proc / "driver/nvidia/capabilities"
    wanted: dict[Path, int] = {}
    if any(card.mig for card in state.machine.cards):
        wanted = {folder / "mig/config": _CONFIG, folder / "mig/monitor": _MONITOR}
    for slot, now in enumerate(state.cards):
        for instance in now.instances:
            place = folder / f"gpu{state.minor(slot)}/mig/gi{instance.identity}"
            wanted[place / "access"] = instance.minor
            for one in instance.compute:
                wanted[place / f"ci{one.identity}/access"] = one.minor
    for file in tuple(folder.glob("gpu*/mig/gi*/**/access")):
        if file not in wanted:
            file.unlink()
            _drop_empty(file.parent, folder)
    for file, minor in wanted.items():
        _put(file, f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1")
    nodes = roots.dev / "nvidia-caps"
    names = {f"nvidia-cap{minor}" for minor in wanted.values()}
    for name in names:
        _put(nodes / name, "")
    for node in nodes.glob("nvidia-cap*"):
        if node.name not in names:
            node.unlink()


def _lay_processes(state: State, roots: Roots) -> None:
    mount = str(roots.sys / _CGROUPS)
    processes = {p.pid: p for now in state.cards for p in now.processes}
    for pid, process in processes.items():
        folder = roots.proc / str(pid)
        _put(folder / "comm", process.name)
        # Fields 3 to 22 of proc_pid_stat(5): the state, numbers that nobody reads, the start.
        _put(folder / "stat", f"{pid} ({process.name}) S {'0 ' * 18}{process.started}")
        inner = [pid] if process.inner_pid is None else [pid, process.inner_pid]
        _put(folder / "status", "NSpid:\t" + "\t".join(map(str, inner)))
        cgroup = (process.cgroup or "/").removeprefix(mount).removeprefix("/sys/" + _CGROUPS)
        _put(folder / "cgroup", f"0::{cgroup or '/'}")
    for entry in roots.proc.iterdir():
        if entry.name.isdigit() and int(entry.name) not in processes:
            shutil.rmtree(entry)


def _put(file: Path, text: str) -> None:
    wanted = f"{text}\n" if text else ""
    # Who reads meanwhile must not find a file that is empty for a moment.
    if not file.is_file() or file.read_text() != wanted:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(wanted)


def _drop_empty(folder: Path, top: Path) -> None:
    while folder != top and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
