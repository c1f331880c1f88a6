"""Random misfits: what `explain` offers makes the claims fit by kube-scheduler's allocator, too."""

from random import Random

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from dragoon.diagnose.remedies import remedies
from tests.oracle.go_oracle import Oracle
from tests.property.allocator_scenes import patched, random_scene
from tests.property.misfits import asked, changed, fits


@settings(settings.get_profile("oracle"))
@given(st.integers(0, 2**32))
def test_every_change_that_is_offered_fits_by_kubernetes(oracle: Oracle, seed: int) -> None:
    scene = random_scene(Random(seed))  # noqa: S311 - of cases, not of secrets
    assume(not fits(scene))
    found = remedies(*asked(scene), trials=200)
    event(f"{len(found.offered)} changes offered")
    for remedy in found.offered:
        after = changed(scene, remedy)
        answer = oracle.ask(
            "allocate",
            claims=after.claims,
            classes=after.classes,
            slices=patched(after),
            allocated=after.held,
            node=after.node,
        )
        assert answer.get("allocations"), (remedy, answer)
