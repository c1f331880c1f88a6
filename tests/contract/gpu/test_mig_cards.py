"""What every implementation of `gpu.port.MigCards` and `Processes` does."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dragoon.errors import DeviceLostError, HardwareError, InvalidInputError
from dragoon.gpu.faults import (
    CardInUseError,
    FeatureMissingError,
    InstanceChangedError,
    PlacementTakenError,
    ResetRequiredError,
)
from dragoon.gpu.mig import GpuProcess, MigInstance
from dragoon.gpu.model import MigMode, PciAddress, Placement
from tests.contract.gpu.subjects import Subject, subject

ON, OFF = MigMode(enabled=True, pending=True), MigMode(enabled=False, pending=False)
Made = Callable[[str], Subject]


@pytest.fixture(params=["simulated", "faked"])
def made(request: Any, tmp_path: Path) -> Iterator[Made]:
    """Makes a machine by name."""
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(subject(request.param, name, tmp_path / name))


@pytest.fixture
def h100(made: Made) -> Subject:
    return made("dgx-h100")


def divided(machine: Subject) -> PciAddress:
    address = machine.addresses[0]
    machine.cards.set_mode(address, enabled=True)
    return address


def python(instance: MigInstance | None = None) -> GpuProcess:
    if instance is None:
        return GpuProcess(4711, 1 << 30, name="python")
    return GpuProcess(4711, 1 << 30, instance.identity, instance.compute[0].identity, "python")


def test_a_card_offers_profiles_with_sizes_and_placements(h100: Subject) -> None:
    card = h100.cards.card(h100.addresses[0])
    assert card is not None
    assert (card.address, card.mode, card.resetless) == (h100.addresses[0], OFF, True)
    three = card.profile("3g.40gb")
    assert three.placements == (Placement(0, 4), Placement(4, 4))
    assert (three.slices, three.instances, three.multiprocessors) == (3, 2, 60)
    assert three.memory_bytes == 40448 << 20


def test_c17_a_profile_of_another_card_is_refused_with_the_names_of_this_one(h100: Subject) -> None:
    address = divided(h100)
    with pytest.raises(InvalidInputError, match=r"found '3g\.20gb', allowed: .*3g\.40gb") as caught:
        h100.cards.create(address, "3g.20gb", Placement(0, 4))
    assert str(address) in str(caught.value)


def test_c13_mig_is_told_card_by_card(made: Made) -> None:
    machine = made("mixed-a30-t4")
    with_mig = [a for a in machine.addresses if machine.cards.card(a) is not None]
    (without,) = set(machine.addresses) - set(with_mig)
    assert len(with_mig) == 1
    assert machine.cards.instances(without) == ()
    for change in (
        lambda: machine.cards.set_mode(without, enabled=True),
        lambda: machine.cards.create(without, "1g.6gb", Placement(0, 1)),
    ):
        with pytest.raises(FeatureMissingError, match=str(without)):
            change()
    machine.cards.destroy(without, 7, "MIG-gone")  # nothing is there: nothing to do


def test_an_instance_is_seen_as_it_was_made(h100: Subject) -> None:
    address = divided(h100)
    one = h100.cards.create(address, "1g.10gb", Placement(6, 1))
    other = h100.cards.create(address, "3g.40gb", Placement(0, 4))
    assert h100.cards.instances(address) == (other, one)
    card = h100.cards.card(address)
    assert card is not None
    for seen, name in ((one, "1g.10gb"), (other, "3g.40gb")):
        assert (seen.parent, seen.parent_uuid) == (address, card.uuid)
        assert (seen.profile, seen.is_whole) == (card.profile(name), True)
        assert seen.uuid is not None
        assert seen.uuid.startswith("MIG-")
        assert seen.compute[0].node is not None
        assert seen.node is not None
        assert seen.node.path == f"/dev/nvidia-caps/nvidia-cap{seen.node.minor}"
    assert one.uuid != other.uuid
    assert one.identity != other.identity
    assert h100.cards.instances(h100.addresses[1]) == ()


def test_what_is_taken_is_refused_by_name(h100: Subject) -> None:
    address = divided(h100)
    there = h100.cards.create(address, "2g.20gb", Placement(2, 2))
    with pytest.raises(PlacementTakenError, match=str(there.uuid)) as caught:
        h100.cards.create(address, "3g.40gb", Placement(0, 4))
    assert not caught.value.retryable
    assert h100.cards.instances(address) == (there,)


def test_the_limit_of_a_profile_is_kept(h100: Subject) -> None:
    address = divided(h100)
    there = h100.cards.create(address, "1g.10gb+me", Placement(0, 1))
    with pytest.raises(PlacementTakenError, match=str(there.uuid)):
        h100.cards.create(address, "1g.10gb+me", Placement(1, 1))


def test_an_illegal_placement_is_refused_with_the_legal_ones(h100: Subject) -> None:
    address = divided(h100)
    for wrong in (Placement(1, 2), Placement(6, 2), Placement(0, 4), Placement(0, 1)):
        with pytest.raises(InvalidInputError, match="allowed: 0:2, 2:2, 4:2"):
            h100.cards.create(address, "2g.20gb", wrong)


def test_nothing_is_made_outside_mig_mode(h100: Subject) -> None:
    with pytest.raises(FeatureMissingError, match="not in MIG mode"):
        h100.cards.create(h100.addresses[0], "1g.10gb", Placement(0, 1))
    assert h100.cards.instances(h100.addresses[0]) == ()


def test_only_the_instance_that_is_meant_is_removed(h100: Subject) -> None:
    address = divided(h100)
    there = h100.cards.create(address, "1g.10gb", Placement(0, 1))
    for wrong in ("MIG-another", None):
        with pytest.raises(InstanceChangedError, match=str(there.uuid)) as caught:
            h100.cards.destroy(address, there.identity, wrong)
        assert not caught.value.retryable
    assert h100.cards.instances(address) == (there,)
    h100.cards.destroy(address, there.identity, there.uuid)
    assert h100.cards.instances(address) == ()
    h100.cards.destroy(address, there.identity, there.uuid)  # gone already


def test_an_instance_made_again_has_another_uuid_and_other_device_files(h100: Subject) -> None:
    address = divided(h100)
    first = h100.cards.create(address, "1g.10gb", Placement(0, 1))
    h100.cards.destroy(address, first.identity, first.uuid)
    again = h100.cards.create(address, "1g.10gb", Placement(0, 1))
    assert again.uuid != first.uuid
    assert again.node != first.node
    with pytest.raises(InstanceChangedError):
        h100.cards.destroy(address, again.identity, first.uuid)


def test_a_gpu_instance_without_its_other_half_is_found_and_can_be_removed(h100: Subject) -> None:
    address = divided(h100)
    there = h100.cards.create(address, "4g.40gb", Placement(0, 4))
    h100.halve(address, there.identity)
    (half,) = h100.cards.instances(address)
    assert (half.placement, half.uuid, half.compute) == (Placement(0, 4), None, ())
    with pytest.raises(PlacementTakenError, match="no compute instance"):
        h100.cards.create(address, "1g.10gb", Placement(3, 1))
    with pytest.raises(InstanceChangedError):
        h100.cards.destroy(address, half.identity, there.uuid)
    h100.cards.destroy(address, half.identity, None)
    assert h100.cards.instances(address) == ()


def test_c21_an_instance_in_use_is_not_removed_and_its_user_named(h100: Subject) -> None:
    address = divided(h100)
    used = h100.cards.create(address, "1g.10gb", Placement(0, 1))
    free = h100.cards.create(address, "1g.10gb", Placement(1, 1))
    h100.run(address, python(used))
    assert h100.processes(address) == (python(used),)
    with pytest.raises(CardInUseError, match=r"python \(pid 4711\)") as caught:
        h100.cards.destroy(address, used.identity, used.uuid)
    assert caught.value.retryable
    assert caught.value.processes == (python(used),)
    assert used in h100.cards.instances(address)
    h100.cards.destroy(address, free.identity, free.uuid)
    h100.end(address, 4711)
    assert h100.processes(address) == ()
    h100.cards.destroy(address, used.identity, used.uuid)
    assert h100.cards.instances(address) == ()


@pytest.mark.parametrize("machine", ["dgx-h100", "a30-2way"])
def test_the_mode_goes_on_and_off_and_is_read_back(made: Made, machine: str) -> None:
    subject = made(machine)
    address = subject.addresses[0]
    for enabled, expected in ((True, ON), (True, ON), (False, OFF), (False, OFF)):
        assert subject.cards.set_mode(address, enabled=enabled) == expected
        card = subject.cards.card(address)
        assert card is not None
        assert card.mode == expected
    other = subject.cards.card(subject.addresses[1])
    assert other is not None
    assert other.mode == OFF


@pytest.mark.parametrize("machine", ["dgx-h100", "dgx-a100-40gb"])
def test_c21_a_client_in_the_way_of_the_mode_is_named_and_nothing_stays_pending(
    made: Made, machine: str
) -> None:
    subject = made(machine)
    address = subject.addresses[0]
    subject.run(address, python())
    with pytest.raises(CardInUseError, match=r"python \(pid 4711\)") as caught:
        subject.cards.set_mode(address, enabled=True)
    assert str(address) in caught.value.message
    assert caught.value.retryable
    card = subject.cards.card(address)
    assert card is not None
    assert card.mode == OFF
    subject.end(address, 4711)
    assert subject.cards.set_mode(address, enabled=True) == ON


def test_c21_a_mode_that_needs_a_reset_is_refused_for_good(made: Made) -> None:
    subject = made("dgx-a100-40gb")
    address = subject.addresses[0]
    subject.block_reset(address)
    with pytest.raises(ResetRequiredError, match=str(address)) as caught:
        subject.cards.set_mode(address, enabled=True)
    assert not caught.value.retryable
    assert "reset the GPU" in caught.value.hint
    card = subject.cards.card(address)
    assert card is not None
    assert card.mode == OFF
    assert subject.cards.set_mode(subject.addresses[1], enabled=True) == ON


def test_c21_the_mode_stays_on_while_there_are_instances(h100: Subject) -> None:
    address = divided(h100)
    there = h100.cards.create(address, "1g.10gb", Placement(0, 1))
    with pytest.raises(CardInUseError, match=str(there.uuid)):
        h100.cards.set_mode(address, enabled=False)
    assert h100.cards.instances(address) == (there,)


@pytest.mark.parametrize(("machine", "stays"), [("dgx-a100-40gb", True), ("dgx-h100", False)])
def test_c20_instances_go_with_a_reboot_and_the_mode_stays_on_ampere_only(
    made: Made, machine: str, *, stays: bool
) -> None:
    subject = made(machine)
    address = divided(subject)
    card = subject.cards.card(address)
    assert card is not None
    small = card.profiles[0].name
    before = subject.cards.create(address, small, Placement(0, 1))
    subject.reboot()
    card = subject.cards.card(address)
    assert card is not None
    assert card.mode == (ON if stays else OFF)
    assert subject.cards.instances(address) == ()
    subject.cards.set_mode(address, enabled=True)
    after = subject.cards.create(address, small, Placement(0, 1))
    assert after.placement == before.placement
    assert after.uuid != before.uuid
    assert after.parent_minor != before.parent_minor
    assert after.parent_uuid == before.parent_uuid


def test_a_lost_card_is_an_error_of_that_card_alone(h100: Subject) -> None:
    lost, other = h100.addresses[:2]
    h100.cards.set_mode(lost, enabled=True)
    h100.lose(lost)
    for question in (
        lambda: h100.cards.card(lost),
        lambda: h100.cards.instances(lost),
        lambda: h100.cards.set_mode(lost, enabled=False),
        lambda: h100.cards.create(lost, "1g.10gb", Placement(0, 1)),
        lambda: h100.cards.destroy(lost, 7, "MIG-x"),
        lambda: h100.processes(lost),
    ):
        with pytest.raises(DeviceLostError, match=str(lost)):
            question()
    assert h100.cards.card(other) is not None


def test_an_address_without_a_card_is_a_lost_device(h100: Subject) -> None:
    nowhere = PciAddress(0, 0xEE, 0)
    for question in (h100.cards.card, h100.cards.instances, h100.processes):
        with pytest.raises(DeviceLostError, match=str(nowhere)):
            question(nowhere)


def test_refusals_are_errors_of_the_hardware_with_a_hint() -> None:
    for kind in (CardInUseError, InstanceChangedError, ResetRequiredError):
        error = kind("x")
        assert isinstance(error, HardwareError)
        assert error.hint
