"""Random lives of a node whose cards are divided: by claims, by other hands, with crashes and cuts.

Over the fake, where a life is cheap, and over the simulated library with its faithful state machine.
"""

import asyncio
import errno
import random
import tempfile
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dragoon.api.claims import ClaimRef
from dragoon.errors import DeviceBusyError, HardwareError, StateError, UnknownDeviceError
from dragoon.gpu.faults import CardInUseError, PlacementTakenError, ResetRequiredError
from dragoon.gpu.mig import MigCard, MigInstance
from dragoon.gpu.model import MigMode, PciAddress, Placement
from dragoon.gpu.naming import mig_name
from dragoon.prepare.effects_memory import Crash, Faults, MemoryEffects
from dragoon.prepare.engine import Engine
from dragoon.prepare.injection import inject
from dragoon.prepare.mig_faults import MigHardware
from dragoon.prepare.port import PreparedDevice
from tests.contract.gpu.subjects import Simulated
from tests.unit.gpu.rig import one_card
from tests.unit.prepare.migging import A30, A100, H100, PATHS, RTX, MigScene
from tests.unit.prepare.scene import device, gpu, result

T = TypeVar("T")
# One prepare of one MIG device has 16 effects, one unprepare 5.
FAULTS = st.one_of(
    st.builds(lambda k: Faults(crash_at=k), st.integers(0, 20)),
    st.builds(
        lambda k, number: Faults(failures={k: number}),
        st.integers(0, 20),
        st.sampled_from([errno.ENOSPC, errno.EIO]),
    ),
)


class SimulatedCards:
    """`MigHardware` over the adapter and the simulated library: one card of each machine."""

    def __init__(self, stack: ExitStack, *machines: str) -> None:
        self._of: dict[PciAddress, tuple[Simulated, PciAddress]] = {}
        for number, machine in enumerate(machines):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            found = Simulated(stack.enter_context(one_card(machine, folder)))
            self._of[gpu(number).address] = (found, found.addresses[0])
            card = found.cards.card(found.addresses[0])
            if card is not None and not card.resetless:
                found.cards.set_mode(found.addresses[0], enabled=True)

    def card(self, address: PciAddress) -> MigCard | None:
        found, there = self._of[address]
        return found.cards.card(there)

    def instances(self, address: PciAddress) -> tuple[MigInstance, ...]:
        found, there = self._of[address]
        return found.cards.instances(there)

    def set_mode(self, address: PciAddress, *, enabled: bool) -> MigMode:
        found, there = self._of[address]
        return found.cards.set_mode(there, enabled=enabled)

    def create(self, address: PciAddress, profile: str, placement: Placement) -> MigInstance:
        found, there = self._of[address]
        return found.cards.create(there, profile, placement)

    def destroy(self, address: PciAddress, identity: int, uuid: str | None) -> None:
        found, there = self._of[address]
        found.cards.destroy(there, identity, uuid)

    def halve(self, address: PciAddress, identity: int) -> None:
        found, there = self._of[address]
        found.halve(there, identity)

    def reboot(self) -> None:
        for found, _ in self._of.values():
            found.reboot()


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


