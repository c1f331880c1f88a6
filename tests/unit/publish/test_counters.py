"""Cases C17 and C19: the counters of a card let exactly those placements be together that can be."""

from itertools import chain, combinations

import pytest

from dragoon.api import limits
from dragoon.gpu.model import MigProfile, Placement
from dragoon.gpu.sim.profiles import find_machine, shipped
from dragoon.publish.counters import Ledger, Place, beside, ledger
from dragoon.publish.forms.mig import in_order, main_profiles
from tests.unit.publish.divided import GIB, admitted, instance, possible, profiles

WITH_MIG = [name for name in shipped() if find_machine(name).cards[0].mig]
SHAPES = ("dgx-h100", "a30-2way", "rtx-pro-6000-2way")
A100 = profiles("dgx-a100-40gb")


def placed(known: tuple[MigProfile, ...]) -> tuple[Place, ...]:
    return tuple((one, place) for one in known for place in one.placements)


def width(known: tuple[MigProfile, ...]) -> int:
    return max(place.start + place.size for one in known for place in one.placements)


def book(known: tuple[MigProfile, ...], memory: int | None = 40 * GIB) -> Ledger:
    return ledger("gpu-x", memory, placed(known), width=width(known))


def chosen(*wanted: str) -> list[Place]:
    """Placements of an A100: `1g.5gb@0`."""
    by_name = {one.name: one for one in A100}
    found = []
    for text in wanted:
        name, _, start = text.partition("@")
        found.append((by_name[name], Placement(int(start), by_name[name].size)))
    return found


MAIN = book(main_profiles(A100))


@pytest.mark.parametrize(
    ("together", "fits"),
    [
        (("1g.5gb@0", "1g.5gb@1", "1g.5gb@5", "2g.10gb@2"), True),
        (("1g.5gb@0", "1g.5gb@1", "1g.5gb@5", "2g.10gb@0"), False),
        (("1g.5gb@0", "1g.5gb@1", "1g.5gb@5", "2g.10gb@4"), False),
        (("1g.5gb@0", "1g.5gb@1", "1g.5gb@5", "3g.20gb@0"), False),
        (("1g.5gb@0", "1g.5gb@1", "1g.5gb@5", "3g.20gb@4"), False),
        (("1g.5gb@0", "1g.5gb@1", "1g.5gb@5", "4g.20gb@0"), False),
        (("3g.20gb@0", "3g.20gb@4"), True),
        (("4g.20gb@0", "4g.20gb@0"), False),
        (("4g.20gb@0", "3g.20gb@4"), True),
        (("3g.20gb@0", "4g.20gb@0"), False),
        (tuple(f"1g.5gb@{n}" for n in range(7)), True),
        ((*(f"1g.5gb@{n}" for n in range(7)), "1g.5gb@6"), False),
        (("1g.5gb@0", "1g.5gb@1", "2g.10gb@2", "3g.20gb@4"), True),
        (("1g.5gb@4", "1g.5gb@5", "2g.10gb@2", "3g.20gb@0"), False),
        (("7g.40gb@0", "1g.5gb@6"), False),
    ],
)
def test_c19_legal_combinations_of_an_a100(together: tuple[str, ...], fits: bool) -> None:
    assert admitted(MAIN, chosen(*together)) is fits
    assert admitted(MAIN, reversed(chosen(*together))) is fits


def shape(name: str) -> list[tuple[int, int, tuple[int, ...]]]:
    return [(one.slices, one.size, one.starts) for one in main_profiles(profiles(name))]


def test_the_machines_tried_below_stand_for_all() -> None:
    assert all(shape(name) in map(shape, SHAPES) for name in WITH_MIG)


@pytest.mark.parametrize("name", SHAPES)
def test_c19_main_profiles_of_every_machine_are_kept_apart_exactly(name: str) -> None:
    known = profiles(name)
    main = main_profiles(known)
    book_, places = book(main), placed(main)
    every = chain.from_iterable(combinations(places, size) for size in range(width(known) + 2))
    for chosen_ in every:
        assert admitted(book_, chosen_) is possible(known, chosen_), chosen_


@pytest.mark.parametrize("name", SHAPES)
def test_c19_all_profiles_of_every_machine_exclude_each_other_as_the_card_does(name: str) -> None:
    known = profiles(name)
    book_ = book(known)
    for size in (1, 2, 3):
        for chosen_ in combinations(placed(known), size):
            assert admitted(book_, chosen_) is possible(known, chosen_), chosen_


def test_c19_every_set_of_placements_of_an_a30_with_all_its_profiles() -> None:
    known = profiles("a30-2way")
    book_, places = book(known, 24 * GIB), placed(known)
    every = chain.from_iterable(combinations(places, size) for size in range(6))
    for chosen_ in every:
        assert admitted(book_, chosen_) is possible(known, chosen_), chosen_


@pytest.mark.parametrize("name", WITH_MIG)
def test_whole_excludes_every_placement_and_memory_never_runs_out_first(name: str) -> None:
    known = profiles(name)
    book_ = book(known)
    for taken in book_.placements.values():
        assert any(
            amount and book_.total.amounts[counter] - amount < book_.total.amounts[counter]
            for counter, amount in taken.amounts.items()
        )
        assert "memory" in taken.amounts
    without = {k: v for k, v in book_.total.amounts.items() if k != "memory"}
    for chosen_ in combinations(placed(main_profiles(known)), 3):
        used = [book_.of(*place).amounts for place in chosen_]
        fits = all(sum(u.get(k, 0) for u in used) <= v for k, v in without.items())
        assert fits is admitted(book_, chosen_)


