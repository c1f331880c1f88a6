"""What events and observations mean for a card, and when it is well again."""

import itertools
from dataclasses import replace

import pytest

from dragoon.gpu.condition import Condition, EventKind, GpuEvent, Recovery
from dragoon.gpu.model import Fabric, FabricState, MigMode
from dragoon.health.judging import Observed, judge
from dragoon.health.scope import Heard
from dragoon.health.settings import DEFAULT_EFFECTS, HealthSettings
from dragoon.health.verdict import Effect, Kind
from tests.unit.health.cards import NEEDS_RESET, TWO, WELL, Node, at, found, gpu, links, lost, xid


def test_a_node_without_news_is_well() -> None:
    node = Node()
    node.judge()
    assert node.says(0) == node.says(1) == []
    assert node.health[at(0)].uuid == "GPU-0"


@pytest.mark.parametrize("number", [13, 31, 43, 45, 68, 69, 109])
def test_what_an_application_did_is_not_the_cards_fault(number: int) -> None:
    node = Node()
    node.judge(xid(number))
    assert node.says() == []


@pytest.mark.parametrize("number", [48, 62, 64, 79, 95, 119, 120, 140])
def test_c01_a_fatal_xid_condemns_its_card_and_no_other(number: int) -> None:
    node = Node()
    node.judge(xid(number))
    (verdict,) = node.health[at(0)].verdicts
    assert (verdict.kind, verdict.value) == (Kind.XID, str(number))
    assert (verdict.effect, verdict.lasting) == (Effect.NO_SCHEDULE, True)
    assert f"XID {number}: " in verdict.message
    assert node.says(1) == []


@pytest.mark.parametrize("number", [63, 74, 92, 94, 149, 154, 157, 172])
def test_what_the_card_survives_is_no_verdict_by_itself(number: int) -> None:
    node = Node()
    node.judge(xid(number))
    assert node.says() == []


def test_an_unknown_xid_condemns_unless_the_settings_trust_it() -> None:
    careful, trusting = Node(), Node(HealthSettings(trust_unknown=True))
    careful.judge(xid(999))
    trusting.judge(xid(999))
    assert careful.says() == [(Kind.XID, "999")]
    assert trusting.says() == []


def test_an_administrator_can_call_any_xid_harmless() -> None:
    node = Node(HealthSettings(harmless=frozenset({79})))
    node.judge(xid(79))
    assert node.says() == []


def test_a_later_harmless_xid_replaces_no_fatal_one() -> None:
    node = Node()
    node.judge(xid(79))
    node.judge(xid(31))
    node.judge(xid(62))
    node.judge(xid(79))
    assert node.says() == [(Kind.XID, "79"), (Kind.XID, "62")]
    assert [verdict.since for verdict in node.health[at(0)].verdicts] == [1001.0, 1003.0]


def test_a_fatal_xid_stays_while_the_card_says_nothing_about_recovery() -> None:
    node = Node()
    node.judge(xid(79))
    for conditions in ({}, {at(0): Condition()}, {at(0): WELL}):
        node.judge(conditions=conditions)
        assert node.says() == [(Kind.XID, "79")]


def test_after_the_recovery_that_the_driver_asked_for_the_card_is_well() -> None:
    node = Node()
    node.judge(xid(79))
    node.judge(conditions={at(0): NEEDS_RESET})
    assert node.says() == [(Kind.XID, "79"), (Kind.RECOVERY, "GPU reset")]
    node.judge(conditions={})
    assert (Kind.XID, "79") in node.says()
    node.judge(conditions={at(0): WELL})
    assert node.says() == []


def test_a_card_that_was_lost_and_answers_again_has_recovered() -> None:
    node = Node()
    node.judge(xid(79), inventory=found(lost(0), gpu(1)))
    assert node.says() == [(Kind.LOST, "no answer"), (Kind.XID, "79")]
    node.judge()
    assert node.says() == [(Kind.XID, "79")]  # before it was asked how it is
    node.judge(conditions={at(0): Condition()})
    assert node.says() == []


def test_a_card_that_comes_back_and_still_asks_for_a_reset_has_not_recovered() -> None:
    node = Node()
    node.judge(xid(79), inventory=found(lost(0), gpu(1)))
    node.judge(conditions={at(0): NEEDS_RESET})
    assert node.says() == [(Kind.XID, "79"), (Kind.RECOVERY, "GPU reset")]


def test_another_card_in_the_slot_is_not_blamed() -> None:
    node = Node()
    node.judge(xid(79))
    node.judge(inventory=found(gpu(0, uuid="GPU-new"), gpu(1)))
    assert node.says() == []
    assert node.health[at(0)].uuid == "GPU-new"


