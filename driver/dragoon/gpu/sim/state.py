"""What has happened to a simulated machine: frozen data, and how one event changes it. Pure."""

import enum
import uuid
from dataclasses import dataclass, field, replace

import msgspec

from dragoon.errors import InvalidInputError, StateError
from dragoon.gpu.model import PciAddress
from dragoon.gpu.sim.machine import FabricRecord, Machine
from dragoon.gpu.sim.occupants import (
    Accounting,
    CapState,
    ConditionState,
    GpuInstanceState,
    ProcessState,
)

_VERSION = 1
_EVENTS_KEPT = 256
_NAMESPACE = uuid.UUID("6f1d3a52-6d0e-4d43-9f6c-52a1c6a0d5b7")


class Loss(enum.Enum):
    """How a lost card shows itself."""

    SILENT = "silent"  # listed, every question to it is answered "GPU is lost"
    NO_HANDLE = "no handle"  # counted, but there is no handle for it
    UNLISTED = "unlisted"  # not counted any more; the kernel still lists it
    OFF_BUS = "off bus"  # nobody lists it any more


class Effect(enum.Enum):
    """What a faulty symbol does."""

    CODE = "code"  # answers with an NVML error code
    MISSING = "missing"  # is not in the library, as with an older driver
    HANG = "hang"  # does not come back before the fault is lifted
    SLOW = "slow"  # does what it should, and takes its time
    GARBLE = "garble"  # writes text that is not UTF-8


@dataclass(frozen=True, slots=True)
class Fault:
    """A symbol that fails: for one slot or all, for one struct version or all.

    milliseconds: how long a slow one takes.
    """

    symbol: str
    effect: Effect = Effect.CODE
    code: int = 999
    slot: int | None = None
    struct_version: int | None = None
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Event:
    """An event that a card raised: bit of nvmlEventType*, and its data (an XID).

    gpu_instance, compute_instance: the MIG instance that it is about; None for the whole card.
    """

    number: int
    slot: int
    kind: int
    data: int
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass(frozen=True, slots=True)
class CardState:
    """What is true of a card now. address, fabric and minor replace the machine's where set.

    reset_blocked: the driver cannot reset the card by itself, as in many virtual machines.
    """

    uuid: str
    loss: Loss | None = None
    address: PciAddress | None = None
    fabric: FabricRecord | None = None
    links_down: tuple[int, ...] = ()
    mig_enabled: bool = False
    mig_pending: bool = False
    minor: int | None = None
    reset_blocked: bool = False
    instances: tuple[GpuInstanceState, ...] = ()
    processes: tuple[ProcessState, ...] = ()
    caps: tuple[CapState, ...] = ()
    condition: ConditionState = field(default_factory=ConditionState)


@dataclass(frozen=True, slots=True)
class State:
    """A machine, and everything that happened to it.

    boot counts reboots; next_serial is the first number that no instance had yet; accounting is
    None for a driver that does not know caps.
    """

    seed: str
    machine: Machine
    cards: tuple[CardState, ...]
    faults: tuple[Fault, ...] = ()
    events: tuple[Event, ...] = ()
    next_event: int = 1
    version: int = _VERSION
    boot: int = 0
    next_serial: int = 1
    accounting: Accounting | None = None

    @property
    def boot_id(self) -> str:
        """Another one after every reboot, as the kernel's."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.seed}/boot/{self.boot}"))

    def mig_uuid(self, serial: int) -> str:
        """The UUID of the MIG device with that serial number."""
        return f"MIG-{uuid.uuid5(_NAMESPACE, f'{self.seed}/mig/{serial}')}"

    def minor(self, slot: int) -> int | None:
        """The minor number of the card's device file now."""
        now = self.cards[slot].minor
        return self.machine.cards[slot].minor if now is None else now

    def address(self, slot: int) -> PciAddress:
        """Where the card is now."""
        return self.cards[slot].address or self.machine.cards[slot].address

    def fabric(self, slot: int) -> FabricRecord:
        """What the fabric query answers for the card now."""
        return self.cards[slot].fabric or self.machine.cards[slot].fabric

    def link_is_up(self, slot: int, link: int) -> bool:
        """Both ends are wired, not down, present, and not in MIG mode."""
        wire = self.machine.cards[slot].wires[link]
        if not wire.leads_somewhere or not self._end_is_up(slot, link):
            return False
        if wire.slot is None or wire.peer_link is None:
            return True
        return self._end_is_up(wire.slot, wire.peer_link)

    def _end_is_up(self, slot: int, link: int) -> bool:
        card = self.cards[slot]
        return card.loss is None and not card.mig_enabled and link not in card.links_down


def fresh(machine: Machine, seed: str) -> State:
    """A machine just switched on. The seed, such as a node's name, tells equal machines apart."""
    return State(
        seed=seed,
        machine=machine,
        cards=tuple(CardState(uuid=_uuid(seed, slot)) for slot in range(len(machine.cards))),
    )


def changed(state: State, slot: int, **values: object) -> State:
    """The state with some fields of one card replaced. Raises InvalidInputError: no such slot."""
    if not 0 <= slot < len(state.cards):
        raise InvalidInputError(f"slot: found {slot}, allowed: 0 to {len(state.cards) - 1}")
    cards = list(state.cards)
    cards[slot] = replace(cards[slot], **values)  # type: ignore[arg-type]
    return replace(state, cards=tuple(cards))


def raised(
    state: State,
    slot: int,
    kind: int,
    data: int,
    instance: tuple[int | None, int | None] = (None, None),
) -> State:
    """The state with one more event; only the newest events are kept."""
    changed(state, slot)
    event = Event(state.next_event, slot, kind, data, *instance)
    events = (*state.events, event)[-_EVENTS_KEPT:]
    return replace(state, events=events, next_event=state.next_event + 1)


def encode(state: State) -> bytes:
    """The bytes of the state file."""
    return msgspec.json.format(msgspec.json.encode(state), indent=1)


def decode(raw: bytes, origin: str) -> State:
    """Raises StateError when the bytes are not a state of this version."""
    try:
        state = msgspec.json.decode(raw, type=State)
    except msgspec.MsgspecError as error:
        raise StateError(f"{origin}: not the state of a simulated machine: {error}") from error
    if state.version != _VERSION:
        raise StateError(f"{origin}: found version {state.version}, allowed: {_VERSION}")
    return state


def _uuid(seed: str, slot: int) -> str:
    return f"GPU-{uuid.uuid5(_NAMESPACE, f'{seed}/{slot}')}"
