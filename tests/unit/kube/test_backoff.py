import pytest

from dragoon.kube.backoff import Backoff


def test_delays_double_up_to_the_limit() -> None:
    backoff = Backoff(first=1.0, limit=10.0, rng=lambda: 1.0)
    assert [backoff.next() for _ in range(6)] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_jitter_takes_at_most_half_of_a_delay() -> None:
    assert Backoff(first=8.0, rng=lambda: 0.0).next() == 4.0
    assert Backoff(first=8.0, rng=lambda: 0.5).next() == 6.0
    assert all(0.25 <= Backoff(first=0.5).next() <= 0.5 for _ in range(100))


def test_a_success_starts_over() -> None:
    backoff = Backoff(first=1.0, rng=lambda: 1.0)
    backoff.next()
    backoff.next()
    assert backoff.failures == 2
    backoff.reset()
    assert backoff.failures == 0
    assert backoff.next() == 1.0


def test_days_of_failures_do_not_overflow() -> None:
    backoff = Backoff(first=1.0, limit=30.0, rng=lambda: 1.0)
    backoff.failures = 100_000
    assert backoff.next() == pytest.approx(30.0)
