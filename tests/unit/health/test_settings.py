import pytest

from dragoon.errors import ConfigError
from dragoon.health.settings import DEFAULT_EFFECTS, parse_effects, parse_xids
from dragoon.health.verdict import TAINT_KEYS, Effect, Kind


def test_nothing_means_the_defaults() -> None:
    assert parse_effects("", "taintEffects") == DEFAULT_EFFECTS
    assert parse_xids("", "ignoredXids") == frozenset()


def test_what_is_named_wins_over_the_default() -> None:
    found = parse_effects("xid=NoExecute,fabric=NoSchedule,memory-pending=None", "taintEffects")
    assert found == {
        **DEFAULT_EFFECTS,
        Kind.XID: Effect.NO_EXECUTE,
        Kind.FABRIC: Effect.NO_SCHEDULE,
        Kind.MEMORY_PENDING: Effect.NONE,
    }
    assert parse_xids("79,13", "ignoredXids") == {13, 79}


@pytest.mark.parametrize(
    ("text", "found"),
    [("xids=NoExecute", "'xids'"), ("xid=noexecute", "'noexecute'"), ("xid", "''")],
)
def test_a_wrong_word_is_named_with_what_is_allowed(text: str, found: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_effects(text, "taintEffects")
    assert "taintEffects" in caught.value.message
    assert found in caught.value.message
    assert "allowed" in caught.value.message


def test_a_lost_card_is_never_without_a_taint() -> None:
    with pytest.raises(ConfigError, match="lost"):
        parse_effects("lost=None", "taintEffects")


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "1 2", "123456"])
def test_what_is_no_number_of_an_xid_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="ignoredXids"):
        parse_xids(text, "ignoredXids")


def test_every_kind_has_an_effect_and_a_taint_of_its_own() -> None:
    assert set(DEFAULT_EFFECTS) == set(TAINT_KEYS) == set(Kind)
    assert len(set(TAINT_KEYS.values())) == len(Kind)
