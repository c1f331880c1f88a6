"""The packing benchmark keeps its own cluster for speed; the planner itself would choose the same."""

from pathlib import Path
from random import Random

import pytest

from benchmarks import openb_objects as objects
from benchmarks.openb import CARD, Box, Pod, TraceError, arrivals, boxes
from benchmarks.packing_replay import Replay
from benchmarks.packing_rules import BestFit, FirstFit, Planner
from dragoon.allocator import ClusterState
from dragoon.allocator.gang import GangAsk, GangPlan, NodeFacts, PlacementSnapshot, PodAsk, plan

GIB = 2**30
BOXES = [
    *[Box(96_000, 384 * GIB, 8, "G2")] * 2,
    *[Box(104_000, 512 * GIB, 2, "T4")] * 4,
    Box(32_000, 128 * GIB, 4, "V100M16"),
    Box(8_000, 60 * GIB, 1, "P100"),
]
WANTED = [
    Pod(6_000, 12 * GIB, 1, 460, ()),
    Pod(8_000, 30 * GIB, 1, 810, ("T4", "P100")),
    Pod(2_000, 4 * GIB, 1, 230, ()),
    Pod(11_900, 16 * GIB, 1, CARD, ()),
    Pod(20_000, 64 * GIB, 2, CARD, ()),
    Pod(30_000, 64 * GIB, 4, CARD, ("G2", "V100M16")),
    Pod(40_000, 128 * GIB, 0, 0, ()),
]


class Witness:
    """The cluster of a replay as Kubernetes objects, and the planner's answer for one pod more."""

    def __init__(self) -> None:
        self._state = ClusterState()
        for raw in objects.classes():
            self._state.put_class(raw)
        for at, box in enumerate(BOXES):
            for raw in objects.slices(_name(at), box):
                self._state.put_slice(raw)
        self._left = {
            (_name(at), card): CARD for at, box in enumerate(BOXES) for card in range(box.cards)
        }
        self._used: dict[str, dict[str, int]] = {
            _name(at): {"cpu": 0, "memory": 0} for at in range(len(BOXES))
        }

    def place(self, number: int, pod: Pod, rule: Planner) -> tuple[str, list[int]] | None:
        """Node and what was left of its cards, sorted, where the planner places the pod."""
        claims = (objects.claim(pod, f"pod-{number}"),) if pod.cards else ()
        amounts = {"cpu": pod.cpu, "memory": pod.memory}
        member = PodAsk("openb", f"pod-{number}", f"pod-{number}", amounts, claims)
        nodes = tuple(
            NodeFacts(
                _name(at),
                allocatable={"cpu": box.cpu, "memory": box.memory},
                used=dict(self._used[_name(at)]),
            )
            for at, box in enumerate(BOXES)
        )
        cluster = PlacementSnapshot(self._state.snapshot(), nodes, mix=rule.mix)
        outcome = plan(cluster, GangAsk("one", (member,), 1))
        if not isinstance(outcome, GangPlan):
            return None
        placed = outcome.placements[0]
        for name, amount in amounts.items():
            self._used[placed.node][name] += amount
        for claim in claims:
            allocation = placed.allocations[claim["metadata"]["uid"]]
            self._state.put_claim({**claim, "status": {"allocation": allocation}})
            for result in allocation["devices"]["results"]:
                card = int(result["device"].removesuffix("-shared").removeprefix("gpu-"))
                self._left[placed.node, card] -= pod.milli
        here = sorted(left for (name, _), left in self._left.items() if name == placed.node)
        return placed.node, here


@pytest.mark.parametrize("seed", range(2))
def test_the_benchmark_chooses_the_nodes_and_cards_that_the_planner_chooses(seed: int) -> None:
    random = _dice(seed)
    rule, witness = Planner(), Witness()
    replay = Replay(BOXES, rule)
    placed = 0
    for number in range(45):
        pod = random.choice(WANTED)
        node = replay.place(pod)
        found = witness.place(number, pod, rule)
        assert found == (None if node is None else (_name(node.at), list(node.cards)))
        placed += node is not None
    assert placed > 20


def test_arrivals_ask_for_130_per_cent_of_the_cards() -> None:
    capacity = CARD * sum(box.cards for box in BOXES)
    few = arrivals(WANTED, capacity, _dice(1))
    many = arrivals(WANTED * 20, capacity, _dice(1))
    for coming in (few, many):
        asked = sum(pod.size for pod in coming)
        assert capacity * 1.3 - 4 * CARD < asked <= capacity * 1.3
    assert set(WANTED) <= set(few)


@pytest.mark.parametrize("rule", [FirstFit, BestFit, Planner])
def test_no_rule_gives_what_is_not_there_or_leaves_a_pod_out_that_fits(rule: type[Planner]) -> None:
    random = _dice(7)
    replay = Replay(BOXES, rule())
    for _ in range(120):
        pod = random.choice(WANTED)
        fits = any(node.takes(pod) for node in replay.nodes)
        assert (replay.place(pod) is not None) == fits
        for node in replay.nodes:
            assert min(node.left.values()) >= 0
            assert all(0 <= left <= CARD for left in node.cards)


def test_traces_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="--traces or DRAGOON_TRACES"):
        boxes(tmp_path)


def _dice(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - of pods, not of secrets


def _name(at: int) -> str:
    return f"node-{at:04d}"
