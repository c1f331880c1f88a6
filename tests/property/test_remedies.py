"""Random misfits: every change that is offered makes the claims fit.

The change is made again here, from what is told of it, and asked of the allocator and of the
verifier with raw objects: nothing of the trial that came before is used.
"""

import copy
import re
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.allocator import Allocated, allocate, verify
from dragoon.diagnose.cluster import Cluster
from dragoon.diagnose.placing import Verdict, place
from dragoon.diagnose.pods import PodClaims
from dragoon.diagnose.remedies import Remedies, Remedy, remedies
from dragoon.diagnose.snapshot import ClusterSnapshot
from dragoon.errors import DragoonError
from tests.property.allocator_scenes import Scene, random_scene

Raw = dict[str, Any]
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_CEL = ".cel.expression"


def snapshot(scene: Scene) -> ClusterSnapshot:
    return ClusterSnapshot(
        classes=tuple(scene.classes),
        slices=tuple(scene.slices),
        claims=(*scene.held, *scene.claims),
        nodes=(scene.node,),
        taint_rules=tuple(scene.rules),
    )


def asked(scene: Scene) -> tuple[Cluster, PodClaims]:
    return Cluster(snapshot(scene)), PodClaims(pending=tuple(scene.claims))


def changed(scene: Scene, remedy: Remedy) -> Scene:
    """The scene after somebody did what the remedy says."""
    after = copy.deepcopy(scene)
    if remedy.kind == "holder":
        gone = set(remedy.claim.split(", "))
        after.held = [one for one in after.held if name(one) not in gone]
        return after
    (claim,) = [one for one in after.claims if name(one) == remedy.claim]
    steps = [int(index) if index else key for index, key in _STEP.findall(remedy.path)]
    if remedy.path.endswith(_CEL) and not remedy.after:
        steps = steps[:-2]
    holder: Any = claim
    for step in steps[:-1]:
        holder = holder.setdefault(step, {}) if isinstance(step, str) else holder[step]
    last: Any = steps[-1]
    if remedy.kind == "toleration":
        holder.setdefault(last, []).append(toleration(remedy.after))
    elif remedy.kind == "count" and remedy.after.startswith("count: "):
        holder["allocationMode"] = "ExactCount"
        holder["count"] = int(remedy.after.removeprefix("count: "))
    elif remedy.kind == "count":
        holder[last] = int(remedy.after)
    elif remedy.after:
        holder[last] = remedy.after
    else:
        del holder[last]
    return after


def toleration(text: str) -> Raw:
    taint, _, effect = text.rpartition(":")
    key, equals, value = taint.partition("=")
    if equals:
        return {"key": key, "operator": "Equal", "value": value, "effect": effect}
    return {"key": key, "operator": "Exists", "effect": effect}


def name(claim: Raw) -> str:
    return f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"


def check(scene: Scene, found: Remedies) -> None:
    """Every remedy makes the claims fit, by the allocator and by the verifier."""
    for remedy in found.offered:
        after = changed(scene, remedy)
        answer = allocate(after.claims, **after.arguments())
        assert isinstance(answer, Allocated), (remedy, answer.message)
        assert not verify(after.claims, answer.allocations, **after.arguments()), remedy


def fits(scene: Scene) -> bool | None:
    """Whether the claims fit as they are, None where Dragoon does not say."""
    try:
        return isinstance(allocate(scene.claims, **scene.arguments()), Allocated)
    except DragoonError:
        return None


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
