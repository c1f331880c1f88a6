"""Events and observations to the verdicts of each card. Pure.

What can be asked again is judged anew each time: it ends when the card says so. What was an event
lasts (`Verdict.lasting`): it ends when another card is in the slot, or when the card was seen in
need of recovery since and needs none any more. A reboot ends it too (`remembering`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dragoon.gpu.condition import Condition, EventKind, GpuEvent, Recovery
from dragoon.gpu.model import FabricState, Gpu, Inventory, LostGpu, PciAddress
from dragoon.health.scope import Heard
from dragoon.health.settings import HealthSettings
from dragoon.health.verdict import CardHealth, Health, Kind, Verdict
from dragoon.health.xids import condemns, describe

_ORDER = {kind: number for number, kind in enumerate(Kind)}
_FATAL_EVENTS = {
    EventKind.DOUBLE_BIT_ECC: Kind.MEMORY,
    EventKind.RETIREMENT_FAILED: Kind.MEMORY,
    EventKind.FATAL_POISON: Kind.MEMORY,
    EventKind.UNAVAILABLE: Kind.RECOVERY,
}
_WELL = (None, Recovery.NONE)
_MOST_XIDS = 16
"""A sick driver may deliver any number as one, and all of them last and are told to pods."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that is known at one moment.

    conditions: of the cards that were asked and answered. heard: events since the judgement before.
    unwatched: cards whose events are not reported, and why.
    """

    inventory: Inventory
    conditions: Mapping[PciAddress, Condition] = field(default_factory=dict)
    heard: Sequence[Heard] = ()
    unwatched: Mapping[PciAddress, str] = field(default_factory=dict)


def counts(event: GpuEvent, settings: HealthSettings) -> bool:
    """Whether its card gets a verdict for an event."""
    if event.kind is EventKind.XID:
        return condemns(event.number, settings)
    return event.kind in _FATAL_EVENTS


def judge(
    seen: Observed, before: Health, settings: HealthSettings, *, now: float
) -> dict[PciAddress, CardHealth]:
    """The health of every card that has an address.

    A card that nobody sees any more keeps what was said of it: it may come back. now: Unix time.
    """
    cards = {card.address: card for card in seen.inventory.cards if card.address is not None}
    found = {address: health for address, health in before.items() if address not in cards}
    for address, card in cards.items():
        past, condition = _past(card, before.get(address)), seen.conditions.get(address)
        bench, ailing = _Bench(past, settings, now), _is_ailing(card, condition)
        lasting = (
            *_carried(past, condition, ailing=ailing),
            *_events(bench, (one for one in seen.heard if one.event.address == address)),
        )
        verdicts = [
            *(replace(verdict, ailing=verdict.ailing or ailing) for verdict in lasting),
            *_states(bench, card, condition, past),
            *_unwatched(bench, seen.unwatched.get(address) if isinstance(card, Gpu) else None),
        ]
        found[address] = CardHealth(
            card.uuid or past.uuid, _settled(verdicts, settings), past.links_up | _links_up(card)
        )
    return found


@dataclass(frozen=True, slots=True)
class _Bench:
    """What every verdict of one card needs."""

    past: CardHealth
    settings: HealthSettings
    now: float

    def verdict(
        self,
        kind: Kind,
        value: str,
        message: str,
        *,
        lasting: bool = False,
        spared: frozenset[str] = frozenset(),
    ) -> Verdict:
        """A verdict that is as old as the same one before."""
        made = Verdict(
            kind, value, message, self.now, self.settings.effects[kind], lasting, spared=spared
        )
        old = (one.since for one in self.past.verdicts if one.identity == made.identity)
        return replace(made, since=next(old, self.now))


def _past(card: Gpu | LostGpu, before: CardHealth | None) -> CardHealth:
    """What was said of this card, and not of another one in its slot."""
    if before is None or (card.uuid and before.uuid and card.uuid != before.uuid):
        return CardHealth(card.uuid)
    return before


def _carried(past: CardHealth, condition: Condition | None, *, ailing: bool) -> Iterator[Verdict]:
    """What lasts, unless the card has recovered."""
    unknown = condition is None or condition.silent
    for verdict in past.lasting:
        if ailing or not verdict.ailing or unknown:
            yield verdict


def _is_ailing(card: Gpu | LostGpu, condition: Condition | None) -> bool:
    """Whether it must be recovered, as it stands now; one that only hangs may go on without."""
    is_gone = isinstance(card, LostGpu) and not card.hangs
    return is_gone or (condition is not None and condition.recovery not in _WELL)


def _events(bench: _Bench, heard: Iterable[Heard]) -> Iterator[Verdict]:
    for one in heard:
        event = one.event
        if not counts(event, bench.settings):
            continue
        if event.kind is EventKind.XID:
            text = f"{describe(event.number)}{one.where}"
            yield bench.verdict(Kind.XID, str(event.number), text, lasting=True, spared=one.spared)
        else:
            yield bench.verdict(
                _FATAL_EVENTS[event.kind],
                event.kind.value,
                f"{event.kind.value}{one.where}",
                lasting=True,
                spared=one.spared,
            )


def _states(
    bench: _Bench, card: Gpu | LostGpu, condition: Condition | None, past: CardHealth
) -> Iterator[Verdict]:
    """What the card says of itself now."""
    if isinstance(card, LostGpu):
        yield bench.verdict(Kind.LOST, card.reason, f"the GPU is lost: {card.reason}")
        return
    yield from _condition(bench, condition or Condition())
    fabric = card.fabric
    if fabric.state is FabricState.FAILED or (fabric.cluster_uuid and fabric.reason):
        yield bench.verdict(Kind.FABRIC, fabric.reason, f"NVLink fabric: {fabric.reason}")
    # In MIG mode links are down on purpose.
    down = past.links_up - _links_up(card)
    if down and not (card.mig and card.mig.enabled):
        text = ", ".join(map(str, sorted(down)))
        yield bench.verdict(Kind.NVLINK, text, f"NVLinks that were up are down: {text}")


def _condition(bench: _Bench, condition: Condition) -> Iterator[Verdict]:
    if condition.recovery not in _WELL:
        action = condition.recovery.value if condition.recovery else ""
        yield bench.verdict(Kind.RECOVERY, action, f"the driver asks for recovery: {action}")
    count = f" ({condition.uncorrected} uncorrected errors so far)" if condition.uncorrected else ""
    if condition.remap_failed:
        text = f"a broken memory row could not be replaced{count}"
        yield bench.verdict(Kind.MEMORY, "row remap failed", text)
    pending = {
        "row remap pending": condition.remap_pending,
        "page retirement pending": condition.pages_pending,
        "repair pending": condition.repair_pending,
    }
    waiting = [name for name, is_pending in pending.items() if is_pending]
    if waiting:
        text = ", ".join(waiting)
        message = f"{text}: a reset of the GPU completes it{count}"
        yield bench.verdict(Kind.MEMORY_PENDING, text, message)
    if condition.silent:
        text = f"this GPU does not say how it is: it {condition.silent}"
        yield bench.verdict(Kind.UNWATCHED, condition.silent, text)


def _unwatched(bench: _Bench, why: str | None) -> Iterator[Verdict]:
    if why:
        yield bench.verdict(
            Kind.UNWATCHED, why, f"errors of this GPU are not reported to us: {why}"
        )


def _settled(verdicts: Iterable[Verdict], settings: HealthSettings) -> tuple[Verdict, ...]:
    """Each once, what came first before what came later, with the effects that are set now.

    Of XIDs only so many about the whole card: another one would not keep anybody more off it.
    """
    once: dict[object, Verdict] = {}
    for verdict in verdicts:
        effect = settings.effects[verdict.kind]
        once.setdefault(verdict.identity, replace(verdict, effect=effect))
    xids = [key for key, one in once.items() if one.kind is Kind.XID and not one.spared]
    for key in xids[_MOST_XIDS:]:
        del once[key]
    return tuple(sorted(once.values(), key=lambda one: (_ORDER[one.kind], one.since)))


def _links_up(card: Gpu | LostGpu) -> frozenset[int]:
    links = card.links if isinstance(card, Gpu) else ()
    return frozenset(link.index for link in links if link.active)
