"""What the campaign asks for, and when all of it can run."""

import random

import pytest

from racecampaign.crowd import Wish, wishes


@pytest.mark.parametrize("seed", range(50))
def test_gangs_fit_together_if_they_lie_well(seed: int) -> None:
    assert sum(wish.total for wish in wishes(random.Random(seed), 48)) <= 48  # noqa: S311


@pytest.mark.parametrize(
    ("free", "fits"),
    [((8, 8, 8, 8), True), ((8, 8, 8, 6, 2), False), ((16, 8, 8), True), ((8, 8, 8), False)],
)
def test_a_gang_fits_where_each_member_finds_a_node(free: tuple[int, ...], *, fits: bool) -> None:
    assert Wish("g", 4, 8).fits(free) is fits
