"""A fake of `port.MigCards` and `port.Processes` in memory, for tests of the layers above.

It refuses what a card refuses: illegal or taken placements, what is in use, a mode that needs a
reset. It knows nothing of media engines and of half-filled instances made by hand; the simulated
library does.
"""

import itertools
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from dragoon.errors import DeviceLostError, InvalidInputError
from dragoon.gpu.faults import (
    CardInUseError,
    FeatureMissingError,
    InstanceChangedError,
    PlacementTakenError,
    ResetRequiredError,
)
from dragoon.gpu.mig import (
    CapabilityNode,
    ComputeInstance,
    GpuProcess,
    MigCard,
    MigInstance,
    occupied_by,
)
from dragoon.gpu.model import MigMode, PciAddress, Placement

_FIRST_CAPABILITY = 3


@dataclass
class MemoryCard:
    """One card of the fake. Tests change it as other hands would: assign to its fields."""

    card: MigCard
    minor: int
    instances: tuple[MigInstance, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    can_reset: bool = True
    is_lost: bool = False


@dataclass
class MemoryMigCards:
    """Cards by address; those without MIG in `plain`."""

    cards: dict[PciAddress, MemoryCard]
    plain: frozenset[PciAddress] = frozenset()
    _serials: Iterable[int] = field(default_factory=itertools.count)

    @classmethod
    def of(cls, cards: Iterable[MigCard], plain: Iterable[PciAddress] = ()) -> "MemoryMigCards":
        """The fake of these cards, with minors in their order."""
        found = {card.address: MemoryCard(card, minor) for minor, card in enumerate(cards)}
        return cls(found, frozenset(plain))

    def __call__(self, address: PciAddress) -> tuple[GpuProcess, ...]:
        """See `port.Processes`."""
        known = self._known(address)
        return known.processes if known else ()

    def card(self, address: PciAddress) -> MigCard | None:
        """See `port.MigCards`."""
        known = self._known(address)
        return known.card if known else None

    def instances(self, address: PciAddress) -> tuple[MigInstance, ...]:
        """See `port.MigCards`."""
        known = self._known(address)
        return known.instances if known else ()

    def set_mode(self, address: PciAddress, *, enabled: bool) -> MigMode:
        """See `port.MigCards`."""
        known = self._divisible(address)
        wanted = MigMode(enabled=enabled, pending=enabled)
        if known.card.mode.enabled != enabled:
            if known.instances:
                names = ", ".join(map(str, known.instances))
                raise CardInUseError(f"GPU {address}: it still has {names}")
            _demand_unused(known.processes, f"GPU {address}: change of MIG mode")
            if not known.card.resetless and not known.can_reset:
                raise ResetRequiredError(f"GPU {address}: change of MIG mode")
            if not known.card.resetless:
                known.minor = 1 + max(card.minor for card in self.cards.values())
        known.card = replace(known.card, mode=wanted)
        return wanted

    def create(self, address: PciAddress, profile: str, placement: Placement) -> MigInstance:
        """See `port.MigCards`."""
        known = self._divisible(address)
        wanted = known.card.profile(profile)
        if placement not in wanted.placements:
            allowed = ", ".join(map(str, wanted.placements))
            raise InvalidInputError(f"placement: found {placement}, allowed: {allowed}")
        if not known.card.mode.enabled:
            raise FeatureMissingError(f"GPU {address}: it is not in MIG mode")
        same = [one for one in known.instances if one.profile == wanted]
        holders = occupied_by(known.instances, placement)
        if holders or len(same) >= wanted.instances:
            names = ", ".join(map(str, holders or same))
            raise PlacementTakenError(f"GPU {address}: in the way is {names}")
        taken = {one.identity for one in known.instances}
        made = MigInstance(
            parent=address,
            parent_uuid=known.card.uuid,
            parent_minor=known.minor,
            profile=wanted,
            placement=placement,
            identity=next(number for number in itertools.count() if number not in taken),
            compute=(self._compute(wanted.slices),),
            node=self._node(),
        )
        known.instances = tuple(sorted((*known.instances, made), key=lambda one: one.placement))
        return made

    def destroy(self, address: PciAddress, identity: int, uuid: str | None) -> None:
        """See `port.MigCards`."""
        known = self._known(address)
        for found in known.instances if known else ():
            if known is not None and found.identity == identity:
                if found.uuid != uuid or (uuid is None and found.compute):
                    raise InstanceChangedError(f"GPU {address}: found {found}, meant was {uuid}")
                inside = tuple(p for p in known.processes if p.gpu_instance == identity)
                _demand_unused(inside, f"GPU {address}: {found}")
                known.instances = tuple(one for one in known.instances if one is not found)

    def reboot(self) -> None:
        """What a reboot does to all cards: no instances, other minors, no mode but Ampere's."""
        minors = [known.minor for known in self.cards.values()]
        for known, minor in zip(self.cards.values(), minors[1:] + minors[:1], strict=True):
            kept = known.card.mode.enabled and not known.card.resetless
            known.card = replace(known.card, mode=MigMode(enabled=kept, pending=kept))
            known.minor, known.instances, known.processes = minor, (), ()

    def halve(self, address: PciAddress, identity: int) -> None:
        """The compute instance of that GPU instance is gone, as after a crash between two steps."""
        known = self._divisible(address)
        known.instances = tuple(
            replace(one, compute=()) if one.identity == identity else one for one in known.instances
        )

    def _known(self, address: PciAddress) -> MemoryCard | None:
        known = self.cards.get(address)
        if known is None and address not in self.plain:
            raise DeviceLostError(f"GPU {address}: the driver does not list it")
        if known is not None and known.is_lost:
            raise DeviceLostError(f"GPU {address}: GPU is lost")
        return known

    def _divisible(self, address: PciAddress) -> MemoryCard:
        known = self._known(address)
        if known is None:
            raise FeatureMissingError(f"GPU {address}: the card has no MIG")
        return known

    def _compute(self, slices: int) -> ComputeInstance:
        return ComputeInstance(0, f"MIG-{uuid.uuid4()}", slices, self._node())

    def _node(self) -> CapabilityNode:
        minor = _FIRST_CAPABILITY + next(iter(self._serials))
        return CapabilityNode(f"/dev/nvidia-caps/nvidia-cap{minor}", minor)


def _demand_unused(processes: tuple[GpuProcess, ...], what: str) -> None:
    if processes:
        raise CardInUseError(f"{what}: in use by {', '.join(map(str, processes))}", processes)
