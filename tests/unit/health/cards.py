"""Cards, events and judgements that tests of health start from."""

from collections.abc import Iterable
from typing import Any

from dragoon.gpu.condition import Condition, EventKind, GpuEvent, Recovery
from dragoon.gpu.mig import MigCard
from dragoon.gpu.model import Gpu, Inventory, LostGpu, MigMode, MigProfile, NvLink, PciAddress
from dragoon.health.judging import Observed, judge
from dragoon.health.scope import Heard
from dragoon.health.settings import HealthSettings
from dragoon.health.verdict import CardHealth, Health, Kind

WELL = Condition(recovery=Recovery.NONE, uncorrected=0, remap_pending=False, remap_failed=False)
NEEDS_RESET = Condition(recovery=Recovery.GPU_RESET)


def at(number: int) -> PciAddress:
    return PciAddress(0, 0x10 + number, 0)


def gpu(number: int, **changes: Any) -> Gpu:
    fields: dict[str, Any] = {"address": at(number), "index": number, "uuid": f"GPU-{number}"}
    return Gpu(**(fields | changes))


def lost(number: int, reason: str = "no answer") -> LostGpu:
    return LostGpu(at(number), reason, f"GPU-{number}")


def links(*up: int, of: int = 4) -> tuple[NvLink, ...]:
    return tuple(NvLink(index, index in up) for index in range(of))


def found(*cards: Gpu | LostGpu) -> Inventory:
    return Inventory(
        gpus=tuple(card for card in cards if isinstance(card, Gpu)),
        lost=tuple(card for card in cards if isinstance(card, LostGpu)),
    )


def xid(number: int, card: int = 0, gpu_instance: int | None = None) -> GpuEvent:
    return GpuEvent(EventKind.XID, at(card), number, gpu_instance)


TWO = found(gpu(0), gpu(1))


class Node:
    """One node that is judged again and again, a second after the other."""

    def __init__(self, settings: HealthSettings | None = None) -> None:
        self.settings = settings or HealthSettings()
        self.health: Health = {}
        self.now = 1000.0

    def judge(
        self,
        *events: GpuEvent | Heard,
        inventory: Inventory = TWO,
        conditions: dict[PciAddress, Condition] | None = None,
        unwatched: dict[PciAddress, str] | None = None,
    ) -> Health:
        self.now += 1
        about = [event if isinstance(event, Heard) else Heard(event) for event in events]
        seen = Observed(inventory, conditions or {}, about, unwatched or {})
        self.health = judge(seen, self.health, self.settings, now=self.now)
        return self.health

    def says(self, number: int = 0) -> list[tuple[Kind, str]]:
        return says(self.health[at(number)])


def says(card: CardHealth) -> list[tuple[Kind, str]]:
    return [(verdict.kind, verdict.value) for verdict in card.verdicts]


HALF = MigProfile("3g.40gb", 2, 9, 3, 2, 40448, None, (0, 4), 4)
SMALL = MigProfile("1g.10gb", 0, 19, 1, 7, 9856, None, tuple(range(7)), 1)
ALL = MigProfile("7g.80gb", 4, 0, 7, 1, 80384, None, (0,), 8)


def mig_card(number: int = 0, profiles: Iterable[MigProfile] = (HALF, SMALL, ALL)) -> MigCard:
    mode = MigMode(enabled=True, pending=True)
    return MigCard(at(number), f"GPU-{number}", mode, resetless=True, profiles=tuple(profiles))