def test_an_a100_needs_seven_slices_and_memory() -> None:
    assert MAIN.total.amounts == {"memory": 40 * GIB} | {f"slice-{n}": 1 for n in range(7)}
    taken = MAIN.of(*chosen("3g.20gb@4")[0]).amounts
    assert taken == {"memory": 20 * GIB, "slice-4": 1, "slice-5": 1, "slice-6": 1}


def test_few_profiles_need_few_counters() -> None:
    halves = tuple(one for one in A100 if one.name in {"3g.20gb", "7g.40gb"})
    assert set(book(halves).total.amounts) == {"memory", "slice-0", "slice-4"}


def test_a_card_without_mig_has_one_counter() -> None:
    assert ledger("gpu-x", 16 * GIB).total.amounts == {"memory": 16 * GIB}
    assert ledger("gpu-x", None).total.amounts == {"gpu": 1}


def test_c17_suffixes_cost_a_counter_only_where_they_are_offered() -> None:
    known = profiles("rtx-pro-6000-2way")
    assert set(book(main_profiles(known)).total.amounts) == {
        *("memory", "slice-0", "slice-1", "slice-2", "slice-3")
    }
    every = book(known).total.amounts
    assert {"media", "media-extensions"} <= set(every)
    a30 = book(profiles("a30-2way")).total.amounts
    assert {"media", "media-extensions"} & set(a30) == {"media-extensions"}
    assert len(every) <= limits.COUNTERS_PER_SET


def test_a_profile_with_fewer_instances_than_places_has_a_counter() -> None:
    one = MigProfile("1g.1gb", 0, 19, 1, 2, 1024, 1, (0, 1, 2, 3), 1)
    few = book((one,))
    assert few.total.amounts["instances-0"] == 2
    places = placed((one,))
    assert admitted(few, places[:2])
    assert not admitted(few, places[:3])


def test_a_foreign_instance_leaves_what_fits_beside_it() -> None:
    foreign = (instance("dgx-a100-40gb", "3g.20gb", 4),)
    left = beside(placed(A100), foreign)
    assert {place.start for _, place in left if place.size == 1} == {0, 1, 2, 3}
    assert {one.name for one, _ in left} == {
        *("1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb")
    }
    made = ledger("gpu-x", 40 * GIB, left, width=8, foreign=foreign)
    assert made.total.amounts["memory"] == 20 * GIB
    for chosen_ in chain.from_iterable(combinations(left, size) for size in (1, 2, 3)):
        assert admitted(made, chosen_) is possible(A100, chosen_, foreign)


def test_foreign_media_engines_keep_others_away_wherever_they_lie() -> None:
    known = profiles("rtx-pro-6000-2way")
    foreign = (instance("rtx-pro-6000-2way", "1g.24gb+me.all", 3),)
    left = beside(placed(known), foreign)
    assert {one.name for one, _ in left} == {"1g.24gb-me", "2g.48gb-me"}
    limited = (instance("a30-2way", "1g.6gb+me", 0),)
    others = beside(placed(profiles("a30-2way")), limited)
    assert {one.name for one, _ in others} == {"1g.6gb", "2g.12gb"}


def test_the_limit_of_a_profile_counts_foreign_instances() -> None:
    one = MigProfile("1g.1gb", 0, 19, 1, 2, 1024, 1, (0, 1, 2, 3), 1)
    there = instance("a30-2way", "1g.6gb", 0)
    foreign = (type(there)(there.parent, "GPU", 0, one, Placement(0, 1), 1),)
    left = beside(placed((one,)), foreign)
    made = ledger("gpu-x", 4 * GIB, left, width=4, foreign=foreign)
    assert made.total.amounts["instances-0"] == 1


def test_small_instances_come_first_where_they_are_least_in_the_way() -> None:
    order = [f"{one.name}@{place.start}" for one, place in in_order(placed(main_profiles(A100)))]
    assert order == [
        *("1g.5gb@6", "1g.5gb@5", "1g.5gb@4", "1g.5gb@3", "1g.5gb@2", "1g.5gb@1", "1g.5gb@0"),
        *("2g.10gb@4", "2g.10gb@2", "2g.10gb@0"),
        *("3g.20gb@4", "3g.20gb@0", "4g.20gb@0", "7g.40gb@0"),
    ]


@pytest.mark.parametrize("name", WITH_MIG)
def test_main_profiles_have_no_suffix_and_no_double_memory(name: str) -> None:
    main = main_profiles(profiles(name))
    assert not any(set(one.name) & set("+-") for one in main)
    assert len({one.slices for one in main}) == len(main)
    assert all(one.size == 1 for one in main if one.slices == 1)


def test_a_profile_whose_name_is_none_is_no_main_profile() -> None:
    odd = MigProfile("MIG something", 30, 99, 1, 4, 1024, 1, (0, 1), 1)
    assert odd not in main_profiles((*A100, odd))
