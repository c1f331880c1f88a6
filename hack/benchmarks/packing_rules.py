"""Which node and cards a pod of the traces gets: by the planner's own measure, and two simple rules.

A card is known by what is left of it, in thousandths; one of which a part is in use is shared.
"""

from typing import Any, Final, Protocol

from benchmarks import openb_objects as objects
from benchmarks.openb import CARD, Box, Pod
from dragoon.allocator import ClusterState
from dragoon.allocator.gang.demand import Wish, mix_of, wishes_of
from dragoon.allocator.gang.fragments import CardState, Value
from dragoon.allocator.gang.valuing import Part, Standing, Valuation
from dragoon.allocator.model import Device

_NANO: Final = 10**9
"""The allocator counts in nano units."""

Cards = tuple[int, ...]
"""What is left of each card of a node, least first."""


class Node:
    """A node. Mutable: what is left of it follows what is placed. at: its place in the order."""

    __slots__ = ("at", "box", "cards", "changes", "left", "memo")

    def __init__(self, at: int, box: Box) -> None:
        self.at = at
        self.box = box
        self.cards: Cards = (CARD,) * box.cards
        self.left = {"cpu": box.cpu, "memory": box.memory}
        self.changes = 0
        self.memo: tuple[Any, int] = (None, 0)

    def takes(self, pod: Pod) -> bool:
        """Whether there is room for the pod."""
        if pod.cpu > self.left["cpu"] or pod.memory > self.left["memory"]:
            return False
        if pod.models and self.box.model not in pod.models:
            return False
        return sum(left >= pod.milli for left in self.cards) >= pod.cards

    def without(self, pod: Pod) -> dict[str, int]:
        """What the pod would leave of cpu and memory."""
        return {"cpu": self.left["cpu"] - pod.cpu, "memory": self.left["memory"] - pod.memory}

    def put(self, pod: Pod, cards: Cards) -> None:
        """Places the pod, which leaves the cards like this."""
        self.cards, self.left = cards, self.without(pod)
        self.changes += 1


class Rule(Protocol):
    """Ranks nodes for a pod; the least rank is taken, of equal ones the first node."""

    def seen(self, pod: Pod, /) -> bool:
        """A pod has come; answers whether the ranks given before count no more."""

    def rank(self, node: Node, pod: Pod, /) -> Any:
        """The rank of a node that takes the pod."""

    def cards(self, node: Node, pod: Pod) -> Cards:
        """What the pod would leave of the cards of a node that takes it."""


class FirstFit:
    """The first node; of its cards the one with least left."""

    def seen(self, _pod: Pod, /) -> bool:
        return False

    def rank(self, _node: Node, _pod: Pod, /) -> Any:
        return 0

    def cards(self, node: Node, pod: Pod) -> Cards:
        if not pod.cards:
            return node.cards
        return _without(node.cards, pod, next(one for one in node.cards if one >= pod.milli))


class BestFit(FirstFit):
    """The node of which least is left, all resources together; of its cards the same."""

    def rank(self, node: Node, pod: Pod, /) -> Any:
        box, left = node.box, node.without(pod)
        cards = (sum(node.cards) - pod.size) / (CARD * box.cards)
        return left["cpu"] / box.cpu + left["memory"] / box.memory + cards


class Planner:
    """The planner's measure, with the mix that it learns from the pods that have come so far.

    The mix is learned anew each time that twice as many pods have come.
    """

    def __init__(self) -> None:
        state = ClusterState()
        for raw in objects.classes():
            state.put_class(raw)
        self._state = state
        self._counts: dict[Wish, int] = {}
        self._wishes: dict[Pod, tuple[Wish, ...]] = {}
        self._devices: dict[str, tuple[Device, ...]] = {}
        self._come = self._learned = 0
        self._learn()

    def seen(self, pod: Pod) -> bool:
        for wish in self._wishes_of(pod):
            self._counts[wish] = self._counts.get(wish, 0) + 1
        self._come += 1
        if self._come < 2 * self._learned:
            return False
        self._learn()
        return True

    def rank(self, node: Node, pod: Pod) -> Any:
        now = self._learned, node.changes
        if node.memo[0] != now:
            node.memo = now, self._value(node.box.model, node.cards, node.left).loss
        cards = self.cards(node, pod)
        after = self._value(node.box.model, cards, node.without(pod))
        return after.loss - node.memo[1], after.free

    def cards(self, node: Node, pod: Pod) -> Cards:
        if not pod.cards:
            return node.cards
        if pod.milli == CARD:
            return _without(node.cards, pod, CARD)
        key = node.box.model, node.cards, pod.milli
        known = self._chosen.get(key)
        if known is None:
            cards = (_without(node.cards, pod, one) for one in _shareable(node.cards, pod))
            known = self._chosen[key] = min(
                cards, key=lambda one: self._value(node.box.model, one, None).loss
            )
        return known

    def _value(self, model: str, cards: Cards, left: dict[str, int] | None) -> Value:
        states = self._states.get((model, cards))
        if states is None:
            found = tuple(self._card(model, one) for one in cards)
            states = self._states[model, cards] = found
        return self._valuation.yardstick.value(states, left)

    def _learn(self) -> None:
        self._learned = max(1, self._come)
        self.mix = mix_of(self._counts)
        self._valuation = Valuation(self.mix, self._state.snapshot().classes)
        self._parts: dict[str, tuple[Part, ...]] = {}
        self._states: dict[tuple[str, Cards], tuple[CardState, ...]] = {}
        self._chosen: dict[tuple[str, Cards, int], Cards] = {}

    def _wishes_of(self, pod: Pod) -> tuple[Wish, ...]:
        known = self._wishes.get(pod)
        if known is None:
            claims = [objects.claim(pod, "pod")] if pod.cards else []
            amounts = {"cpu": pod.cpu, "memory": pod.memory}
            known = self._wishes[pod] = wishes_of(amounts, claims)
        return known

    def _card(self, model: str, left: int) -> CardState:
        """A card, which is a whole device and one for shares: one counter keeps them apart."""
        counter = ("gpu-0", objects.USED)
        if model not in self._parts:
            self._parts[model] = self._valuation.parts(self._made(model), {counter: _NANO})
        consumed = ((objects.MILLI, (CARD - left) * _NANO),) if 0 < left < CARD else ()
        standing = Standing(
            held=(left == 0, 0 < left < CARD),
            consumed=((), consumed),
            left=(_NANO if left == CARD else 0,),
        )
        return self._valuation.state(self._parts[model], (_NANO,), 0, standing)

    def _made(self, model: str) -> tuple[Device, ...]:
        if model not in self._devices:
            for raw in objects.slices(model, Box(0, 0, 1, model)):
                self._state.put_slice(raw)
            pools = self._state.snapshot().pools.values()
            slices = next(one.slices for one in pools if one.id.pool == f"{model}/gpu")
            self._devices[model] = tuple(device for one in slices for device in one.devices)
        return self._devices[model]


def _shareable(cards: Cards, pod: Pod) -> list[int]:
    """What is left of cards with room for the share: those in use first, of these the fullest."""
    return sorted({left for left in cards if left >= pod.milli})


def _without(cards: Cards, pod: Pod, left: int) -> Cards:
    """The cards after the pod took its part of as many as it wants of those with so much left."""
    rest = list(cards)
    for _ in range(pod.cards):
        rest.remove(left)
    return tuple(sorted((*rest, *(left - pod.milli for _ in range(pod.cards)))))
