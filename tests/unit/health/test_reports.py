"""The health of devices, as the kubelet is told."""

import asyncio

from dragoon.gpu.naming import mig_name, shared_name, whole_name
from dragoon.health.reports import Board, DeviceHealth, Report, State, report
from dragoon.health.scope import Heard
from tests.unit.health.cards import HALF, Node, at, xid

WHOLE, OTHER = whole_name(at(0)), whole_name(at(1))
MIG = mig_name(at(0), HALF, 4)
DEVICES = (OTHER, WHOLE, shared_name(at(0)), MIG)


def states(found: Report) -> dict[str, State]:
    return {device.device: device.state for device in found.devices}


def test_every_form_of_a_condemned_card_is_unhealthy_with_the_reason() -> None:
    node = Node()
    found = report("n/gpu", DEVICES, node.judge(xid(79)))
    assert states(found) == {
        WHOLE: State.UNHEALTHY,
        shared_name(at(0)): State.UNHEALTHY,
        MIG: State.UNHEALTHY,
        OTHER: State.HEALTHY,
    }
    assert [d.device for d in found.devices] == sorted(DEVICES)
    assert "XID 79" in found.devices[0].message
    assert found.pool == "n/gpu"


def test_what_a_verdict_spares_stays_healthy() -> None:
    node = Node()
    found = report("n/gpu", DEVICES, node.judge(Heard(xid(48), frozenset({MIG}))))
    assert states(found)[MIG] is State.HEALTHY
    assert states(found)[WHOLE] is State.UNHEALTHY


def test_a_remark_is_told_of_a_healthy_device() -> None:
    node = Node()
    (device,) = report("p", [WHOLE], node.judge(unwatched={at(0): "old driver"})).devices
    assert device.state is State.HEALTHY
    assert "old driver" in device.message


def test_a_card_that_was_not_judged_yet_is_unknown() -> None:
    assert report("p", [WHOLE], {}).devices == (
        DeviceHealth(WHOLE, State.UNKNOWN, "not looked at yet"),
    )


def test_while_nobody_can_look_only_what_is_wrong_stays_known() -> None:
    node = Node()
    found = report("p", [WHOLE, OTHER], node.judge(xid(79)), blind="the driver hangs")
    assert [(d.state, d.message) for d in found.devices] == [
        (State.UNHEALTHY, "XID 79: the GPU has fallen off the bus"),
        (State.UNKNOWN, "the driver hangs"),
    ]


A = Report("p", (DeviceHealth("a", State.HEALTHY),))
B = Report("p", (DeviceHealth("a", State.UNHEALTHY, "XID 79"),))


async def test_who_follows_gets_the_newest_at_once_and_each_change() -> None:
    board = Board()
    board.show(A)
    following = board.follow(repeat=3600)
    assert await anext(following) == A
    board.show(B)
    assert await anext(following) == B
    await following.aclose()


async def test_the_same_report_is_repeated_and_is_no_news() -> None:
    board = Board()
    board.show(A)
    following = board.follow(repeat=0.01)
    assert [await anext(following) for _ in range(3)] == [A, A, A]
    await following.aclose()
    following = board.follow(repeat=3600)
    await anext(following)
    waiting = asyncio.ensure_future(anext(following))
    board.show(A)
    board.show(B)
    assert await waiting == B
    await following.aclose()


async def test_before_the_first_report_nothing_is_told() -> None:
    board = Board()
    following = board.follow(repeat=0.001)
    waiting = asyncio.ensure_future(anext(following))
    assert await asyncio.wait({waiting}, timeout=0.02) == (set(), {waiting})
    board.show(A)
    assert await waiting == A
    await following.aclose()
