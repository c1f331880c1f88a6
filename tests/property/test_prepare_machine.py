"""Random lives of a node: calls, crashes in the middle of them, power cuts, restarts, damage."""

from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from dragoon.api.claims import ClaimRef
from dragoon.errors import DeviceBusyError, DragoonError, StateError
from dragoon.kube.port import CLAIMS
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.port import PreparedDevice
from tests.property.node_life import PATHS, NodeLife, run_lives, timeout
from tests.unit.prepare.scene import Scene, device, gpu, result

GPUS = 3


@dataclass(frozen=True)
class Cards:
    """The GPUs that a claim was allocated; with admin access others may have them, too."""

    numbers: tuple[int, ...]
    admin: bool


class WholeGpus(NodeLife[Cards]):
    effects_of_a_call = 16
    """One prepare of one GPU has 13, one unprepare 3."""

    def __init__(self) -> None:
        super().__init__(Scene())
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
            self.claims[claim] = Cards(tuple(numbers), admin)

    def can_be_prepared(self) -> list[ClaimRef]:
        return sorted(self.claims.keys() - self.deleted, key=str)

    def check_answer(self, claim: ClaimRef, answer: tuple[PreparedDevice, ...]) -> None:
        wanted = [device(number) for number in self.claims[claim].numbers]
        assert [one.device for one in answer] == wanted

    def check_refusal(self, claim: ClaimRef, error: DragoonError, *, broken: bool) -> None:
        if isinstance(error, DeviceBusyError):
            assert not self.claims[claim].admin
            assert self.conflicts(claim), "refused without a reason"
        else:
            assert isinstance(error, StateError)
            assert broken

    @rule(data=st.data())
    @precondition(lambda self: self.in_use)
    def damage(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(sorted(self.in_use, key=str)))
        MemoryEffects(self.scene.disk).remove(PATHS.spec(claim.uid))
        self.start()

    @rule(data=st.data())
    @precondition(lambda self: self.can_be_prepared())
    def delete(self, data: st.DataObject) -> None:
        """The claim goes; what no container can use of it is released."""
        claim = data.draw(st.sampled_from(self.can_be_prepared()))
        self.deleted.add(claim)
        self.run(self.scene.api.delete(CLAIMS, claim.name, namespace=claim.namespace))
        self.run(self.engine.reconcile())
        kept = {entry.claim: entry for entry in self.journal().entries}
        if claim in self.in_use:
            assert claim in kept, "released under a running container"
        else:
            assert claim not in kept or kept[claim].answered_in(self.scene.disk.boot_id)

    @invariant()
    def no_gpu_has_two_owners(self) -> None:
        alone = [self.claims[claim] for claim in self.in_use if not self.claims[claim].admin]
        owned = [number for one in alone for number in one.numbers]
        assert len(owned) == len(set(owned)), self.in_use

    @invariant()
    def every_container_can_restart(self) -> None:
        files = self.scene.disk.files()
        for claim in self.in_use:
            got = self.inside(claim)
            for number in self.claims[claim].numbers:
                assert any(entry.endswith(gpu(number).uuid) for entry in got.env)
            assert all(Path(mount.host_path) in files for mount in got.mounts)

    def check_start(self) -> None:
        contents = self.journal()
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
        wanted = {device(number) for number in self.claims[claim].numbers}
        return any(
            held.device in wanted and not held.admin_access
            for entry in self.journal().entries
            if entry.claim != claim
            for held in entry.devices
        )


@timeout
def test_no_life_of_a_node_gives_a_gpu_to_two_or_leaks() -> None:
    run_lives(WholeGpus, lives=80, steps=30)
