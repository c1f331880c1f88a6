"""Case C19: what fits beside what, on the cards that divide into seven."""

import random
from pathlib import Path

import pytest

from dragoon.errors import InvalidInputError
from dragoon.gpu.faults import PlacementTakenError
from dragoon.gpu.model import Placement
from dragoon.gpu.sim.machine import Card
from dragoon.gpu.sim.partitioning import (
    RefusedError,
    has_room,
    profile_with,
    with_gpu_instance,
    with_mode,
)
from dragoon.gpu.sim.profiles import find_machine
from dragoon.gpu.sim.state import State, fresh
from tests.unit.gpu.rig import Rig, one_card

SEVENTHS = ("dgx-a100-40gb", "a100-80gb", "dgx-h100")
# Every way to fill such a card so that nothing more fits, by compute slices in order of their
# starts (MIG user guide, supported configurations).
FULL = {
    "7",
    "4 3",
    "4 2 1",
    "4 1 1 1",
    "3 3",
    "3 2 1",
    "3 1 1 1",
    "2 2 3",
    "2 2 2 1",
    "2 2 1 1 1",
    "2 1 1 3",
    "2 1 1 2 1",
    "2 1 1 1 1 1",
    "1 1 2 3",
    "1 1 2 2 1",
    "1 1 2 1 1 1",
    "1 1 1 1 3",
    "1 1 1 1 2 1",
    "1 1 1 1 1 1 1",
}
Layout = frozenset[tuple[int, Placement]]  # ids of profiles, and where


def divided(machine: str) -> State:
    state, _ = with_mode(fresh(find_machine(machine), "node"), 0, wanted=True)
    return state


def main_places(card: Card) -> list[tuple[int, Placement]]:
    """The placements of the profiles without a suffix, and without double memory."""
    profiles = [p for p in card.mig if p.name.endswith("gb") and p.number != 9]
    return [(p.identity, place) for p in profiles for place in p.placements]


def full_layouts(machine: str) -> set[Layout]:
    """Every layout in which nothing more fits, by trying all ways to get there."""
    card = find_machine(machine).cards[0]
    places = main_places(card)
    seen: set[Layout] = set()
    full: set[Layout] = set()
    waiting: list[tuple[State, Layout]] = [(divided(machine), frozenset())]
    while waiting:
        state, layout = waiting.pop()
        if layout in seen:
            continue
        seen.add(layout)
        more = [
            (with_gpu_instance(state, 0, identity, place)[0], layout | {(identity, place)})
            for identity, place in places
            if has_room(card, state.cards[0], profile_with(card, identity), place)
        ]
        waiting += more
        if not more:
            full.add(layout)
    return full


def written(card: Card, layout: Layout) -> str:
    ordered = sorted(layout, key=lambda one: one[1].start)
    return " ".join(str(profile_with(card, identity).slices) for identity, _ in ordered)


@pytest.mark.parametrize("machine", SEVENTHS)
def test_c19_the_full_layouts_are_exactly_the_nineteen_of_the_guide(machine: str) -> None:
    card = find_machine(machine).cards[0]
    layouts = full_layouts(machine)
    assert len(layouts) == len(FULL) == 19
    assert {written(card, layout) for layout in layouts} == FULL


@pytest.mark.parametrize("machine", SEVENTHS)
def test_c19_every_full_layout_can_be_made_in_any_order(machine: str) -> None:
    draw, empty = random.Random(19), divided(machine)  # noqa: S311 - orders, no secrets
    for layout in full_layouts(machine):
        for _ in range(20):
            state = empty
            for identity, place in draw.sample(sorted(layout), len(layout)):
                state, _ = with_gpu_instance(state, 0, identity, place)
            assert {(one.profile, one.placement) for one in state.cards[0].instances} == layout


