"""The one way to the GPUs of this node, real or simulated: for the plugin and the commands."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoon.errors import ConfigError
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.pci import Roots
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.profiles import find_machine


def open_gpus(
    simulate: str | None = None,
    state: Path | None = None,
    roots: Roots | None = None,
    *,
    node: str = "",
    beside_driver: bool = False,
    folders: Sequence[Path] = (),
) -> NvmlGpus:
    """The GPUs behind the port; the library itself is opened by the first look.

    simulate: name of a shipped machine, or path to a topology file; None for the real driver.
    state: the file that keeps the simulated hardware; processes that name the same file share it.
    With a state file and no `simulate`, the hardware in it. Without one, the hardware ends with
    `close`.
    node: told into the UUIDs, so that two nodes with the same machine have different ones.
    folders: where the real driver's library is looked for first.
    beside_driver: allow simulating on a machine that has a real driver; never in the plugin.

    Raises ConfigError for a combination that cannot be, InvalidInputError for a wrong machine.
    """
    roots = roots or Roots()
    if simulate is None and state is None:
        return NvmlGpus(roots, folders=folders)
    if not beside_driver:
        refuse_beside_driver(roots.proc)
    if state is not None and simulate is None:
        return _simulated(_existing(state))
    machine = find_machine(simulate or "")
    seed = node or machine.name
    if state is not None:
        return _simulated(Hardware.installed(state, machine, seed))
    folder = tempfile.TemporaryDirectory(prefix="dragoon-simulated-")
    hardware = Hardware.installed(Path(folder.name) / "machine.json", machine, seed)
    return _simulated(hardware, on_close=folder.cleanup)


def refuse_beside_driver(proc: Path) -> None:
    """Raises ConfigError when the kernel under `proc` (the real /proc) has the NVIDIA module.

    Simulated devices beside real ones would be given to pods that expect real ones.
    """
    file = proc / "driver/nvidia/version"
    if file.exists():
        raise ConfigError(
            f"asked to simulate GPUs, but {file} says that a real driver is loaded",
            hint="remove the simulation from the configuration of this node",
        )


def _existing(state: Path) -> Hardware:
    if not state.is_file():
        raise ConfigError(
            f"state of the simulated machine: found no file {state}",
            hint="name the machine too, with --simulate, to make one",
        )
    return Hardware(state)


def _simulated(hardware: Hardware, on_close: Callable[[], None] | None = None) -> NvmlGpus:
    return NvmlGpus(hardware.roots, stand_in=SimulatedLibrary(hardware), on_close=on_close)
