"""Random lives of a node: calls, crashes in the middle of them, power cuts, restarts, damage.

The model knows which containers may live: a claim is in use from its answer until the kubelet, which
calls only after the containers have ended, unprepares it, or until the power goes.
"""

import asyncio
import errno
import random
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dragoon.api.claims import ClaimRef
from dragoon.errors import DeviceBusyError, StateError
from dragoon.kube.port import CLAIMS
from dragoon.prepare.effects_memory import Crash, Faults, MemoryEffects
from dragoon.prepare.engine import Engine
from dragoon.prepare.injection import inject
from dragoon.prepare.journal import Journal
from dragoon.prepare.port import PreparedDevice
from tests.unit.prepare.scene import Scene, device, gpu, result
from tests.unit.prepare.scene import settings as prepare_settings

T = TypeVar("T")
PATHS = prepare_settings(Path("/node")).paths
GPUS = 3
# One prepare of one GPU has 13 effects, one unprepare 3.
FAULTS = st.one_of(
    st.builds(lambda k: Faults(crash_at=k), st.integers(0, 16)),
    st.builds(
        lambda k, number: Faults(failures={k: number}),
        st.integers(0, 16),
        st.sampled_from([errno.ENOSPC, errno.EIO, errno.EROFS]),
    ),
)


class NodeLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene()
        self.runner = asyncio.Runner()
        self.boots = 1
        self.claims: dict[ClaimRef, tuple[int, ...]] = {}
        self.answers: dict[ClaimRef, tuple[PreparedDevice, ...]] = {}
        self.in_use: set[ClaimRef] = set()
        self.admin: set[ClaimRef] = set()
        self.deleted: set[ClaimRef] = set()

    @initialize(data=st.data())
    def power_on(self, data: st.DataObject) -> None:
        """Five claims on three GPUs: the API server may be wrong."""
        self.start()
        for name in range(5):
            numbers = data.draw(
                st.lists(st.integers(0, GPUS - 1), min_size=1, max_size=2, unique=True)
            )
            admin = data.draw(st.sampled_from([False, False, False, True]))
            results = [
                result(n, request=f"r{i}/s", adminAccess=admin) for i, n in enumerate(numbers)
            ]
            claim = self.run(self.scene.claim(f"c{name}", *results))
            self.claims[claim] = tuple(numbers)
            if admin:
                self.admin.add(claim)

    def start(self) -> None:
        self.effects = MemoryEffects(self.scene.disk)
        self.engine: Engine = self.scene.engine(self.effects, wait_s=0.0)
        self.run(self.engine.start())
        self.check_agreement()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def existing(self) -> st.SearchStrategy[ClaimRef]:
        return st.sampled_from(sorted(self.claims.keys() - self.deleted, key=str))

    def arm(self, faults: Faults | None) -> None:
        """Faults count from the next effect on."""
        done = len(self.effects.performed)
        found = faults or Faults()
        self.effects.faults = Faults(
            crash_at=None if found.crash_at is None else done + found.crash_at,
            failures={done + k: number for k, number in found.failures.items()},
        )

    @rule(data=st.data())
    @precondition(lambda self: self.claims.keys() - self.deleted)
    def prepare(self, data: st.DataObject) -> None:
        self.try_prepare(data.draw(self.existing()), None)

    @rule(data=st.data(), faults=FAULTS)
    @precondition(lambda self: self.claims.keys() - self.deleted)
    def prepare_with_faults(self, data: st.DataObject, faults: Faults) -> None:
        self.try_prepare(data.draw(self.existing()), faults)

    def try_prepare(self, claim: ClaimRef, faults: Faults | None) -> None:
        self.arm(faults)
        try:
            answer = self.run(self.engine.prepare(claim))
        except Crash:
            self.start()
        except DeviceBusyError:
            assert claim not in self.admin
            assert self.conflicts(claim), "refused without a reason"
        except StateError:
            assert faults is not None
        else:
            assert [one.device for one in answer] == [device(n) for n in self.claims[claim]]
            assert answer == self.answers.setdefault(claim, answer)
            self.in_use.add(claim)
        self.arm(None)

    @rule(data=st.data(), faults=st.none() | FAULTS)
    def unprepare(self, data: st.DataObject, faults: Faults | None) -> None:
        claim = data.draw(st.sampled_from(sorted(self.claims, key=str)))
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
        self.start()
        kept = {entry.claim for entry in self.journal().contents().entries}
        assert answered <= kept, "the journal forgot what it had answered"

    @rule(data=st.data())
    @precondition(lambda self: self.in_use)
    def damage(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(sorted(self.in_use, key=str)))
        MemoryEffects(self.scene.disk).remove(PATHS.spec(claim.uid))
        self.start()

    @rule(data=st.data())
    @precondition(lambda self: self.claims.keys() - self.deleted)
    def delete(self, data: st.DataObject) -> None:
        """The claim goes; what no container can use of it is released."""
        claim = data.draw(self.existing())
        self.deleted.add(claim)
        self.run(self.scene.api.delete(CLAIMS, claim.name, namespace=claim.namespace))
        self.run(self.engine.reconcile())
        kept = {entry.claim for entry in self.journal().contents().entries}
        if claim in self.in_use:
            assert claim in kept, "released under a running container"
        else:
            assert not self.half_prepared(claim)

    @invariant()
    def no_gpu_has_two_owners(self) -> None:
        owned = [n for c in self.in_use if c not in self.admin for n in self.claims[c]]
        assert len(owned) == len(set(owned)), self.in_use

    @invariant()
    def every_container_can_restart(self) -> None:
        files = self.scene.disk.files()
        documents = [data for path, data in files.items() if path.parent == PATHS.cdi_folder]
        for claim in self.in_use:
            for one, number in zip(self.answers[claim], self.claims[claim], strict=True):
                got = inject(documents, one.cdi_ids)
                assert any(entry.endswith(gpu(number).uuid) for entry in got.env)
                assert all(Path(mount.host_path) in files for mount in got.mounts)

    def check_agreement(self) -> None:
        """What must hold after every start."""
        contents = self.journal().contents()
        assert not contents.broken
        assert not contents.set_aside, "a file was torn"
        now = self.scene.disk.boot_id
        entries = {entry.uid: entry for entry in contents.entries}
        specs = {
            PATHS.uid_of(path)
            for path in self.scene.disk.files()
            if path.parent == PATHS.cdi_folder
        }
        answered = {uid for uid, entry in entries.items() if entry.answered_in(now)}
        begun = {uid for uid, entry in entries.items() if entry.boot_id == now}
        assert answered <= specs <= begun

    def conflicts(self, claim: ClaimRef) -> bool:
        """Whether the journal holds a GPU of this claim for another one."""
        wanted = {device(n) for n in self.claims[claim]}
        return any(
            held.device in wanted and not held.admin_access
            for entry in self.journal().contents().entries
            if entry.claim != claim
            for held in entry.devices
        )

    def half_prepared(self, claim: ClaimRef) -> bool:
        entries = self.journal().contents().entries
        now = self.scene.disk.boot_id
        return any(entry.claim == claim and not entry.answered_in(now) for entry in entries)

    def journal(self) -> Journal:
        return Journal(MemoryEffects(self.scene.disk), PATHS)

    def teardown(self) -> None:
        try:
            self.arm(None)
            for claim in self.claims:
                self.run(self.engine.unprepare(claim))
            assert self.scene.files == {}, "something leaked"
        finally:
            self.runner.close()


NodeLife.TestCase.settings = settings(
    max_examples=80,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
test_no_life_of_a_node_gives_a_gpu_to_two_or_leaks = pytest.mark.timeout(300)(NodeLife.TestCase)
