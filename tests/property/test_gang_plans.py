"""Random gangs: what is planned is right, and what is said to be impossible is."""

from itertools import count
from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st

from dragoon.allocator.gang import GangPlan, NoRoom, Outcome, plan
from dragoon.allocator.gang.verifying import verify_plan
from tests.property.gang_scenes import Scene, has_placement, random_scene

SEEDS = st.integers(0, 2**32)


def scene_of(seed: int) -> Scene:
    return random_scene(Random(seed))  # noqa: S311 - of cases, not of secrets


def planned(scene: Scene) -> Outcome:
    numbers = count(1)
    return plan(scene.snapshot, scene.ask, share_ids=lambda: f"share-{next(numbers)}")


@settings(deadline=None)
@given(SEEDS)
def test_a_placement_is_found_exactly_where_one_exists(seed: int) -> None:
    scene = scene_of(seed)
    outcome = planned(scene)
    event(type(outcome).__name__)
    assert isinstance(outcome, GangPlan if has_placement(scene) else NoRoom), outcome


@settings(deadline=None)
@given(SEEDS)
def test_every_plan_passes_the_verifier(seed: int) -> None:
    scene = scene_of(seed)
    outcome = planned(scene)
    if isinstance(outcome, GangPlan):
        assert not verify_plan(scene.snapshot, scene.ask, outcome)


@settings(deadline=None)
@given(SEEDS)
def test_the_same_input_gives_the_same_plan(seed: int) -> None:
    first, second = planned(scene_of(seed)), planned(scene_of(seed))
    assert _told(first) == _told(second)


def _told(outcome: Outcome) -> object:
    if not isinstance(outcome, GangPlan):
        return type(outcome)
    placed = [(one.pod.uid, one.node, one.allocations) for one in outcome.placements]
    return placed, outcome.score, outcome.left_out
