"""The hardware of a simulated node: one state file that any number of processes share.

Changes are made under an exclusive lock and replace the file whole, so a reader needs no lock and
sees one consistent state; a process that dies in the middle leaves the state before or after.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from dragoon.errors import ConfigError, HardwareError, StateError
from dragoon.gpu.mig import find_profile
from dragoon.gpu.model import PciAddress, Placement
from dragoon.gpu.pci import Roots
from dragoon.gpu.sim.accounting import with_accounting, with_allocation, without_process
from dragoon.gpu.sim.codes import TEXTS
from dragoon.gpu.sim.machine import FabricRecord, Machine
from dragoon.gpu.sim.occupants import Accounting, ConditionState, ProcessState
from dragoon.gpu.sim.partitioning import (
    RefusedError,
    rebooted,
    reset,
    with_compute_instance,
    with_gpu_instance,
)
from dragoon.gpu.sim.state import (
    Fault,
    Loss,
    State,
    changed,
    decode,
    encode,
    fresh,
    raised,
)
from dragoon.gpu.sim.tree import roots_in, settle

_XID = 0x8  # nvmlEventTypeXidCriticalError


class Hardware:
    """A simulated machine in a file. Reads are cheap: the file is decoded only when it changed.

    Methods that change the hardware return when the change is visible to every process.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._last: tuple[bytes, State] | None = None

    @classmethod
    def installed(cls, file: Path, machine: Machine, seed: str) -> "Hardware":
        """The machine in the file, which is made from `machine` and `seed` unless it is there.

        Raises ConfigError when another machine is in the file, StateError when it is broken.
        """
        hardware = cls(file)
        with hardware._locked():
            if not file.exists():
                hardware._write(fresh(machine, seed))
                return hardware
            state = hardware.read()
            if state.machine != machine:
                raise ConfigError(
                    f"{file}: found the simulated machine {state.machine.name!r}, asked for "
                    f"{machine.name!r}",
                    hint="choose another state file, or remove this one to change the hardware",
                )
            settle(state, hardware._folder)
        return hardware

    @property
    def roots(self) -> Roots:
        """The machine's own sysfs, procfs and device folder."""
        return roots_in(self._folder)

    @property
    def _folder(self) -> Path:
        return self.file.with_name(self.file.name + ".tree")

    def read(self) -> State:
        """The state now. Raises StateError when the file is gone or broken."""
        try:
            raw = self.file.read_bytes()
        except OSError as error:
            raise StateError(f"{self.file}: no simulated machine: {error}") from error
        last = self._last
        if last is None or last[0] != raw:
            last = self._last = (raw, decode(raw, str(self.file)))
        return last[1]

    def change(self, decide: Callable[[State], State]) -> State:
        """Replaces the state by what `decide` makes of it; nobody else changes it meanwhile."""
        with self._locked():
            state = decide(self.read())
            self._write(state)
            return state

    def lose(self, slot: int, how: Loss = Loss.SILENT) -> None:
        """The card falls off, in one of several ways."""
        self.change(lambda state: changed(state, slot, loss=how))

    def bring_back(self, slot: int) -> None:
        """The lost card works again."""
        self.change(lambda state: changed(state, slot, loss=None))

    def set_uuid(self, slot: int, uuid: str) -> None:
        """Another card is in the slot."""
        self.change(lambda state: changed(state, slot, uuid=uuid))

    def move(self, slot: int, address: PciAddress) -> None:
        """The card answers at another PCI address, perhaps one that is taken."""
        self.change(lambda state: changed(state, slot, address=address))

    def set_fabric(self, slot: int, record: FabricRecord) -> None:
        """What the fabric query answers for the card."""
        self.change(lambda state: changed(state, slot, fabric=record))

    def drop_link(self, slot: int, link: int) -> None:
        """One NVLink goes down, at both ends."""
        self.change(
            lambda state: changed(
                state, slot, links_down=tuple(sorted({*state.cards[slot].links_down, link}))
            )
        )

    def raise_link(self, slot: int, link: int) -> None:
        """An NVLink that was dropped comes up."""
        self.change(
            lambda state: changed(
                state, slot, links_down=tuple(set(state.cards[slot].links_down) - {link})
            )
        )

    def set_mig_mode(self, slot: int, *, enabled: bool) -> None:
        """As an administrator does it: mode and pending mode, no instances; NVLinks follow."""
        self.change(
            lambda state: changed(
                state, slot, mig_enabled=enabled, mig_pending=enabled, instances=()
            )
        )

    def block_reset(self, slot: int, *, blocked: bool = True) -> None:
        """The driver cannot reset the card by itself, as in many virtual machines."""
        self.change(lambda state: changed(state, slot, reset_blocked=blocked))

    def reset(self, slot: int) -> None:
        """Resets the card: its instances are gone, a pending mode is there.

        Raises HardwareError while a process uses the card.
        """
        with _told("reset the card"):
            self.change(lambda state: reset(state, slot))

    def reboot(self) -> None:
        """Reboots the machine: a new boot id, other minors, no instances, processes or caps."""
        self.change(rebooted)

    def make_by_hand(
        self, slot: int, profile: str, start: int, slices: tuple[int, ...] | None = None
    ) -> tuple[str, ...]:
        """An administrator makes a GPU instance and, in it, compute instances of these slices.

        None: one that fills it; (): none at all. Returns the UUIDs of the MIG devices. Raises
        InvalidInputError for a profile that the card has not, HardwareError where it is refused.
        """
        card = self.read().machine.cards[slot]
        wanted = find_profile(card.mig, profile, str(card.address))
        made: list[str] = []

        def decide(state: State) -> State:
            place = Placement(start, wanted.size)
            state, instance = with_gpu_instance(state, slot, wanted.identity, place)
            for count in (wanted.slices,) if slices is None else slices:
                state, one = with_compute_instance(state, slot, instance.serial, count)
                made.append(one.uuid)
            return state

        with _told(f"make a {profile} at {start}"):
            self.change(decide)
        return tuple(made)

    def run(self, slot: int, process: ProcessState) -> None:
        """A process uses the card, or an instance of it, with `process.memory` as its new total.

        Raises OutOfMemoryError as CUDA would, HardwareError when there is no such instance.
        """
        with _told("run a process"):
            self.change(lambda state: with_allocation(state, slot, process))

    def end(self, slot: int, pid: int) -> None:
        """The process lets go of the card."""
        self.change(lambda state: without_process(state, slot, pid))

    def set_accounting(self, mode: Accounting | None) -> None:
        """Another driver: one that counts memory per cgroup in that way, or (None) an older one."""
        self.change(lambda state: with_accounting(state, mode))

    def raise_xid(
        self,
        slot: int,
        xid: int,
        gpu_instance: int | None = None,
        compute_instance: int | None = None,
    ) -> None:
        """The card reports an XID to everybody who registered for critical errors.

        gpu_instance, compute_instance: the ids of the MIG instance that it is about.
        """
        instance = gpu_instance, compute_instance
        self.change(lambda state: raised(state, slot, _XID, xid, instance))

    def raise_event(self, slot: int, kind: int) -> None:
        """The card raises another event, a bit of nvmlEventType*, to who registered for it."""
        self.change(lambda state: raised(state, slot, kind, 0))

    def set_condition(self, slot: int, condition: ConditionState) -> None:
        """What the card answers about its own health from now on."""
        self.change(lambda state: changed(state, slot, condition=condition))

    def fail(self, fault: Fault) -> None:
        """A symbol starts to fail."""
        self.change(lambda state: replace(state, faults=(*state.faults, fault)))

    def lift(self, symbol: str) -> None:
        """A symbol works again, for every slot; calls that hang come back."""
        self.change(
            lambda state: replace(
                state, faults=tuple(f for f in state.faults if f.symbol != symbol)
            )
        )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(f"{self.file}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _write(self, state: State) -> None:
        settle(state, self._folder)
        draft = self.file.with_name(self.file.name + ".new")
        # Readable for commands of other users, writable for the owner of the node alone.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "wb") as out:
            out.write(encode(state))
        draft.replace(self.file)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except RefusedError as refused:
        why = TEXTS.get(refused.code, f"NVML code {refused.code}")
        raise HardwareError(f"the simulated card does not {what}: {why}") from refused
