"""Random lives of a node whose cards are divided: by claims, by other hands, with crashes and cuts.

Over the fake, where a life is cheap, and over the simulated library with its faithful state machine.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dragoon.api.claims import ClaimRef
from dragoon.errors import (
    DeviceBusyError,
    DragoonError,
    HardwareError,
    StateError,
    UnknownDeviceError,
)
from dragoon.gpu.faults import CardInUseError, PlacementTakenError, ResetRequiredError
from dragoon.gpu.mig import MigCard
from dragoon.gpu.model import Placement
from dragoon.gpu.naming import mig_name
from dragoon.prepare.mig_faults import MigHardware
from dragoon.prepare.port import PreparedDevice
from tests.property.node_life import NodeLife, run_lives, timeout
from tests.property.simulated_cards import one_of_each
from tests.unit.prepare.migging import A30, A100, H100, RTX, MigScene
from tests.unit.prepare.scene import device, gpu, result


@dataclass(frozen=True)
class Wish:
    """What a claim was allocated: a card, and a part of it or all of it (None)."""

    number: int
    name: str
    profile: str = ""
    placement: Placement | None = None

    def overlaps(self, other: "Wish") -> bool:
        if self.number != other.number:
            return False
        if self.placement is None or other.placement is None:
            return True
        return self.placement.overlaps(other.placement)


class DividedNode(NodeLife[Wish]):
    """machines: one card of each. simulated: behind the adapter, in place of the fake."""

    machines: tuple[str, ...] = (H100, A100, A30, RTX)
    simulated = False
    effects_of_a_call = 20
    """One prepare of one MIG device has 16, one unprepare 5."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        super().__init__(MigScene(*self.machines))
        if self.simulated:
            self.scene.disk.cards.mig = one_of_each(self.stack, *self.machines)
        self.foreign: list[tuple[int, str | None]] = []
        self.meddled = False
        self.start()

    @property
    def mig(self) -> MigHardware:
        return self.scene.disk.cards.mig

    @initialize(data=st.data())
    def allocate(self, data: st.DataObject) -> None:
        """Eight claims: the API server may be wrong, so what they got may overlap."""
        every = [*self.wishes()]
        for name in range(8):
            wish = data.draw(st.sampled_from(every))
            claim = self.run(self.scene.claim(f"c{name}", result(wish.number, device=wish.name)))
            self.claims[claim] = wish

    def wishes(self) -> Iterator[Wish]:
        for number in range(len(self.machines)):
            yield Wish(number, device(number))
            card = self.card(number)
            for profile in card.profiles:
                for placement in profile.placements:
                    name = mig_name(gpu(number).address, profile, placement.start)
                    yield Wish(number, name, profile.name, placement)

    def card(self, number: int) -> MigCard:
        found = self.mig.card(gpu(number).address)
        assert found is not None
        return found

    def check_refusal(self, claim: ClaimRef, error: DragoonError, *, broken: bool) -> None:
        wish = self.claims[claim]
        match error:
            case DeviceBusyError():
                assert any(wish.overlaps(other) for other in self.wished(besides=claim))
            case PlacementTakenError() | CardInUseError():
                # Some combinations fail for engines that the names do not show.
                assert self.mig.instances(gpu(wish.number).address)
            case ResetRequiredError():
                assert not self.card(wish.number).resetless
                assert wish.placement is None
            case UnknownDeviceError():
                assert self.meddled
            case _:
                assert isinstance(error, StateError | HardwareError)
                assert broken

    def check_answer(self, claim: ClaimRef, answer: tuple[PreparedDevice, ...]) -> None:
        assert [one.device for one in answer] == [self.claims[claim].name]

    def check_boot(self) -> None:
        self.foreign.clear()
        assert not any(self.mig.instances(gpu(n).address) for n in range(len(self.machines)))

    @rule(data=st.data())
    def meddle(self, data: st.DataObject) -> None:
        """Somebody makes an instance where no claim has, or is about to have, one."""
        wish = data.draw(st.sampled_from([w for w in self.wishes() if w.placement]))
        address = gpu(wish.number).address
        free = not any(wish.overlaps(other) for other in self.wished())
        if not free or wish.placement is None:
            return
        try:
            self.mig.set_mode(address, enabled=True)
            made = self.mig.create(address, wish.profile, wish.placement)
        except HardwareError:
            return
        self.meddled = True
        self.foreign.append((wish.number, made.uuid))

    @rule(data=st.data())
    @precondition(lambda self: self.foreign)
    def tidy_up(self, data: st.DataObject) -> None:
        """Somebody removes an instance of his that no claim has."""
        theirs = self.foreign[data.draw(st.integers(0, len(self.foreign) - 1))]
        address = gpu(theirs[0]).address
        (found,) = [one for one in self.mig.instances(address) if one.uuid == theirs[1]]
        place = Wish(theirs[0], "", found.profile.name, found.placement)
        if not any(place.overlaps(other) for other in self.wished()):
            self.foreign.remove(theirs)
            self.mig.destroy(address, found.identity, found.uuid)

    @rule(data=st.data())
    @precondition(lambda self: any(self.claims[c].placement for c in self.in_use))
    def lose(self, data: st.DataObject) -> None:
        """An instance of ours vanishes; a look at the node brings another one."""
        mine = sorted((c for c in self.in_use if self.claims[c].placement), key=str)
        wish = self.claims[data.draw(st.sampled_from(mine))]
        address = gpu(wish.number).address
        for one in self.mig.instances(address):
            theirs = (wish.number, one.uuid) in self.foreign
            if one.placement == wish.placement and not theirs:
                self.mig.destroy(address, one.identity, one.uuid)
        self.start()

    @invariant()
    def no_part_of_a_card_has_two_owners(self) -> None:
        used = [self.claims[claim] for claim in self.in_use]
        for number, one in enumerate(used):
            assert not any(one.overlaps(other) for other in used[number + 1 :])

    @invariant()
    def every_container_has_its_instance_alone(self) -> None:
        for claim in self.in_use:
            wish = self.claims[claim]
            if wish.placement is None:
                continue
            (there,) = [
                one
                for one in self.mig.instances(gpu(wish.number).address)
                if (one.profile.name, one.placement) == (wish.profile, wish.placement)
            ]
            assert there.uuid is not None
            assert any(entry.endswith(there.uuid) for entry in self.inside(claim).env)

    @invariant()
    def no_instance_is_nobody_s(self) -> None:
        """Each is somebody else's, or where a journal entry of this boot says; none is removed."""
        held = [
            (h.address, h.mig.profile, h.mig.placement)
            for entry in self.held()
            for h in entry.devices
            if h.mig is not None and h.mig.made
        ]
        seen = set()
        for number in range(len(self.machines)):
            address = gpu(number).address
            for one in self.mig.instances(address):
                seen.add((number, one.uuid))
                ours = (str(address), one.profile.name, one.placement) in held
                assert ours or (number, one.uuid) in self.foreign
        assert seen.issuperset(self.foreign)

    def wished(self, *, besides: ClaimRef | None = None) -> list[Wish]:
        """What journal entries of this boot hold."""
        return [self.claims[entry.claim] for entry in self.held(besides=besides)]

    def teardown(self) -> None:
        with self.stack:
            self.restart()
            super().teardown()

    def check_end(self) -> None:
        left = [
            (number, one.uuid)
            for number in range(len(self.machines))
            for one in self.mig.instances(gpu(number).address)
        ]
        assert set(left) == set(self.foreign)
        if not self.meddled:
            assert not self.card(0).mode.enabled, "nobody needs MIG mode any more"


class NodeOfTheLibrary(DividedNode):
    machines = (H100,)
    simulated = True


@timeout
@pytest.mark.parametrize(
    ("node", "lives", "steps"), [(DividedNode, 80, 40), (NodeOfTheLibrary, 6, 20)]
)
def test_no_life_of_a_node_overlaps_or_leaks_instances(
    node: type[RuleBasedStateMachine], lives: int, steps: int
) -> None:
    run_lives(node, lives=lives, steps=steps)