def test_a_card_that_nobody_sees_any_more_keeps_what_was_said() -> None:
    node = Node()
    node.judge(xid(79))
    node.judge(inventory=found(gpu(1)))
    assert node.says() == [(Kind.XID, "79")]
    node.judge()
    assert node.says() == [(Kind.XID, "79")]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition(remap_failed=True), (Kind.MEMORY, "row remap failed")),
        (Condition(remap_pending=True), (Kind.MEMORY_PENDING, "row remap pending")),
        (Condition(pages_pending=True), (Kind.MEMORY_PENDING, "page retirement pending")),
        (Condition(repair_pending=True), (Kind.MEMORY_PENDING, "repair pending")),
        (Condition(recovery=Recovery.NODE_REBOOT), (Kind.RECOVERY, "node reboot")),
        (Condition(recovery=Recovery.OTHER), (Kind.RECOVERY, Recovery.OTHER.value)),
    ],
)
def test_what_a_card_says_of_itself_ends_when_it_says_so(
    condition: Condition, expected: tuple[Kind, str]
) -> None:
    node = Node()
    node.judge(conditions={at(0): condition})
    assert node.says() == [expected]
    since = node.health[at(0)].verdicts[0].since
    node.judge(conditions={at(0): condition})
    assert node.health[at(0)].verdicts[0].since == since
    node.judge(conditions={at(0): WELL})
    assert node.says() == []


def test_errors_that_were_contained_are_no_verdict_and_told_beside_one() -> None:
    node = Node()
    node.judge(conditions={at(0): Condition(uncorrected=5)})
    assert node.says() == []
    node.judge(conditions={at(0): Condition(uncorrected=5, remap_pending=True)})
    assert "5 uncorrected errors" in node.health[at(0)].verdicts[0].message


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        (EventKind.DOUBLE_BIT_ECC, Kind.MEMORY),
        (EventKind.RETIREMENT_FAILED, Kind.MEMORY),
        (EventKind.FATAL_POISON, Kind.MEMORY),
        (EventKind.UNAVAILABLE, Kind.RECOVERY),
    ],
)
def test_other_fatal_events_last_as_xids_do(kind: EventKind, verdict: Kind) -> None:
    node = Node()
    node.judge(GpuEvent(kind, at(0)))
    node.judge()
    assert node.says() == [(verdict, kind.value)]


@pytest.mark.parametrize("kind", [EventKind.RETIREMENT, EventKind.POISON, EventKind.RECOVERY])
def test_events_that_are_news_only_are_no_verdict(kind: EventKind) -> None:
    node = Node()
    node.judge(GpuEvent(kind, at(0)))
    assert node.says() == []


def test_c10_a_fabric_that_failed_is_a_remark_with_its_reason() -> None:
    node = Node()
    failed = Fabric(FabricState.FAILED, reason="the registration failed with NVML code 999")
    node.judge(inventory=found(gpu(0, fabric=failed), gpu(1)))
    (verdict,) = node.health[at(0)].verdicts
    assert (verdict.kind, verdict.effect) == (Kind.FABRIC, Effect.NONE)
    assert "NVML code 999" in verdict.message


def test_a_fabric_that_complains_is_a_remark() -> None:
    node = Node()
    fabric = Fabric(FabricState.COMPLETED, "uuid", 1, "the fabric says that this GPU is unhealthy")
    node.judge(inventory=found(gpu(0, fabric=fabric), gpu(1)))
    assert node.says() == [(Kind.FABRIC, fabric.reason)]


@pytest.mark.parametrize(
    "state", [FabricState.UNSUPPORTED, FabricState.NOT_STARTED, FabricState.IN_PROGRESS]
)
def test_c10_a_fabric_that_is_not_there_yet_is_nothing(state: FabricState) -> None:
    node = Node()
    node.judge(inventory=found(gpu(0, fabric=Fabric(state)), gpu(1)))
    assert node.says() == []


def test_links_that_go_down_are_named_until_they_are_up_again() -> None:
    node = Node()
    up = found(gpu(0, links=links(0, 1)), gpu(1))
    node.judge(inventory=up)
    node.judge(inventory=found(gpu(0, links=links(0)), gpu(1)))
    assert node.says() == [(Kind.NVLINK, "1")]
    node.judge(inventory=up)
    assert node.says() == []


