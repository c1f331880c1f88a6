"""Whatever happens to cards in whatever order: what is judged of them stays true."""

from dataclasses import dataclass, field, replace

import hypothesis.strategies as st
from hypothesis import given

from dragoon.gpu.condition import Condition, EventKind, GpuEvent, Recovery
from dragoon.gpu.model import Gpu, Inventory, LostGpu, PciAddress
from dragoon.health.judging import Observed, judge
from dragoon.health.remembering import decode, encode, merged
from dragoon.health.reports import State, report
from dragoon.health.scope import Heard
from dragoon.health.settings import HealthSettings
from dragoon.health.verdict import Health, Kind
from dragoon.health.xids import condemns
from tests.unit.health.cards import at, gpu, lost

CARDS = 3
SETTINGS = HealthSettings()
numbers = st.sampled_from([13, 31, 48, 63, 79, 94, 154, 999])
recoveries = st.sampled_from([None, Recovery.NONE, Recovery.GPU_RESET, Recovery.NODE_REBOOT])
conditions = st.builds(
    Condition,
    recovery=recoveries,
    remap_pending=st.sampled_from([None, False, True]),
    remap_failed=st.sampled_from([None, False, True]),
)
cards = st.sampled_from(["there", "lost", "replaced", "away"])


@dataclass(frozen=True)
class Round:
    """What is seen at one moment: of each card how it is, what it says, and what it raised."""

    states: tuple[str, ...]
    said: tuple[Condition | None, ...]
    raised: tuple[tuple[int, int], ...]

    def observed(self) -> Observed:
        seen = [_card(number, state) for number, state in enumerate(self.states)]
        found = [card for card in seen if card is not None]
        return Observed(
            Inventory(
                gpus=tuple(card for card in found if isinstance(card, Gpu)),
                lost=tuple(card for card in found if isinstance(card, LostGpu)),
            ),
            {
                at(number): said
                for number, (state, said) in enumerate(zip(self.states, self.said, strict=True))
                if said is not None and state in {"there", "replaced"}
            },
            [Heard(GpuEvent(EventKind.XID, at(card), xid)) for card, xid in self.raised],
        )


def _card(number: int, state: str) -> Gpu | LostGpu | None:
    known: dict[str, Gpu | LostGpu] = {
        "there": gpu(number),
        "lost": lost(number),
        "replaced": gpu(number, uuid=f"GPU-new-{number}"),
    }
    return known.get(state)


rounds = st.lists(
    st.builds(
        Round,
        st.tuples(*[cards] * CARDS),
        st.tuples(*[st.none() | conditions] * CARDS),
        st.lists(st.tuples(st.integers(0, CARDS - 1), numbers), max_size=3).map(tuple),
    ),
    max_size=8,
)


@dataclass
class Model:
    """What must be known of fatal XIDs, told apart from how it is computed."""

    fatal: dict[int, dict[int, bool]] = field(default_factory=dict)
    """By card: its fatal XIDs, and whether the card needed recovery since."""
    uuids: dict[int, str] = field(default_factory=dict)

    def see(self, one: Round) -> None:
        for number, (state, said) in enumerate(zip(one.states, one.said, strict=True)):
            if state == "away":
                continue
            held = self.fatal.setdefault(number, {})
            uuid = f"GPU-new-{number}" if state == "replaced" else f"GPU-{number}"
            if self.uuids.get(number, uuid) != uuid:
                held.clear()
            self.uuids[number] = uuid
            needs = state == "lost" or (
                said is not None and said.recovery not in {None, Recovery.NONE}
            )
            well = not needs and state != "lost" and said is not None
            for xid, ailing in list(held.items()):
                if ailing and well:
                    del held[xid]
            for card, xid in one.raised:
                if card == number and condemns(xid, SETTINGS):
                    held.setdefault(xid, False)
            if needs:
                held.update(dict.fromkeys(held, True))

    def expected(self) -> dict[PciAddress, set[str]]:
        return {at(card): set(map(str, xids)) for card, xids in self.fatal.items()}


def lived(history: list[Round]) -> tuple[Health, Model]:
    health: Health = {}
    model = Model()
    for moment, one in enumerate(history):
        health = judge(one.observed(), health, SETTINGS, now=float(moment))
        model.see(one)
    return health, model


def fatal(health: Health) -> dict[PciAddress, set[str]]:
    return {
        address: {verdict.value for verdict in card.verdicts if verdict.kind is Kind.XID}
        for address, card in health.items()
    }


@given(rounds)
def test_a_fatal_xid_is_held_exactly_until_its_card_recovered_or_left(
    history: list[Round],
) -> None:
    health, model = lived(history)
    assert fatal(health) == model.expected()


@given(rounds)
def test_a_restart_at_any_moment_forgets_nothing_that_lasts(history: list[Round]) -> None:
    health: Health = {}
    for moment, one in enumerate(history):
        health = judge(one.observed(), health, SETTINGS, now=float(moment))
        again = decode(encode(health, "boot"), "boot", SETTINGS)
        assert {a: card.lasting for a, card in health.items() if card.lasting} == {
            a: card.verdicts for a, card in again.items()
        }
        assert fatal(merged(again, {})) == {a: x for a, x in fatal(health).items() if x}


@given(rounds)
def test_what_one_card_does_changes_nothing_about_another(history: list[Round]) -> None:
    health, _ = lived(history)
    quiet = [
        replace(
            one,
            states=(one.states[0], *["there"] * (CARDS - 1)),
            said=(one.said[0], *[None] * (CARDS - 1)),
            raised=tuple((card, xid) for card, xid in one.raised if card == 0),
        )
        for one in history
    ]
    alone, _ = lived(quiet)
    assert alone.get(at(0)) == health.get(at(0))


@given(rounds)
def test_a_device_is_unhealthy_exactly_when_its_card_has_a_verdict_that_taints(
    history: list[Round],
) -> None:
    health, _ = lived(history)
    names = {f"gpu-{address.slug}": card for address, card in health.items()}
    found = report("pool", names, health)
    assert {one.device for one in found.devices if one.state is State.UNHEALTHY} == {
        name for name, card in names.items() if any(v.taints for v in card.verdicts)
    }
    assert all(one.message for one in found.devices if one.state is State.UNHEALTHY)
