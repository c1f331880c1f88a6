"""Allocations against the structured allocator that kube-scheduler 1.37 uses by default."""

from collections import defaultdict
from typing import Any

from hypothesis import assume, given, settings

from dragoon.allocator import Allocated, Kind, allocate
from tests.oracle.go_oracle import Oracle
from tests.property.clusters import Scene, scenes


def agree_on_counts(scene: Scene) -> bool:
    """Whether the slices of each generation name one count: else Go's answer depends on order."""
    counts = defaultdict(set)
    for one in scene.slices:
        pool = one["spec"]["pool"]
        key = one["spec"]["driver"], pool["name"], pool["generation"]
        counts[key].add(pool["resourceSliceCount"])
    return all(len(found) == 1 for found in counts.values())


def answer_of(oracle: Oracle, scene: Scene) -> dict[str, Any]:
    return oracle.ask(
        "allocate",
        claims=scene.claims,
        classes=scene.classes,
        slices=scene.slices,
        allocated=scene.held,
        node=scene.node,
    )


@settings(settings.get_profile("oracle"))
@given(scenes(risky=True))
def test_random_clusters_agree(oracle: Oracle, scene: Scene) -> None:
    assume(agree_on_counts(scene))
    answer = answer_of(oracle, scene)
    assert not answer.get("stopped")
    ours = allocate(
        scene.claims,
        classes=scene.classes,
        slices=scene.slices,
        allocated_claims=scene.held,
        node=scene.node,
    )
    if isinstance(ours, Allocated):
        assert list(ours.allocations) == answer["allocations"]
    elif ours.kind is Kind.FAILED:
        assert answer.get("error"), ours.message
        assert not answer.get("onNode")
    else:
        assert ours.kind is Kind.NO_FIT
        assert answer["allocations"] is None
        assert answer.get("onNode") or not answer.get("error"), answer
        # Go says so of invalid pools only where nothing fits.
        invalid = any("invalid" in note.problem for note in ours.explanation.pools)
        assert bool(answer.get("onNode")) is invalid
