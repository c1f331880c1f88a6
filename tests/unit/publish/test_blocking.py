"""The taint of devices that a claim was refused because of."""

from dataclasses import replace

from dragoon.api import names
from dragoon.api.forms import Form
from dragoon.api.limits import LABEL_BYTES
from dragoon.gpu.model import PciAddress
from dragoon.gpu.obstacles import Obstacle
from dragoon.publish.blocking import blocked, taint
from dragoon.publish.device import Device, Taint

CARD = PciAddress(0, 0x10, 0)
BUSY = Obstacle(CARD, frozenset({Form.MIG}), True, "CardInUse", "python (pid 4711)")
WHOLE, MIG, OTHER = "gpu-0000-10-00-0", "gpu-0000-10-00-0-mig-3g40gb-4", "gpu-0000-11-00-0"


def device(name: str, *taints: Taint) -> Device:
    return Device(name, {}, {}, taints)


def test_only_blocked_forms_get_the_taint_which_names_the_holder() -> None:
    found = blocked([device(WHOLE), device(MIG), device(OTHER)], [BUSY])
    assert [one.name for one in found] == [WHOLE, MIG, OTHER]
    assert [one.taints for one in found] == [
        (),
        (Taint(names.TAINT_BLOCKED, "CardInUse-python-pid-4711", "NoSchedule"),),
        (),
    ]


def test_other_taints_stay() -> None:
    other = Taint(names.TAINT_OTHER_OWNER, "nvidia.com-gpu")
    (found,) = blocked([device(MIG, other)], [BUSY])
    assert [one.key for one in found.taints] == [names.TAINT_OTHER_OWNER, names.TAINT_BLOCKED]


def test_the_value_is_one_that_a_label_may_have() -> None:
    many = replace(BUSY, who=" ".join(f"python (pid {n})" for n in range(100)))
    assert len(taint(many).value) <= LABEL_BYTES
    assert taint(replace(BUSY, who="")).value == "CardInUse"


def test_without_obstacles_nothing_changes() -> None:
    devices = (device(WHOLE), device(MIG))
    assert blocked(devices, ()) == devices
