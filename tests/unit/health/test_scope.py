"""What an event about one MIG instance leaves alone."""

import pytest

from dragoon.gpu.condition import EventKind, GpuEvent
from dragoon.gpu.mig import ComputeInstance, MigInstance
from dragoon.gpu.model import Placement
from dragoon.gpu.naming import mig_name, shared_name, whole_name
from dragoon.health.scope import Heard, heard, needs_instances
from tests.unit.health.cards import ALL, HALF, SMALL, at, mig_card, xid

INSTANCE = MigInstance(
    at(0), "GPU-0", 0, SMALL, Placement(2, 1), 5, (ComputeInstance(0, "MIG-x", 1),)
)


def test_devices_that_share_a_memory_slice_are_touched_and_the_others_spared() -> None:
    found = heard(xid(48, gpu_instance=5), mig_card(), [INSTANCE])
    touched = {
        whole_name(at(0)),
        shared_name(at(0)),
        mig_name(at(0), ALL, 0),
        mig_name(at(0), HALF, 0),
        mig_name(at(0), SMALL, 2),
    }
    assert not touched & found.spared
    assert found.spared == {mig_name(at(0), HALF, 4)} | {
        mig_name(at(0), SMALL, start) for start in range(7) if start != 2
    }
    assert "1g.10gb at 2:1" in found.where


@pytest.mark.parametrize(
    "event",
    [xid(48), xid(79, gpu_instance=5), GpuEvent(EventKind.UNAVAILABLE, at(0), gpu_instance=5)],
    ids=["no instance is named", "all instances share what broke", "not of memory"],
)
def test_what_is_not_about_one_instance_spares_nothing(event: GpuEvent) -> None:
    assert not needs_instances(event)
    assert heard(event, mig_card(), [INSTANCE]) == Heard(event)


def test_an_instance_that_is_gone_spares_nothing() -> None:
    event = xid(48, gpu_instance=6)
    assert heard(event, mig_card(), [INSTANCE]) == Heard(event)
    assert heard(event, None, []) == Heard(event)


def test_a_memory_event_of_an_instance_is_about_it() -> None:
    event = GpuEvent(EventKind.DOUBLE_BIT_ECC, at(0), gpu_instance=5)
    assert heard(event, mig_card(), [INSTANCE]).spared
