"""What is lost of a node to typical pods, as plain numbers."""

from dragoon.allocator.gang.fragments import CARD, CardState, Give, Typical, Value, Yardstick

ONE = Typical(1, 1)
FREE = CardState(CARD, (Give(1, CARD),))
USED = CardState(0, (Give(0, 0),))


def test_nothing_is_lost_where_every_typical_pod_can_use_all_that_is_free() -> None:
    assert Yardstick([ONE]).value((FREE, FREE, USED)) == Value(0, 2 * CARD)


def test_a_part_that_is_too_small_is_lost() -> None:
    crumbs = CardState(300, (Give(0, 0),))
    assert Yardstick([ONE]).value((FREE, crumbs)) == Value(300, CARD + 300)


def test_each_typical_pod_counts_by_its_weight() -> None:
    half = CardState(500, (Give(0, 0), Give(1, 400)))
    assert Yardstick([Typical(3, 1), Typical(1, 1)]).value((half,)) == Value(3 * 500 + 100, 500)


def test_of_linked_cards_only_whole_sets_count() -> None:
    yardstick = Yardstick([Typical(1, 2)])
    left, right = (CardState(CARD, (Give(1, CARD),), group) for group in (0, 1))
    assert yardstick.value((left, left, right)).loss == CARD
    assert yardstick.value((left, right)).loss == 2 * CARD
    assert yardstick.value((left, left, left, left)).loss == 0


def test_cards_for_which_there_is_no_cpu_are_lost() -> None:
    yardstick = Yardstick([Typical(1, 1, (("cpu", 10), ("memory", 1)))])
    cards = (FREE,) * 4
    assert yardstick.value(cards, {"cpu": 9, "memory": 100}).loss == 4 * CARD
    assert yardstick.value(cards, {"cpu": 40, "memory": 100}).loss == 0
    # Others of the mix want less: cpu for one such pod counts as cpu for two.
    assert yardstick.value(cards, {"cpu": 10, "memory": 100}).loss == 2 * CARD
    assert yardstick.value(cards, {"cpu": -5, "memory": 100}).loss == 4 * CARD


def test_a_resource_that_the_node_does_not_tell_is_no_limit() -> None:
    yardstick = Yardstick([Typical(1, 1, (("cpu", 10),))])
    assert yardstick.value((FREE,), {}).loss == 0
    assert yardstick.value((FREE,)).loss == 0
