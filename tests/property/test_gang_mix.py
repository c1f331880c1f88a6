"""What is to be expected decides between placements; it never decides whether there is one."""

from dataclasses import replace
from itertools import count
from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st

from dragoon.allocator.gang import GangPlan, NoRoom, Outcome, SearchStopped, plan
from dragoon.allocator.gang.demand import mix_of, wishes_of
from dragoon.allocator.gang.mix import KINDS, Mix
from dragoon.allocator.gang.verifying import verify_plan
from tests.property.gang_scenes import Scene, random_gang, random_scene

SEEDS = st.integers(0, 2**32)


def planned(scene: Scene, mix: Mix) -> Outcome:
    numbers = count(1)
    return plan(
        replace(scene.snapshot, mix=mix), scene.ask, share_ids=lambda: f"share-{next(numbers)}"
    )


def random_mix(random: Random) -> Mix:
    """Learned from the members of some other gangs."""
    members = [one for _ in range(3) for one in random_gang(random).members]
    wishes = [wish for one in members for wish in wishes_of(one.requests, one.claims)]
    return mix_of({wish: random.randrange(1, 50) for wish in wishes})


@settings(deadline=None)
@given(SEEDS)
def test_whether_a_gang_fits_does_not_depend_on_what_is_expected(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - of cases, not of secrets
    scene = random_scene(random)
    outcomes = [planned(scene, mix) for mix in ((), KINDS, random_mix(random))]
    event(type(outcomes[0]).__name__)
    assert not any(isinstance(one, SearchStopped) for one in outcomes)
    assert len({type(one) for one in outcomes}) == 1
    for one in outcomes:
        if isinstance(one, GangPlan):
            assert not verify_plan(scene.snapshot, scene.ask, one)
        if isinstance(one, NoRoom) and isinstance(outcomes[0], NoRoom):
            assert one.never == outcomes[0].never


@settings(deadline=None)
@given(SEEDS)
def test_the_mix_never_costs_a_node_more(seed: int) -> None:
    """Few nodes come before what is lost; with one shape the fewest are found for certain."""
    random = Random(seed)  # noqa: S311 - of cases, not of secrets
    scene = random_scene(random)
    plain, measured = (planned(scene, mix) for mix in ((), random_mix(random)))
    if isinstance(plain, GangPlan) and isinstance(measured, GangPlan):
        members = scene.ask.members
        shapes = {repr((one.requests, [raw["spec"] for raw in one.claims])) for one in members}
        claims = [raw["metadata"]["uid"] for one in members for raw in one.claims]
        event(f"{len(shapes)} shapes")
        if len(shapes) == 1 and len(claims) == len(set(claims)):
            assert measured.score.nodes == plain.score.nodes
