"""A burst of turns, and then one at a time."""

from dragoon.kube.budget import Budget


def test_a_budget_gives_a_burst_and_then_a_turn_each_rest() -> None:
    budget, now, taken = Budget(3, 10.0), 100.0, []
    for _ in range(6):
        now += budget.wait(now)
        budget.take(now)
        taken.append(now)
    assert taken == [100.0, 100.0, 100.0, 110.0, 120.0, 130.0]


def test_turns_that_were_not_used_come_back_up_to_the_burst() -> None:
    budget = Budget(2, 10.0)
    for _ in range(2):
        budget.take(0.0)
    assert budget.wait(0.0) == 10.0
    assert budget.wait(10.0) == 0.0
    for _ in range(2):
        assert budget.wait(1000.0) == 0.0
        budget.take(1000.0)
    assert budget.wait(1000.0) == 10.0
