"""What every implementation of `gpu.port.MemoryLimits` does."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dragoon.errors import DeviceLostError, InvalidInputError, StateError
from dragoon.gpu.faults import FeatureMissingError
from dragoon.gpu.limits import MemoryLimit
from dragoon.gpu.limits_memory import MemoryCaps
from dragoon.gpu.model import PciAddress
from dragoon.gpu.port import MemoryLimits
from dragoon.gpu.sim.occupants import Accounting, ProcessState
from tests.unit.gpu.rig import rig

GIB = 1 << 30


@dataclass
class Subject:
    limits: MemoryLimits
    addresses: list[PciAddress]
    machine: Any  # the rig, or the fake itself

    def use(self, cgroup: Path, size: int) -> None:
        if isinstance(self.machine, MemoryCaps):
            self.machine.used[self.addresses[0], cgroup] = size
        else:
            self.machine.hardware.run(0, ProcessState(42, "p", size, cgroup=str(cgroup)))

    def forget_caps(self) -> None:
        """An older driver."""
        if isinstance(self.machine, MemoryCaps):
            self.machine.is_supported = False
        else:
            self.machine.hardware.set_accounting(None)


@pytest.fixture(params=["simulated", "faked"])
def subject(request: Any, tmp_path: Path) -> Iterator[Subject]:
    with rig("l40s-4way-pcie", tmp_path) as machine:
        machine.hardware.set_accounting(Accounting.DMEM)
        addresses = [card.address for card in machine.state.machine.cards]
        if request.param == "simulated":
            yield Subject(machine.gpus.limits, addresses, machine)
        else:
            fake = MemoryCaps(frozenset(addresses))
            yield Subject(fake, addresses, fake)


@pytest.fixture
def cgroup(tmp_path: Path) -> Path:
    folder = tmp_path / "kubepods/pod1"
    folder.mkdir(parents=True)
    return folder


def test_a_limit_is_read_back_for_that_card_and_cgroup_only(subject: Subject, cgroup: Path) -> None:
    limit = MemoryLimit(hard=4 * GIB, soft=GIB)
    assert subject.limits.set(subject.addresses[0], cgroup, limit) == limit
    assert subject.limits.get(subject.addresses[0], cgroup) == limit
    assert subject.limits.get(subject.addresses[1], cgroup) == MemoryLimit()
    assert subject.limits.get(subject.addresses[0], cgroup.parent) == MemoryLimit()


def test_a_limit_can_be_changed_and_cleared(subject: Subject, cgroup: Path) -> None:
    address = subject.addresses[0]
    for limit in (MemoryLimit(GIB), MemoryLimit(2 * GIB, GIB), MemoryLimit()):
        assert subject.limits.set(address, cgroup, limit) == limit
    assert subject.limits.get(address, cgroup) == MemoryLimit()


def test_use_is_told_beside_the_limit(subject: Subject, cgroup: Path) -> None:
    subject.limits.set(subject.addresses[0], cgroup, MemoryLimit(4 * GIB))
    subject.use(cgroup, 3 * GIB)
    assert subject.limits.get(subject.addresses[0], cgroup) == MemoryLimit(4 * GIB, 0, 3 * GIB)


def test_deleting_the_cgroup_clears_its_limit(subject: Subject, cgroup: Path) -> None:
    address = subject.addresses[0]
    subject.limits.set(address, cgroup, MemoryLimit(GIB))
    cgroup.rename(cgroup.with_name("gone"))  # so that its inode is not used again
    with pytest.raises(StateError, match="pod1"):
        subject.limits.get(address, cgroup)
    cgroup.mkdir()
    assert subject.limits.get(address, cgroup) == MemoryLimit()


@pytest.mark.parametrize("path", ["/nowhere/at/all", "relative", "file"])
def test_what_is_no_cgroup_is_refused(subject: Subject, tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()
    wrong = tmp_path / "file" if path == "file" else Path(path)
    questions: tuple[Callable[[], object], ...] = (
        lambda: subject.limits.get(subject.addresses[0], wrong),
        lambda: subject.limits.set(subject.addresses[0], wrong, MemoryLimit(GIB)),
    )
    for question in questions:
        with pytest.raises(StateError, match="allowed: the full path"):
            question()


def test_a_driver_without_caps_is_a_missing_feature(subject: Subject, cgroup: Path) -> None:
    subject.forget_caps()
    questions: tuple[Callable[[], object], ...] = (
        lambda: subject.limits.get(subject.addresses[0], cgroup),
        lambda: subject.limits.set(subject.addresses[0], cgroup, MemoryLimit(GIB)),
    )
    for question in questions:
        with pytest.raises(FeatureMissingError, match=str(subject.addresses[0])):
            question()


def test_a_card_that_is_not_there_is_lost(subject: Subject, cgroup: Path) -> None:
    with pytest.raises(DeviceLostError):
        subject.limits.get(PciAddress(0, 0xEE, 0), cgroup)


@pytest.mark.parametrize(("hard", "soft"), [(1, 2), (None, -1), (-1, 0)])
def test_sizes_that_make_no_sense_are_refused(hard: int | None, soft: int) -> None:
    with pytest.raises(InvalidInputError, match=f"soft {soft} and hard {hard}"):
        MemoryLimit(hard, soft)
