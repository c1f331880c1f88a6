"""Gangs over every allocator feature: where pod by pod finds a way, the planner does not say no."""

import copy
from collections.abc import Iterator
from itertools import count
from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st

from dragoon.allocator import Allocated, ClusterState, allocate_anywhere
from dragoon.allocator.claims import node_view
from dragoon.allocator.gang import GangAsk, GangPlan, NoRoom, PlacementSnapshot, PodAsk, node_facts
from dragoon.allocator.gang.planning import plan
from dragoon.errors import DragoonError, InvalidInputError, UnsupportedError
from tests.property.allocator_devices import Raw
from tests.property.allocator_scenes import Scene, random_scene


def state_of(scene: Scene) -> ClusterState:
    state = ClusterState()
    for raw in scene.classes:
        state.put_class(raw)
    for raw in scene.slices:
        state.put_slice(raw)
    for raw in scene.rules:
        state.put_rule(raw)
    for raw in scene.held:
        state.put_claim(raw)
    return state


def nodes_of(scene: Scene) -> list[Raw]:
    """The node of the scene and another one, with room for pods."""
    room = {"status": {"allocatable": {"pods": "110"}}}
    labels = scene.node["metadata"]["labels"]
    names = (scene.node["metadata"]["name"], "m")
    return [{"metadata": {"name": name, "labels": labels}, **room} for name in names]


def members_of(scene: Scene, number: int) -> list[PodAsk]:
    """That many pods, each with claims like those of the scene."""
    found: list[PodAsk] = []
    for index in range(number):
        claims = copy.deepcopy(scene.claims)
        for claim in claims:
            claim["metadata"] |= {
                "name": f"{claim['metadata']['name']}-{index}",
                "uid": f"{claim['metadata']['name']}-{index}",
            }
        found.append(PodAsk("default", f"w{index}", f"w{index}", {}, tuple(claims)))
    return found


def share_ids() -> Iterator[str]:
    return (f"00000000-0000-4000-9000-{number:012x}" for number in count(1))


def fit_one_by_one(scene: Scene, members: list[PodAsk]) -> bool:
    """Whether all fit when one after the other is placed on the first node, as stock does it."""
    state, fresh = state_of(scene), share_ids()
    nodes = [node_view(raw) for raw in nodes_of(scene)]
    for pod in members:
        answer = allocate_anywhere(
            state.snapshot(), pod.claims, nodes, share_ids=lambda: next(fresh)
        )
        if not isinstance(answer, Allocated):
            return False
        for claim, allocation in zip(pod.claims, answer.allocations, strict=True):
            state.put_claim({**claim, "status": {"allocation": allocation}})
    return True


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_what_fits_pod_by_pod_fits_as_a_gang(seed: int, number: int) -> None:
    scene = random_scene(Random(seed))  # noqa: S311 - of cases, not of secrets
    members = members_of(scene, number)
    try:
        stock = fit_one_by_one(scene, members)
    except (InvalidInputError, UnsupportedError, DragoonError):
        return  # kube-scheduler would not come to an answer either.
    snapshot = PlacementSnapshot(
        state_of(scene).snapshot(), tuple(node_facts(raw) for raw in nodes_of(scene))
    )
    fresh = share_ids()
    outcome = plan(snapshot, GangAsk("g", tuple(members), number), share_ids=lambda: next(fresh))
    event(f"{type(outcome).__name__}, stock {stock}")
    assert isinstance(outcome, GangPlan) or not (stock and isinstance(outcome, NoRoom)), outcome
