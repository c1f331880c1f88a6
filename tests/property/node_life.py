"""What random lives of a node have in common: calls that may break, restarts, power cuts, a leak hunt.

The model knows which containers may live: a claim is in use from its answer until the kubelet, which
calls only after the containers have ended, unprepares it, or until the power goes.
"""

import asyncio
import errno
import random
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dragoon.api.claims import ClaimRef
from dragoon.errors import DragoonError, StateError
from dragoon.prepare.effects_memory import Crash, Faults, MemoryEffects
from dragoon.prepare.engine import Engine
from dragoon.prepare.injection import Injected, inject
from dragoon.prepare.journal import Contents, Entry, Journal
from dragoon.prepare.port import PreparedDevice
from tests.unit.prepare.scene import Scene
from tests.unit.prepare.scene import settings as prepare_settings

T = TypeVar("T")
Wish = TypeVar("Wish")
PATHS = prepare_settings(Path("/node")).paths


def faults_within(effects: int) -> st.SearchStrategy[Faults]:
    """A crash or an error in one of the next effects."""
    return st.one_of(
        st.builds(lambda k: Faults(crash_at=k), st.integers(0, effects)),
        st.builds(
            lambda k, number: Faults(failures={k: number}),
            st.integers(0, effects),
            st.sampled_from([errno.ENOSPC, errno.EIO, errno.EROFS]),
        ),
    )


class NodeLife(RuleBasedStateMachine, Generic[Wish]):
    """Engines, one after the other, on one disk in memory.

    Subclasses fill `claims` (what each was allocated) and say what an answer or a refusal must be.
    effects: how many one call has, at most.
    """

    effects_of_a_call = 26

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self.scene = scene
        self.runner = asyncio.Runner()
        self.boots = 1
        self.claims: dict[ClaimRef, Wish] = {}
        self.answers: dict[ClaimRef, tuple[PreparedDevice, ...]] = {}
        self.in_use: set[ClaimRef] = set()
        self.calls = 0

    def start(self) -> None:
        """A plugin process starts."""
        self.calls = 0
        self.effects = MemoryEffects(self.scene.disk)
        self.engine = self.new_engine()
        self.run(self.engine.start())
        self.check_start()

    def new_engine(self) -> Engine:
        """The engine of that process."""
        return self.scene.engine(self.effects, wait_s=0.0)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def arm(self, faults: Faults | None) -> None:
        """A call begins, or (None) has ended; faults count from the next effect on."""
        self.calls += 1
        done = len(self.effects.performed)
        found = faults or Faults()
        self.effects.faults = Faults(
            crash_at=None if found.crash_at is None else done + found.crash_at,
            failures={done + k: number for k, number in found.failures.items()},
        )

    @rule(data=st.data())
    @precondition(lambda self: self.can_be_prepared())
    def prepare(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.can_be_prepared()))
        self.try_prepare(claim, data.draw(st.none() | faults_within(self.effects_of_a_call)))

    def try_prepare(self, claim: ClaimRef, faults: Faults | None) -> None:
        self.arm(faults)
        try:
            answer = self.run(self.engine.prepare(claim))
        except Crash:
            self.start()
        except DragoonError as error:
            self.check_refusal(claim, error, broken=faults is not None)
        else:
            assert answer == self.answers.setdefault(claim, answer)
            self.check_answer(claim, answer)
            self.in_use.add(claim)
        self.arm(None)

    @rule(data=st.data())
    @precondition(lambda self: self.claims)
    def unprepare(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(sorted(self.claims, key=str)))
        faults = data.draw(st.none() | faults_within(self.effects_of_a_call))
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
    @precondition(lambda self: self.calls)
    def restart(self) -> None:
        self.effects.kill()
        self.start()

    @precondition(lambda self: self.calls)
    @rule(seed=st.none() | st.integers(0, 1000), tmpfs=st.booleans())
    def cut_power(self, seed: int | None, tmpfs: bool) -> None:
        answered = set(self.in_use)
        self.effects.kill()
        self.in_use.clear()
        self.boots += 1
        self.scene.disk.power_cut(
            f"boot-{self.boots}",
            wiped=[PATHS.cdi_folder] if tmpfs else [],
            luck=None if seed is None else random.Random(seed),  # noqa: S311 - a seeded fault
        )
        self.check_boot()
        self.start()
        kept = {entry.claim for entry in self.journal().entries}
        assert answered <= kept, "the journal forgot what it had answered"

    def can_be_prepared(self) -> list[ClaimRef]:
        """Claims that the kubelet may ask for."""
        return sorted(self.claims, key=str)

    def check_start(self) -> None:
        """What must hold after every start."""

    def check_boot(self) -> None:
        """What is so after the power was cut, before the plugin starts."""

    def check_answer(self, claim: ClaimRef, answer: tuple[PreparedDevice, ...]) -> None:
        """What a claim that was prepared must have been given."""

    def check_refusal(self, claim: ClaimRef, error: DragoonError, *, broken: bool) -> None:
        """Whether there was a reason. broken: a fault was in the way."""
        raise NotImplementedError

    def journal(self) -> Contents:
        """What a new process would read."""
        return Journal(MemoryEffects(self.scene.disk), PATHS).contents()

    def held(self, *, besides: ClaimRef | None = None) -> list[Entry]:
        """The entries of this boot, but for one claim's."""
        now = self.scene.disk.boot_id
        return [
            one for one in self.journal().entries if one.boot_id == now and one.claim != besides
        ]

    def inside(self, claim: ClaimRef) -> Injected:
        """What a container of a claim gets that starts now."""
        files = self.scene.disk.files()
        documents = [data for path, data in files.items() if path.parent == PATHS.cdi_folder]
        return inject(documents, [i for one in self.answers[claim] for i in one.cdi_ids])

    def teardown(self) -> None:
        try:
            if hasattr(self, "engine"):
                self.arm(None)
                for claim in self.claims:
                    self.run(self.engine.unprepare(claim))
                assert self.scene.files == {}, "something leaked"
                self.check_end()
        finally:
            self.runner.close()

    def check_end(self) -> None:
        """What must hold when every claim was unprepared."""


def run_lives(machine: type[RuleBasedStateMachine], *, lives: int, steps: int) -> None:
    """Runs so many lives of so many steps."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=lives,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


timeout = pytest.mark.timeout(300)
