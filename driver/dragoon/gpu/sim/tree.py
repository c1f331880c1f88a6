"""The sysfs, procfs and devices of a simulated machine, as far as anybody reads them.

There is no `proc/driver/nvidia/version`: that file is how a real driver is told from none.
"""

import shutil
from pathlib import Path

from dragoon.gpu.model import PciAddress
from dragoon.gpu.pci import Roots
from dragoon.gpu.sim.kernel_files import lay_kernel_files
from dragoon.gpu.sim.state import Loss, State

_GPU = ("0x10de", "0x030200")  # vendor and class: NVIDIA, 3D controller
_NVSWITCH = ("0x10de", "0x068000")  # NVIDIA, bridge


def roots_in(folder: Path) -> Roots:
    """Where the trees of the machine lie in its folder."""
    return Roots(sys=folder / "sys", proc=folder / "proc", dev=folder / "dev")


def settle(state: State, folder: Path) -> None:
    """Makes the trees say what the state says. Idempotent; repairs what is missing."""
    roots = roots_in(folder)
    roots.dev.mkdir(parents=True, exist_ok=True)
    present: dict[PciAddress, int] = {}
    for slot in range(len(state.cards)):
        if state.cards[slot].loss is not Loss.OFF_BUS:
            present.setdefault(state.address(slot), slot)
    for address, slot in present.items():
        _lay_card(state, slot, address, roots)
    for address in _switches(state):
        _lay_device(roots, (f"pci{address.domain:04x}:{address.bus:02x}",), address, *_NVSWITCH)
    _lay_nodes(state, roots)
    lay_kernel_files(state, roots)
    wanted = {str(address) for address in (*present, *_switches(state))}
    _drop_others(roots.sys / "bus/pci/devices", wanted)
    _drop_others(roots.proc / "driver/nvidia/gpus", wanted)


def _lay_card(state: State, slot: int, address: PciAddress, roots: Roots) -> None:
    card = state.machine.cards[slot]
    device = _lay_device(roots, card.bridges, address, *_GPU)
    node = -1 if card.numa_node is None else card.numa_node
    (device / "numa_node").write_text(f"{node}\n")
    driver = roots.sys / "bus/pci/drivers/nvidia"
    driver.mkdir(parents=True, exist_ok=True)
    if not (device / "driver").is_symlink():
        (device / "driver").symlink_to(driver)
    listing = roots.proc / "driver/nvidia/gpus" / str(address)
    listing.mkdir(parents=True, exist_ok=True)
    (listing / "information").write_text(
        f"Model: \t\t {card.product}\nGPU UUID: \t {state.cards[slot].uuid}\n"
        f"Bus Location: \t {address}\nDevice Minor: \t {state.minor(slot)}\n"
    )


def _lay_device(
    roots: Roots, bridges: tuple[str, ...], address: PciAddress, vendor: str, kind: str
) -> Path:
    device = (roots.sys / "devices").joinpath(*bridges, str(address))
    device.mkdir(parents=True, exist_ok=True)
    (device / "vendor").write_text(f"{vendor}\n")
    (device / "class").write_text(f"{kind}\n")
    link = roots.sys / "bus/pci/devices" / str(address)
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(Path("../../..") / device.relative_to(roots.sys))
    return device


def _switches(state: State) -> set[PciAddress]:
    return {w.switch for card in state.machine.cards for w in card.wires if w.switch is not None}


def _lay_nodes(state: State, roots: Roots) -> None:
    lists: dict[int, str] = {}
    for card in state.machine.cards:
        if card.numa_node is not None and card.cpus is not None:
            lists[card.numa_node] = card.cpus
        if card.gpu_memory_node is not None:
            lists.setdefault(card.gpu_memory_node, "")
    for node, cpus in lists.items():
        folder = roots.sys / f"devices/system/node/node{node}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpulist").write_text(f"{cpus}\n")


def _drop_others(folder: Path, wanted: set[str]) -> None:
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        if entry.name in wanted:
            continue
        if entry.is_symlink():
            entry.unlink()
        else:
            shutil.rmtree(entry)
