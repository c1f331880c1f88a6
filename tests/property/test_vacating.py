"""Who has to leave for a gang, on random small clusters, against trying every set of holders."""

from itertools import combinations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.allocator.gang.model import GangPlan
from dragoon.allocator.gang.vacating import Occupant, left, vacate
from dragoon.allocator.gang.verifying import verify_plan
from tests.property.gang_scenes import Scene, random_scene
from tests.unit.allocator.gang.objects import planned


def occupants_of(scene: Scene, random: Random) -> list[Occupant]:
    """Each claim is of one pod, but for some that are of a gang; some pods hold no device."""
    found: dict[str, Occupant] = {}
    nodes = {one.name: one for one in scene.snapshot.nodes}
    for pool, usage in scene.snapshot.cluster.usage.items():
        node = pool.pool.partition("/")[0]
        for hold in (hold for holds in usage.exclusive.values() for hold in holds):
            crew = random.choice(("", "", "crew"))
            name = crew or hold.claim
            old = found.get(name)
            counts = {**(old.counts if old else {})}
            counts[node] = counts.get(node, 0) + 1
            found[name] = Occupant(
                name,
                random.randrange(3) if old is None else old.priority,
                (*(old.pods if old else ()), f"pod-{hold.claim}"),
                (*(old.claims if old else ()), hold.claim),
                counts=counts,
            )
    for facts in nodes.values():
        if facts.pods:
            name = f"hog-{facts.name}"
            used = {facts.name: {"cpu": 1000}}
            found[name] = Occupant(name, random.randrange(3), (name,), (), used, {facts.name: 1})
    return sorted(found.values(), key=lambda one: one.name)


def fits(scene: Scene, gone: tuple[Occupant, ...]) -> bool:
    return isinstance(planned(left(scene.snapshot, gone), scene.ask), GangPlan)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_it_fits_with_just_those_gone_and_with_none_of_them_kept(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a scene that can be made again
    scene = random_scene(random)
    known = occupants_of(scene, random)[:7]
    found = vacate(scene.snapshot, scene.ask, known)
    if found is None:
        assert not fits(scene, tuple(known))
        return
    assert found.least
    assert not verify_plan(left(scene.snapshot, found.occupants), scene.ask, found.plan)
    for one in found.occupants:
        assert not fits(scene, tuple(each for each in found.occupants if each is not one))
    enough = [
        some
        for size in range(len(known) + 1)
        for some in combinations(known, size)
        if fits(scene, some)
    ]
    best = min(max((one.priority for one in some), default=0) for some in enough)
    assert found.priority == best
