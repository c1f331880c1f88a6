"""Plays the arrivals of a trace: each pod goes to the node that a rule ranks first."""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

from benchmarks.openb import Box, Pod
from benchmarks.packing_rules import Node, Rule

Entry = tuple[Any, int, int]
"""A rank, the place of the node, and how many changes it had then."""


class Replay:
    """One run. Mutable. Ranks are worked out again only for nodes that have changed."""

    def __init__(self, boxes: Sequence[Box], rule: Rule) -> None:
        self.nodes = [Node(at, box) for at, box in enumerate(boxes)]
        self._rule = rule
        self._changed: list[int] = []
        self._ranked: dict[Pod, list[Entry]] = {}
        self._until: dict[Pod, int] = {}

    def place(self, pod: Pod) -> Node | None:
        """Places the pod where the rule has it; None where there is no room."""
        if self._rule.seen(pod):
            self._ranked.clear()
            self._until.clear()
        node = self._first(pod)
        if node is not None:
            node.put(pod, self._rule.cards(node, pod))
            self._changed.append(node.at)
        return node

    def _first(self, pod: Pod) -> Node | None:
        ranked = self._ranked.get(pod)
        if ranked is None:
            ranked = self._ranked[pod] = []
            news: Iterable[int] = range(len(self.nodes))
        else:
            news = set(self._changed[self._until[pod] :])
        self._until[pod] = len(self._changed)
        for at in news:
            node = self.nodes[at]
            if node.takes(pod):
                heappush(ranked, (self._rule.rank(node, pod), at, node.changes))
        while ranked:
            _, at, changes = ranked[0]
            if self.nodes[at].changes == changes:
                return self.nodes[at]
            heappop(ranked)
        return None
