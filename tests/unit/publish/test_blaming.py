"""Taints of cards that are not well, on the devices that they touch."""

from dragoon.api import names
from dragoon.gpu.naming import whole_name
from dragoon.publish.blaming import Blame, blamed
from dragoon.publish.device import Device, Taint
from tests.unit.publish.nodes import address

XID = Taint.because(names.TAINT_XID, "79")
LOST = Taint.because(names.TAINT_LOST, "no answer")


def device(number: int, form: str = "", *taints: Taint) -> Device:
    return Device(whole_name(address(number)) + form, {}, {}, taints)


def test_every_form_of_the_card_is_tainted_and_no_other_card() -> None:
    devices = (device(0), device(1), device(0, "-shared"), device(0, "-mig-1g10gb-0"))
    found = blamed(devices, {address(0): [Blame(XID)]})
    assert [one.taints for one in found] == [(XID,), (), (XID,), (XID,)]


def test_what_is_spared_stays_as_it_is() -> None:
    whole, mig = device(0), device(0, "-mig-1g10gb-0")
    assert blamed((whole, mig), {address(0): [Blame(XID, frozenset({mig.name}))]}) == (
        whole.tainted(XID),
        mig,
    )


def test_of_two_taints_with_one_key_the_first_counts() -> None:
    later = Taint.because(names.TAINT_XID, "62")
    (found,) = blamed((device(0),), {address(0): [Blame(XID), Blame(later)]})
    assert found.taints == (XID,)


def test_a_taint_that_is_there_keeps_its_value_and_takes_the_effect() -> None:
    other = Taint(names.TAINT_OTHER_OWNER)
    wanted = Taint.because(names.TAINT_LOST, "something", "NoExecute")
    (found,) = blamed((device(0, "", other, LOST),), {address(0): [Blame(wanted)]})
    assert found.taints == (other, Taint(names.TAINT_LOST, "no-answer", "NoExecute"))


def test_a_device_that_is_no_card_of_ours_is_left_alone() -> None:
    odd = Device("something", {}, {})
    assert blamed((odd,), {address(0): [Blame(XID)]}) == (odd,)
