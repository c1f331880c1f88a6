"""Random misfits: every change that is offered makes the claims fit.

The change is made again, from what is told of it, and asked of the allocator and of the verifier
with raw objects.
"""

import copy
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.allocator import Allocated, allocate, verify
from dragoon.diagnose.placing import Verdict, place
from dragoon.diagnose.remedies import Remedies, remedies
from tests.property.allocator_scenes import Scene, random_scene
from tests.property.misfits import asked, changed, fits


def check(scene: Scene, found: Remedies) -> None:
    """Every remedy makes the claims fit, by the allocator and by the verifier."""
    for remedy in found.offered:
        after = changed(scene, remedy)
        answer = allocate(after.claims, **after.arguments())
        assert isinstance(answer, Allocated), (remedy, answer.message)
        assert not verify(after.claims, answer.allocations, **after.arguments()), remedy


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_every_change_that_is_offered_makes_the_claims_fit(seed: int) -> None:
    scene = random_scene(Random(seed))  # noqa: S311 - of cases, not of secrets
    before = copy.deepcopy(scene)
    cluster, claims = asked(scene)
    found = remedies(cluster, claims, trials=200)
    assert scene == before
    if fits(scene):
        assert found == Remedies()
    check(scene, found)
    assert remedies(*asked(scene), trials=200) == found


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_a_placement_is_what_the_allocator_says_and_waiting_is_for_holders(seed: int) -> None:
    scene = random_scene(Random(seed))  # noqa: S311 - of cases, not of secrets
    cluster, claims = asked(scene)
    found = place(cluster, claims)
    truth = fits(scene)
    if truth is not None and not cluster.problems:
        assert (found.verdict is Verdict.PLACE) == truth
    if found.verdict is Verdict.PLACE:
        assert not verify(scene.claims, found.allocations, **scene.arguments())
    empty = copy.deepcopy(scene)
    empty.held = []
    if found.verdict is Verdict.NEVER:
        assert not fits(empty)
    if found.verdict is Verdict.WAIT and found.explanation and not found.explanation.pools:
        assert fits(empty)
