"""Searching claims that are alike in one order only finds a solution exactly where there is one."""

from dataclasses import replace
from random import Random

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from dragoon.allocator import snapshot
from dragoon.allocator.claims import claim_view, node_view
from dragoon.allocator.problem import Problem
from dragoon.allocator.search import solve
from dragoon.errors import DragoonError
from tests.property.allocator_scenes import random_scene

_ATTEMPTS = 20_000


def outcome(problem: Problem) -> str:
    """Whether there is a solution, or which error ended the search."""
    try:
        return "none" if solve(problem, attempts=_ATTEMPTS) is None else "found"
    except DragoonError as error:
        return error.code


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 4))
def test_twins_are_searched_in_one_order(seed: int, number: int) -> None:
    scene = random_scene(Random(seed), risky=False)  # noqa: S311 - of cases, not of secrets
    cluster = snapshot(
        classes=scene.classes,
        slices=scene.slices,
        allocated_claims=scene.held,
        taint_rules=scene.rules,
    )
    block = [claim_view(raw) for raw in scene.claims]
    node = node_view(scene.node)
    claims = [replace(one, uid=f"{one.uid}-{copy}") for copy in range(number) for one in block]
    pools = cluster.site(node).pools
    plain = Problem(claims, cluster.classes, pools, cluster.usage, node)
    size = len(block)
    twins = {copy * size: (copy - 1) * size for copy in range(1, number)}
    expected = outcome(plain)
    event(expected)
    assume(expected in {"none", "found"})
    assert outcome(replace(plain, twins=twins)) == expected
