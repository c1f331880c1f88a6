"""Which enforcement tiers this node has, from its settings and its hardware."""

from pathlib import Path

from dragoon.api.opaque_config import TimeSlice
from dragoon.app.config import PluginConfig
from dragoon.errors import HardwareError
from dragoon.gpu.model import Gpu
from dragoon.gpu.port import MemoryLimits, MigCards
from dragoon.gpu.sim.accounting import OutOfMemoryError
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.occupants import ProcessState
from dragoon.prepare.cards import Cards, DriverCards, SimulatedCards, UndividedCards
from dragoon.prepare.enforcement.allocating import allocate
from dragoon.prepare.enforcement.cap_probe import Allocate, CapProbe
from dragoon.prepare.enforcement.cgroup import Cgroup
from dragoon.prepare.enforcement.choosing import Enforcement
from dragoon.prepare.enforcement.hami import Hami
from dragoon.prepare.enforcement.none import Unenforced
from dragoon.prepare.paths import Paths

_PROBE_PID = 1


def enforcement_of(config: PluginConfig, paths: Paths, limits: MemoryLimits | None) -> Enforcement:
    """The tiers, the strongest first. limits: the driver's caps, None where there are none."""
    tried = _allocate(config)
    probe = CapProbe(limits, paths.cgroup_root, tried) if limits and tried else None
    library = Path(config.hami_library) if config.hami_library else None
    return Enforcement(
        (
            Cgroup(probe),
            Hami(paths, library, config.hami_sha256),
            Unenforced(config.allow_unenforced_shares, TimeSlice(config.shares_time_slice)),
        )
    )


def cards_of(
    config: PluginConfig, limits: MemoryLimits | None, mig: MigCards | None = None
) -> Cards:
    """What prepare may change on the GPUs. mig: the same cards as they are divided."""
    kind = SimulatedCards if _simulated(config) else DriverCards
    return kind(limits, mig or UndividedCards())


def _simulated(config: PluginConfig) -> bool:
    return bool(config.simulate or config.simulate_state)


def _allocate(config: PluginConfig) -> Allocate | None:
    """How memory is allocated for a try; None where nobody can reach the simulated machine."""
    if not _simulated(config):
        return allocate
    return SimulatedAllocation(Path(config.simulate_state)) if config.simulate_state else None


class SimulatedAllocation:
    """Allocates on a simulated machine, as a process in that cgroup would."""

    def __init__(self, state: Path) -> None:
        self._hardware = Hardware(state)

    def __call__(self, gpu: Gpu, cgroup: Path, size: int) -> bool:
        """See `cap_probe.Allocate`."""
        cards = self._hardware.read().machine.cards
        slot = next((n for n, card in enumerate(cards) if card.address == gpu.address), None)
        if slot is None:
            raise HardwareError(f"GPU {gpu.address}: the simulated machine has no such card")
        process = ProcessState(_PROBE_PID, "dragoon-probe", size, cgroup=str(cgroup))
        try:
            self._hardware.run(slot, process)
        except OutOfMemoryError:
            return False
        finally:
            self._hardware.end(slot, _PROBE_PID)
        return True
