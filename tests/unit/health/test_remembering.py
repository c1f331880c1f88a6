"""Verdicts that last, over restarts and versions."""

import json

import pytest

from dragoon.errors import StateError
from dragoon.health.remembering import decode, encode, merged
from dragoon.health.scope import Heard
from dragoon.health.settings import DEFAULT_EFFECTS, HealthSettings
from dragoon.health.verdict import CardHealth, Effect, Kind
from tests.unit.health.cards import NEEDS_RESET, Node, at, found, gpu, xid

SETTINGS = HealthSettings()


def ill() -> Node:
    node = Node()
    node.judge(Heard(xid(79), frozenset({"b", "a"})), conditions={at(1): NEEDS_RESET})
    node.judge(conditions={at(0): NEEDS_RESET})
    return node


def test_what_lasts_is_there_again_in_the_same_boot() -> None:
    node = ill()
    (verdict,) = node.health[at(0)].lasting
    assert verdict.ailing
    again = decode(encode(node.health, "boot"), "boot", SETTINGS)
    assert again == {at(0): CardHealth("GPU-0", (verdict,))}


def test_after_a_reboot_nothing_is_left() -> None:
    assert decode(encode(ill().health, "boot"), "another", SETTINGS) == {}


def test_what_can_be_asked_again_is_not_kept() -> None:
    node = Node()
    node.judge(conditions={at(0): NEEDS_RESET})
    assert encode(node.health, "boot") == encode({}, "boot")


def test_effects_come_from_the_settings_and_not_from_the_file() -> None:
    strict = HealthSettings({**DEFAULT_EFFECTS, Kind.XID: Effect.NO_EXECUTE})
    again = decode(encode(ill().health, "boot"), "boot", strict)
    assert again[at(0)].verdicts[0].effect is Effect.NO_EXECUTE


def test_a_later_version_is_read_as_far_as_it_is_understood() -> None:
    file = json.loads(encode(ill().health, "boot"))
    file["version"] = 7
    file["new"] = {"field": 1}
    card = file["cards"]["0000:10:00.0"]
    card["verdicts"][0]["new"] = True
    card["verdicts"].append({"kind": "new-kind", "value": "x", "message": "x", "since": 1.0})
    again = decode(json.dumps(file).encode(), "boot", SETTINGS)
    assert [verdict.value for verdict in again[at(0)].verdicts] == ["79"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff",
        b'{"version": 1}',
        b'{"more":' + b"[" * 100_000,
        b'{"version":1,"bootId":"boot","cards":{"nowhere":{"uuid":null,"verdicts":[]}}}',
    ],
)
def test_what_is_no_such_file_is_an_error_with_a_hint(data: bytes) -> None:
    with pytest.raises(StateError) as caught:
        decode(data, "boot", SETTINGS)
    assert caught.value.hint


def test_what_was_judged_before_it_could_be_read_is_kept_beside_it() -> None:
    remembered, node = decode(encode(ill().health, "b"), "b", SETTINGS), Node()
    node.judge(xid(62), inventory=found(gpu(0), gpu(2)))
    both = merged(remembered, node.health)
    assert [verdict.value for verdict in both[at(0)].verdicts] == ["62", "79"]
    assert at(2) in both
    node.judge(inventory=found(gpu(0, uuid="GPU-new")))
    assert merged(remembered, node.health)[at(0)].verdicts == ()