class Bench:
    """The adapter on one divided card, by compute slices instead of names."""

    def __init__(self, machine: Rig) -> None:
        self.address = machine.address(0)
        self.mig = machine.gpus.mig
        self.mig.set_mode(self.address, enabled=True)
        card = self.mig.card(self.address)
        assert card is not None
        self.names = {p.slices: p for p in card.profiles if p.name.endswith("gb") and p.number != 9}

    def make(self, slices: int, *starts: int) -> None:
        for start in starts:
            self.mig.create(self.address, self.names[slices].name, self.place(slices, start))

    def place(self, slices: int, start: int) -> Placement:
        return Placement(start, self.names[slices].size)

    def refuses(self, slices: int, start: int) -> bool:
        before = self.mig.instances(self.address)
        try:
            self.make(slices, start)
        except (PlacementTakenError, InvalidInputError):
            assert self.mig.instances(self.address) == before
            return True
        return False

    def free_starts(self, slices: int) -> list[int]:
        """Where one more can be made: found by making it, and taking it back."""
        found = []
        for start in range(8):
            if not self.refuses(slices, start):
                found.append(start)
                made = next(
                    one
                    for one in self.mig.instances(self.address)
                    if one.placement == self.place(slices, start)
                )
                self.mig.destroy(self.address, made.identity, made.uuid)
        return found

    def clear(self) -> None:
        for one in self.mig.instances(self.address):
            self.mig.destroy(self.address, one.identity, one.uuid)


@pytest.mark.parametrize("machine", SEVENTHS)
def test_c19_the_rules_of_the_case_hold_on_the_node(machine: str, tmp_path: Path) -> None:
    with one_card(machine, tmp_path) as rig:
        bench = Bench(rig)
        bench.make(1, 0, 1, 5)
        assert [bench.free_starts(slices) for slices in (2, 3, 4, 7)] == [[2], [], [], []]
        bench.clear()
        bench.make(3, 0, 4)
        assert [bench.free_starts(slices) for slices in (1, 2, 3, 4)] == [[], [], [], []]
        bench.clear()
        bench.make(4, 0)
        assert bench.refuses(4, 4)
        assert bench.refuses(4, 0)
        bench.make(3, 4)
        bench.clear()
        bench.make(3, 0)
        assert bench.refuses(4, 0)
        assert bench.free_starts(3) == [4]
        bench.clear()
        bench.make(1, *range(7))
        assert bench.refuses(1, 7)
        bench.clear()
        bench.make(1, 0, 1)
        bench.make(2, 2)
        assert bench.free_starts(3) == [4]


def test_c19_an_illegal_start_is_refused_with_the_legal_ones(tmp_path: Path) -> None:
    with one_card("dgx-a100-40gb", tmp_path) as rig:
        bench = Bench(rig)
        with pytest.raises(InvalidInputError, match=r"found 4:4, allowed: 0:4"):
            bench.make(4, 4)


def test_media_engines_are_few() -> None:
    """One `+me` on a card, whatever its size; beside `+me.all` only profiles without engines."""

    def fits(*names: str) -> bool:
        state = divided(machine)
        card = state.machine.cards[0]
        try:
            for name in names:
                identity = next(p.identity for p in card.mig if p.name == name)
                state, _ = with_gpu_instance(state, 0, identity, None)
        except RefusedError:
            return False
        return True

    machine = "a30-2way"
    assert not fits("1g.6gb+me", "2g.12gb+me")
    assert fits("1g.6gb+me", "2g.12gb", "1g.6gb")
    machine = "rtx-pro-6000-2way"
    assert fits("1g.24gb+me.all", "1g.24gb-me", "2g.48gb-me")
    assert not fits("1g.24gb+me.all", "1g.24gb")
    assert not fits("1g.24gb", "1g.24gb+me.all")
    assert not fits("1g.24gb+me.all", "1g.24gb+gfx")
    assert fits("1g.24gb+me", "1g.24gb", "1g.24gb+gfx", "1g.24gb-me")
