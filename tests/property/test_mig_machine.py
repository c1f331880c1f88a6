"""Random lives of a card that is divided: by us, by other hands, with failures and reboots.

The adapter runs over the simulated library; beside it runs a model that knows only sets of memory
slices. Whatever happens: no overlap, no illegal placement, no leak, and both say the same.
"""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dragoon.errors import DragoonError, HardwareError, InvalidInputError
from dragoon.gpu.faults import (
    CardInUseError,
    FeatureMissingError,
    InstanceChangedError,
    PlacementTakenError,
)
from dragoon.gpu.mig import MigCard, MigInstance
from dragoon.gpu.model import MigProfile, Placement
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.occupants import ProcessState
from dragoon.gpu.sim.state import Fault
from tests.unit.gpu.rig import Rig, one_card

BREAKABLE = (
    "nvmlComputeInstanceDestroy",
    "nvmlComputeInstanceGetInfo_v2",
    "nvmlDeviceCreateGpuInstanceWithPlacement",
    "nvmlDeviceGetGpuInstances",
    "nvmlGpuInstanceCreateComputeInstance",
    "nvmlGpuInstanceDestroy",
    "nvmlGpuInstanceGetInfo",
)
CODES = st.sampled_from([6, 10, 19, 23, 999])
index = st.integers(0, 30)


@dataclass
class Known:
    """An instance as the model knows it. uuids: of its MIG devices; used: a process runs on it."""

    profile: MigProfile
    placement: Placement
    uuids: tuple[str, ...]
    ours: bool
    pid: int | None = None

    @property
    def slices(self) -> set[int]:
        return set(range(self.placement.start, self.placement.start + self.placement.size))


@dataclass
class Model:
    """What must be true of the card."""

    card: MigCard
    enabled: bool = False
    instances: list[Known] = field(default_factory=list)
    seen_uuids: set[str] = field(default_factory=set)

    def has_room(self, profile: MigProfile, placement: Placement) -> bool:
        wanted = set(range(placement.start, placement.start + placement.size))
        if any(wanted & one.slices for one in self.instances):
            return False
        if len([o for o in self.instances if o.profile == profile]) >= profile.instances:
            return False
        names = [one.profile.name for one in self.instances]
        return all(engines_fit(profile.name, name) for name in names)


def engines_fit(one: str, other: str) -> bool:
    if one.endswith("+me.all"):
        return other.endswith("-me")
    if other.endswith("+me.all"):
        return one.endswith("-me")
    return not (one.endswith("+me") and other.endswith("+me"))