class DividedNode(RuleBasedStateMachine):
    """machines: one card of each. hardware: makes other hardware than the fake."""

    machines: tuple[str, ...] = (H100, A100, A30, RTX)
    simulated = False

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.scene = MigScene(*self.machines)
        if self.simulated:
            self.scene.disk.cards.mig = SimulatedCards(self.stack, *self.machines)
        self.runner = asyncio.Runner()
        self.boots = 1
        self.claims: dict[ClaimRef, Wish] = {}
        self.answers: dict[ClaimRef, tuple[PreparedDevice, ...]] = {}
        self.in_use: set[ClaimRef] = set()
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

    def start(self) -> None:
        self.effects = MemoryEffects(self.scene.disk)
        self.engine: Engine = self.scene.engine(self.effects, wait_s=0.0)
        self.run(self.engine.start())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def arm(self, faults: Faults | None) -> None:
        done = len(self.effects.performed)
        found = faults or Faults()
        self.effects.faults = Faults(
            crash_at=None if found.crash_at is None else done + found.crash_at,
            failures={done + k: number for k, number in found.failures.items()},
        )

    def drawn(self, data: st.DataObject) -> ClaimRef:
        return data.draw(st.sampled_from(sorted(self.claims, key=str)))

    @rule(data=st.data(), faults=st.none() | FAULTS)
    def prepare(self, data: st.DataObject, faults: Faults | None) -> None:
        claim = self.drawn(data)
        wish = self.claims[claim]
        self.arm(faults)
        try:
            answer = self.run(self.engine.prepare(claim))
        except Crash:
            self.start()
        except DeviceBusyError:
            assert any(wish.overlaps(other) for other in self.held(besides=claim))
        except (PlacementTakenError, CardInUseError):
            # Some combinations fail for engines that the names do not show.
            assert self.mig.instances(gpu(wish.number).address)
        except ResetRequiredError:
            assert not self.card(wish.number).resetless
            assert wish.placement is None
        except UnknownDeviceError:
            assert self.meddled
        except (StateError, HardwareError):
            assert faults is not None
        else:
            assert [one.device for one in answer] == [wish.name]
            assert answer == self.answers.setdefault(claim, answer)
            self.in_use.add(claim)
        self.arm(None)

    @rule(data=st.data(), faults=st.none() | FAULTS)
    def unprepare(self, data: st.DataObject, faults: Faults | None) -> None:
        claim = self.drawn(data)
        self.in_use.discard(claim)
        self.arm(faults)
        try:
            self.run(self.engine.unprepare(claim))
        except Crash:
            self.start()
        except StateError:
            assert faults is not None
        else:
            assert not any(claim.uid in name for name in self.scene.files)
        self.arm(None)

    @rule()
    def restart(self) -> None:
        self.effects.kill()
        self.start()

    @rule(seed=st.none() | st.integers(0, 1000))
    def cut_power(self, seed: int | None) -> None:
        self.effects.kill()
        self.in_use.clear()
        self.foreign.clear()
        self.boots += 1
        self.scene.disk.power_cut(
            f"boot-{self.boots}",
            wiped=[PATHS.cdi_folder],
            luck=None if seed is None else random.Random(seed),  # noqa: S311 - a seeded fault
        )
        self.start()
        assert not any(self.mig.instances(gpu(n).address) for n in range(len(self.machines)))

    @rule(data=st.data())
    def meddle(self, data: st.DataObject) -> None:
        """Somebody makes an instance where no claim has, or is about to have, one."""
        wish = data.draw(st.sampled_from([w for w in self.wishes() if w.placement]))
        address = gpu(wish.number).address
        free = not any(wish.overlaps(other) for other in self.held())
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
        if not any(place.overlaps(other) for other in self.held()):
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
        documents = [d for p, d in self.scene.disk.files().items() if p.parent == PATHS.cdi_folder]
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
            got = inject(documents, self.answers[claim][0].cdi_ids)
            assert any(entry.endswith(there.uuid) for entry in got.env)

    @invariant()
    def no_instance_is_nobody_s(self) -> None:
        """Each is somebody else's, or where a journal entry of this boot says; none is removed."""
        now = self.scene.disk.boot_id
        held = [
            (h.address, h.mig.profile, h.mig.placement)
            for entry in self.scene.entries()
            if entry.boot_id == now
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

    def held(self, *, besides: ClaimRef | None = None) -> list[Wish]:
        """What journal entries of this boot hold."""
        now = self.scene.disk.boot_id
        return [
            self.claims[entry.claim]
            for entry in self.scene.entries()
            if entry.claim != besides and entry.boot_id == now
        ]

    def teardown(self) -> None:
        try:
            self.restart()
            for claim in self.claims:
                self.run(self.engine.unprepare(claim))
            assert self.scene.files == {}, "something leaked"
            left = [
                (number, one.uuid)
                for number in range(len(self.machines))
                for one in self.mig.instances(gpu(number).address)
            ]
            assert set(left) == set(self.foreign)
            if not self.meddled:
                assert not self.card(0).mode.enabled, "nobody needs MIG mode any more"
        finally:
            self.runner.close()
            self.stack.close()


class NodeOfTheLibrary(DividedNode):
    machines = (H100,)
    simulated = True


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("node", "examples", "steps"), [(DividedNode, 80, 40), (NodeOfTheLibrary, 6, 20)]
)
def test_no_life_of_a_node_overlaps_or_leaks_instances(
    node: type[RuleBasedStateMachine], examples: int, steps: int
) -> None:
    run_state_machine_as_test(
        node,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
