"""Cards with MIG: as simulated machines have them, and what their counters and the cards allow."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from dragoon.gpu.mig import ComputeInstance, MigCard, MigInstance
from dragoon.gpu.model import Gpu, MigMode, MigProfile, PciAddress, Placement
from dragoon.gpu.sim.machine import Card as SimulatedCard
from dragoon.gpu.sim.occupants import GpuInstanceState
from dragoon.gpu.sim.partitioning import has_room
from dragoon.gpu.sim.profiles import find_machine
from dragoon.gpu.sim.state import CardState
from dragoon.publish.card import Division
from dragoon.publish.counters import Ledger, Place
from tests.unit.publish.nodes import gpu

GIB = 2**30
OFF, ON = MigMode(enabled=False, pending=False), MigMode(enabled=True, pending=True)


def profiles(machine: str) -> tuple[MigProfile, ...]:
    """The MIG profiles of the first card of a simulated machine."""
    return find_machine(machine).cards[0].mig


def profile(machine: str, name: str) -> MigProfile:
    return next(one for one in profiles(machine) if one.name == name)


def division(
    machine: str = "dgx-h100",
    number: int = 0,
    *,
    mode: MigMode = OFF,
    resetless: bool = True,
    foreign: Sequence[MigInstance] = (),
) -> Division:
    """What the n-th GPU of `nodes` says of itself when it is a card of that machine."""
    card = gpu(number)
    return Division(
        MigCard(card.address, card.uuid, mode, resetless, profiles(machine)), tuple(foreign)
    )


def divisible(number: int = 0, *, mode: MigMode = OFF, **changes: Any) -> Gpu:
    """The n-th GPU of a node, with MIG."""
    return gpu(number, mig=mode, **changes)


def instance(
    machine: str, name: str, start: int, *, whole: bool = True, number: int = 0
) -> MigInstance:
    """An instance on the n-th GPU; not whole: nobody made a compute instance in it yet."""
    parent, made = gpu(number), profile(machine, name)
    compute = (ComputeInstance(0, f"MIG-{number}-{name}-{start}", made.slices),) if whole else ()
    return MigInstance(
        parent=parent.address,
        parent_uuid=parent.uuid,
        parent_minor=number,
        profile=made,
        placement=Placement(start, made.size),
        identity=start + 1,
        compute=compute,
    )


def admitted(book: Ledger, places: Iterable[Place]) -> bool:
    """Whether the counters let all of these be allocated at once."""
    used: Counter[str] = Counter()
    for one, place in places:
        used.update(book.of(one, place).amounts)
    return all(used[name] <= amount for name, amount in book.total.amounts.items()) and set(
        used
    ) <= set(book.total.amounts)


def possible(
    known: Sequence[MigProfile], places: Iterable[Place], there: Iterable[MigInstance] = ()
) -> bool:
    """Whether the simulated driver makes all of these instances, beside those that are there."""
    card = SimulatedCard("any", PciAddress(0, 1, 0), bridges=(), mig=tuple(known))
    made = [_state(at, one.profile, one.placement) for at, one in enumerate(there)]
    for one, place in places:
        if not has_room(card, CardState("GPU-x", instances=tuple(made)), one, place):
            return False
        made.append(_state(len(made), one, place))
    return True


def _state(number: int, made: MigProfile, place: Placement) -> GpuInstanceState:
    return GpuInstanceState(number, number, made.identity, place.start, place.size, number)