class MigMachine(RuleBasedStateMachine):
    machine_name = ""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.next_pid = 100

    @initialize()
    def switch_on(self) -> None:
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.rig: Rig = self.stack.enter_context(one_card(self.machine_name, folder))
        self.address = self.rig.address(0)
        self.mig = self.rig.gpus.mig
        card = self.mig.card(self.address)
        assert card is not None
        self.model = Model(card)

    def teardown(self) -> None:
        self.stack.close()

    @rule(which=index, where=index)
    def create(self, which: int, where: int) -> None:
        profile = self.model.card.profiles[which % len(self.model.card.profiles)]
        placement = profile.placements[where % len(profile.placements)]
        expected: type[DragoonError] | None = None
        if not self.model.enabled:
            expected = FeatureMissingError
        elif not self.model.has_room(profile, placement):
            expected = PlacementTakenError
        made = self.attempt(
            expected, lambda: self.mig.create(self.address, profile.name, placement)
        )
        if made is not None:
            self.learn(made, profile, placement)

    @rule(which=index, start=st.integers(0, 9), size=st.integers(0, 9))
    def create_anywhere(self, which: int, start: int, size: int) -> None:
        profile = self.model.card.profiles[which % len(self.model.card.profiles)]
        placement = Placement(start, size)
        if placement not in profile.placements:
            self.attempt(
                InvalidInputError, lambda: self.mig.create(self.address, profile.name, placement)
            )

    @precondition(lambda self: self.model.instances)
    @rule(which=index)
    def destroy(self, which: int) -> None:
        known = self.pick(which)
        expected: type[DragoonError] | None = None
        if len(known.uuids) > 1:
            expected = InstanceChangedError
        elif known.pid is not None:
            expected = CardInUseError
        uuid = known.uuids[0] if known.uuids else None
        live = self.live(known)
        self.attempt(expected, lambda: self.mig.destroy(self.address, live.identity, uuid))
        if expected is None:
            self.model.instances.remove(known)

    @precondition(lambda self: self.model.instances)
    @rule(which=index, wrong=st.sampled_from(["MIG-other", None]))
    def destroy_what_is_not_meant(self, which: int, wrong: str | None) -> None:
        known = self.pick(which)
        if wrong is not None or known.uuids:
            identity = self.live(known).identity
            self.attempt(
                InstanceChangedError, lambda: self.mig.destroy(self.address, identity, wrong)
            )

    @precondition(lambda self: self.model.enabled)
    @rule(which=index, where=index, parts=st.sampled_from([None, (), (1,), (1, 1)]))
    def make_by_hand(self, which: int, where: int, parts: tuple[int, ...] | None) -> None:
        profile = self.model.card.profiles[which % len(self.model.card.profiles)]
        placement = profile.placements[where % len(profile.placements)]
        fits = parts is None or sum(parts) <= profile.slices
        expected = None if self.model.has_room(profile, placement) and fits else HardwareError
        made = self.attempt(
            expected,
            lambda: self.rig.hardware.make_by_hand(0, profile.name, placement.start, parts),
        )
        if made is not None:
            self.model.instances.append(Known(profile, placement, made, ours=False))
            self.model.seen_uuids |= set(made)

    @rule(symbol=st.sampled_from(BREAKABLE), code=CODES, which=index, where=index)
    def create_while_something_fails(self, symbol: str, code: int, which: int, where: int) -> None:
        """Whatever fails: an error, and either nothing or something that the walk shows."""
        profile = self.model.card.profiles[which % len(self.model.card.profiles)]
        placement = profile.placements[where % len(profile.placements)]
        before = self.uuids_by_place()
        self.rig.hardware.fail(Fault(symbol, code=code))
        try:
            made = self.mig.create(self.address, profile.name, placement)
        except DragoonError:
            made = None
        self.rig.hardware.lift(symbol)
        after = self.uuids_by_place()
        if made is not None:
            self.learn(made, profile, placement)
            return
        assert before.items() <= after.items()
        for place in after.keys() - before.keys():
            assert place == (profile.name, placement)
            self.model.instances.append(Known(profile, placement, after[place], ours=True))
            self.model.seen_uuids |= set(after[place])

    @precondition(lambda self: self.model.instances)
    @rule(symbol=st.sampled_from(BREAKABLE), code=CODES, which=index)
    def destroy_while_something_fails(self, symbol: str, code: int, which: int) -> None:
        """Another instance is never touched; this one is there, half there, or gone."""
        known = self.pick(which)
        if len(known.uuids) > 1:
            return
        identity, before = self.live(known).identity, self.uuids_by_place()
        self.rig.hardware.fail(Fault(symbol, code=code))
        uuid = known.uuids[0] if known.uuids else None
        try:
            self.mig.destroy(self.address, identity, uuid)
            failed = False
        except DragoonError:
            failed = True
        self.rig.hardware.lift(symbol)
        after, place = self.uuids_by_place(), (known.profile.name, known.placement)
        rest = {key: uuids for key, uuids in before.items() if key != place}
        assert {key: uuids for key, uuids in after.items() if key != place} == rest
        assert after.get(place) in {None, (), known.uuids}
        if place in after:
            assert failed
            known.uuids = after[place]
        else:
            self.model.instances.remove(known)

    @precondition(lambda self: self.model.instances)
    @rule(which=index)
    def start_process(self, which: int) -> None:
        known = self.pick(which)
        live = self.live(known)
        if live.compute and known.pid is None:
            self.next_pid += 1
            known.pid = self.next_pid
            inside = live.compute[0].identity
            self.rig.hardware.run(0, ProcessState(known.pid, "cuda", 1, live.identity, inside))

    @precondition(lambda self: any(one.pid for one in self.model.instances))
    @rule(which=index)
    def end_process(self, which: int) -> None:
        running = [one for one in self.model.instances if one.pid is not None]
        known = running[which % len(running)]
        assert known.pid is not None
        self.rig.hardware.end(0, known.pid)
        known.pid = None

    @rule(enabled=st.booleans())
    def set_mode(self, *, enabled: bool) -> None:
        blocked = self.model.instances and self.model.enabled != enabled
        expected = CardInUseError if blocked else None
        self.attempt(expected, lambda: self.mig.set_mode(self.address, enabled=enabled))
        if not blocked:
            self.model.enabled = enabled

    @rule()
    def reboot(self) -> None:
        self.rig.hardware.reboot()
        self.model.instances = []
        self.model.enabled = self.model.enabled and not self.model.card.resetless

    @rule()
    def reset(self) -> None:
        if not any(one.pid for one in self.model.instances):
            self.rig.hardware.reset(0)
            self.model.instances = []

    @rule()
    def another_process_sees_the_same(self) -> None:
        hardware = self.rig.hardware
        other = NvmlGpus(hardware.roots, stand_in=SimulatedLibrary(hardware))
        try:
            assert other.mig.instances(self.address) == self.mig.instances(self.address)
        finally:
            other.close()

    @invariant()
    def everything_is_as_it_must_be(self) -> None:
        if not hasattr(self, "model"):
            return
        seen = self.mig.instances(self.address)
        no_two_share_a_slice_and_all_lie_where_they_may(seen)
        self.the_adapter_sees_what_the_model_knows(seen)
        self.the_kernel_lists_exactly_the_devices_that_are_there(seen)

    def the_adapter_sees_what_the_model_knows(self, seen: tuple[MigInstance, ...]) -> None:
        expected = {(o.profile.name, o.placement): o.uuids for o in self.model.instances}
        assert by_place(seen) == expected
        card = self.mig.card(self.address)
        assert card is not None
        assert (card.mode.enabled, card.mode.pending) == (self.model.enabled, self.model.enabled)
        pids = {one.pid for one in self.model.instances if one.pid is not None}
        assert {process.pid for process in self.rig.gpus.processes(self.address)} == pids

    def the_kernel_lists_exactly_the_devices_that_are_there(
        self, seen: tuple[MigInstance, ...]
    ) -> None:
        roots = self.rig.hardware.roots
        listed = list((roots.proc / "driver/nvidia/capabilities").glob("gpu*/mig/gi*/**/access"))
        nodes = [node for one in seen for node in (one.node, *(ci.node for ci in one.compute))]
        assert None not in nodes
        assert len({node.minor for node in nodes if node}) == len(nodes) == len(listed)
        # Two more are for the configuration and the monitoring of MIG.
        assert len(list((roots.dev / "nvidia-caps").iterdir())) == len(nodes) + 2

    def attempt(self, expected: type[DragoonError] | None, change: Callable[[], Any]) -> Any:
        """The result, or None after a refusal of exactly the expected kind that changed nothing."""
        if expected is None:
            return change()
        before = self.mig.instances(self.address)
        with pytest.raises(expected):
            change()
        assert self.mig.instances(self.address) == before
        return None

    def learn(self, made: MigInstance, profile: MigProfile, placement: Placement) -> None:
        assert made.uuid is not None
        assert made.uuid not in self.model.seen_uuids
        self.model.seen_uuids.add(made.uuid)
        self.model.instances.append(Known(profile, placement, (made.uuid,), ours=True))

    def pick(self, which: int) -> Known:
        return self.model.instances[which % len(self.model.instances)]

    def live(self, known: Known) -> MigInstance:
        return next(
            one
            for one in self.mig.instances(self.address)
            if one.placement == known.placement and one.profile == known.profile
        )

    def uuids_by_place(self) -> dict[tuple[str, Placement], tuple[str, ...]]:
        return by_place(self.mig.instances(self.address))


def by_place(seen: tuple[MigInstance, ...]) -> dict[tuple[str, Placement], tuple[str, ...]]:
    return {(o.profile.name, o.placement): tuple(ci.uuid for ci in o.compute) for o in seen}


def no_two_share_a_slice_and_all_lie_where_they_may(seen: tuple[MigInstance, ...]) -> None:
    taken: set[int] = set()
    for one in seen:
        assert one.placement in one.profile.placements
        slices = set(range(one.placement.start, one.placement.start + one.placement.size))
        assert not taken & slices
        taken |= slices


@pytest.mark.parametrize("machine", ["dgx-a100-40gb", "dgx-h100", "a30-2way", "rtx-pro-6000-2way"])
def test_c19_c20_c21_any_life_of_a_divided_card(machine: str) -> None:
    kind = type("OneMigMachine", (MigMachine,), {"machine_name": machine})
    run_state_machine_as_test(
        kind, settings=settings(max_examples=8, stateful_step_count=30, deadline=None)
    )
