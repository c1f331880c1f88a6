"""Memory of processes on a simulated card, counted and capped per cgroup. Pure but for `stat`.

As NVIDIA describes it (r615, nvmlDeviceSetMemoryLimits_v1): a cap is on the folder of a cgroup;
an allocation above it fails; deleting the folder clears it. With `misc` accounting every cgroup
stands for itself, with `dmem` a cap covers everything below.
"""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from dragoon.gpu.sim.codes import INVALID_ARGUMENT, NOT_SUPPORTED
from dragoon.gpu.sim.occupants import Accounting, CapState, ProcessState
from dragoon.gpu.sim.partitioning import RefusedError, with_process
from dragoon.gpu.sim.state import State, changed

NO_LIMIT = 0xFFFFFFFFFFFFFFFF  # NVML_DEVICE_MEMORY_LIMIT_MAX
_MIB = 1 << 20


class OutOfMemoryError(Exception):
    """CUDA_ERROR_OUT_OF_MEMORY, as the process would be told.

    The allocation is above a cap or above what the card has; nothing was allocated.
    """


def with_cap(state: State, slot: int, cgroup: str, *, soft: int, hard: int) -> State:
    """The state with that cap, or without any for soft 0 and no limit."""
    inode = _inode(cgroup)
    if inode is None or soft > hard:
        raise RefusedError(INVALID_ARGUMENT)
    _demand_whole(state, slot)
    rest = tuple(cap for cap in state.cards[slot].caps if cap.cgroup != cgroup)
    if (soft, hard) == (0, NO_LIMIT):
        return changed(state, slot, caps=rest)
    return changed(state, slot, caps=(*rest, CapState(cgroup, inode, soft, hard)))


def cap_of(state: State, slot: int, cgroup: str) -> CapState:
    """The cap on exactly that cgroup."""
    inode = _inode(cgroup)
    if inode is None:
        raise RefusedError(INVALID_ARGUMENT)
    _demand_whole(state, slot)
    for cap in state.cards[slot].caps:
        if (cap.cgroup, cap.inode) == (cgroup, inode):
            return cap
    return CapState(cgroup, inode, 0, NO_LIMIT)


def used_by(state: State, slot: int, cgroup: str) -> int:
    """What the processes that count for the cgroup use on the card."""
    return sum(p.memory for p in state.cards[slot].processes if _counts(state, p, cgroup))


def with_allocation(state: State, slot: int, process: ProcessState) -> State:
    """The state in which the process uses `process.memory`, which is its new total.

    Raises OutOfMemoryError, as CUDA would.
    """
    after = with_process(state, slot, process)
    total = state.machine.cards[slot].memory_mib
    if total is not None and sum(p.memory for p in after.cards[slot].processes) > total * _MIB:
        raise OutOfMemoryError(f"card {slot} has {total} MiB")
    for cap in after.cards[slot].caps:
        alive = _inode(cap.cgroup) == cap.inode
        if alive and _counts(state, process, cap.cgroup):
            used = used_by(after, slot, cap.cgroup)
            if used > cap.hard:
                raise OutOfMemoryError(f"{cap.cgroup}: {used} bytes of {cap.hard}")
    return after


def without_process(state: State, slot: int, pid: int) -> State:
    """The state in which the process has let go of the card. Idempotent."""
    rest = tuple(p for p in changed(state, slot).cards[slot].processes if p.pid != pid)
    return changed(state, slot, processes=rest)


def with_accounting(state: State, mode: Accounting | None) -> State:
    """The state of a driver that was loaded with that mode; None: an older driver."""
    for slot in range(len(state.cards)):
        state = changed(state, slot, caps=())
    return replace(state, accounting=mode)


def _counts(state: State, process: ProcessState, cgroup: str) -> bool:
    if process.cgroup is None:
        return False
    inside = PurePosixPath(process.cgroup)
    around = PurePosixPath(cgroup)
    return inside == around or (state.accounting is Accounting.DMEM and around in inside.parents)


def _demand_whole(state: State, slot: int) -> None:
    if state.accounting is None or state.cards[slot].mig_enabled:
        raise RefusedError(NOT_SUPPORTED)


def _inode(cgroup: str) -> int | None:
    with suppress(OSError, ValueError):
        path = Path(cgroup)
        if path.is_absolute() and path.is_dir():
            return path.stat().st_ino
    return None