def test_links_that_never_were_up_and_those_of_a_divided_card_are_not_missed() -> None:
    node = Node()
    node.judge(inventory=found(gpu(0, links=links(0, 1)), gpu(1)))
    divided = MigMode(enabled=True, pending=True)
    node.judge(inventory=found(gpu(0, links=links(), mig=divided), gpu(1)))
    assert node.says() == []


def test_a_card_that_reports_no_errors_is_a_remark() -> None:
    node = Node()
    node.judge(unwatched={at(0): "Not Supported"})
    (verdict,) = node.health[at(0)].verdicts
    assert (verdict.kind, verdict.taints) == (Kind.UNWATCHED, False)


def test_effects_are_those_that_are_set_now() -> None:
    node = Node()
    node.judge(xid(79))
    node.settings = HealthSettings({**DEFAULT_EFFECTS, Kind.XID: Effect.NO_EXECUTE})
    node.judge()
    assert node.health[at(0)].verdicts[0].effect is Effect.NO_EXECUTE


def test_one_event_about_an_instance_and_one_about_the_card_are_two_verdicts() -> None:
    node = Node()
    node.judge(Heard(xid(48), frozenset({"x"}), " in GPU instance 1"), xid(48))
    first, second = node.health[at(0)].verdicts
    assert not first.touches("x")
    assert second.touches("x")
    assert "in GPU instance 1" in first.message


def test_an_event_of_an_unknown_card_blames_nobody() -> None:
    node = Node()
    node.judge(GpuEvent(EventKind.XID, None, 79), xid(79, card=9))
    assert node.says(0) == node.says(1) == []


def test_the_order_of_what_happens_in_one_round_does_not_matter() -> None:
    events = [Heard(xid(79)), Heard(xid(31)), Heard(xid(62, card=1)), Heard(xid(48))]
    verdicts = set()
    for order in itertools.permutations(events):
        health = judge(Observed(TWO, heard=order), {}, HealthSettings(), now=1.0)
        verdicts.add(tuple(frozenset(v.value for v in health[at(n)].verdicts) for n in (0, 1)))
    assert verdicts == {(frozenset({"79", "48"}), frozenset({"62"}))}


def test_judging_the_same_again_changes_nothing() -> None:
    node = Node()
    node.judge(xid(79), conditions={at(1): NEEDS_RESET}, unwatched={at(0): "no"})
    before = node.health
    node.judge(conditions={at(1): NEEDS_RESET}, unwatched={at(0): "no"})
    assert node.health == before


def test_a_lost_card_that_does_not_say_who_it_is_keeps_its_verdicts() -> None:
    node = Node()
    node.judge(xid(79))
    node.judge(inventory=found(replace(lost(0), uuid=None), gpu(1)))
    assert node.says() == [(Kind.LOST, "no answer"), (Kind.XID, "79")]
    assert node.health[at(0)].uuid == "GPU-0"


def test_a_card_that_only_hung_was_not_recovered_by_that() -> None:
    node = Node()
    node.judge(xid(79))
    node.judge(inventory=found(replace(lost(0), hangs=True), gpu(1)))
    assert [kind for kind, _ in node.says()] == [Kind.LOST, Kind.XID]
    node.judge(conditions={at(0): WELL})
    assert node.says() == [(Kind.XID, "79")]


def test_a_card_that_does_not_say_how_it_is_keeps_what_it_said_and_that_is_told() -> None:
    node, silent = Node(), replace(NEEDS_RESET, silent="has not answered for 12 s")
    node.judge(xid(79), conditions={at(0): NEEDS_RESET})
    node.judge(conditions={at(0): silent})
    assert [kind for kind, _ in node.says()] == [Kind.XID, Kind.RECOVERY, Kind.UNWATCHED]
    node.judge(conditions={at(0): Condition(silent="has not answered for 12 s")})
    assert (Kind.XID, "79") in node.says(), "not known to be recovered"
    node.judge(conditions={at(0): WELL})
    assert node.says() == []


def test_xids_that_a_sick_driver_makes_up_are_a_few_verdicts_and_no_other_is_lost_for_them() -> (
    None
):
    node = Node()
    for start in range(0, 1000, 100):
        node.judge(*(xid(1000 + start + number) for number in range(100)))
    about_instance = Heard(xid(48, gpu_instance=1), spared=frozenset({"other"}))
    node.judge(about_instance, GpuEvent(EventKind.FATAL_POISON, at(0)))
    made_up = [(Kind.XID, str(1000 + number)) for number in range(16)]
    told = [(Kind.XID, "48"), (Kind.MEMORY, "fatal poison error")]
    assert sorted(node.says()) == sorted(made_up + told)
