"""When a device that is not offered any more may go."""

from dragoon.publish.withdrawing import leaving

SETTLE = 300.0


def stays(
    held: set[str] | None,
    since: dict[str, float],
    now: float,
    offered: tuple[str, ...] = ("whole",),
) -> dict[str, float]:
    return leaving(("whole", "mig-0"), offered, held, since, now=now, settle=SETTLE)


def test_what_is_offered_does_not_leave() -> None:
    assert stays(set(), {}, 0, ("whole", "mig-0")) == {}


def test_what_is_withdrawn_gets_a_taint_first() -> None:
    assert stays(set(), {}, 100) == {"mig-0": 100}


def test_it_goes_when_the_taint_has_stood_and_nobody_holds_it() -> None:
    assert stays(set(), {"mig-0": 100}, 399.9) == {"mig-0": 100}
    assert stays(set(), {"mig-0": 100}, 400) == {}


def test_it_stays_for_as_long_as_a_claim_holds_it() -> None:
    assert stays({"mig-0"}, {"mig-0": 100}, 10_000) == {"mig-0": 100}
    assert stays({"other"}, {"mig-0": 100}, 10_000) == {}


def test_it_stays_while_nobody_can_say_who_holds_it() -> None:
    assert stays(None, {"mig-0": 100}, 10_000) == {"mig-0": 100}


def test_one_that_is_offered_again_begins_anew() -> None:
    assert stays(set(), {}, 500, ("whole", "mig-0")) == {}
    assert stays(set(), {}, 600) == {"mig-0": 600}
