"""The allocator with every feature: verifier, brute force, and the state kept up by events."""

import itertools
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoon.allocator import (
    Allocated,
    Answer,
    ClusterState,
    Snapshot,
    allocate,
    allocate_on,
    allocate_over,
    lines,
    verify,
)
from dragoon.allocator.claims import node_view
from dragoon.allocator.pools import Pool
from dragoon.allocator.usage import PoolUsage
from tests.property.allocator_devices import Dice, Raw
from tests.property.allocator_scenes import Scene, claim, random_scene
from tests.unit.allocator.objects import GPU_CLASS, counters, device, node, request, slice_of, uses
from tests.unit.allocator.objects import claim as claim_of

RANDOM = st.randoms(use_true_random=True)
"""Real random numbers: what hypothesis draws itself stays too near to nothing to meet in a pool."""
CALM = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@CALM
@given(RANDOM)
def test_verifier_accepts_whatever_the_search_returns(random: Random) -> None:
    scene = random_scene(random)
    outcome = allocate(scene.claims, **scene.arguments())
    assert lines(outcome.explanation) or not outcome.explanation.funnels
    if isinstance(outcome, Allocated):
        assert not verify(scene.claims, outcome.allocations, **scene.arguments())


@CALM
@given(RANDOM)
def test_a_refusal_names_a_reason_that_stands_alone(random: Random) -> None:
    """Where a request is short, nothing that other requests do can change it."""
    scene = random_scene(random, risky=False)
    outcome = allocate(scene.claims, **scene.arguments())
    if isinstance(outcome, Allocated):
        short = [one for one in outcome.explanation.funnels if one.is_short and one.chosen]
        assert not short
        assert not any(group.is_short for group in outcome.explanation.groups)
    else:
        assert outcome.message


# Brute force.


def small_pool(dice: Dice) -> list[Raw]:
    """Up to five devices with counters of two cards; some are shared and have memory."""
    devices = []
    for number in range(1 + dice.random.randrange(5)):
        card = f"card-{dice.random.randrange(2)}"
        fields: dict[str, Any] = {}
        if not dice.rare(3):
            fields["consumesCounters"] = uses(card, parts=1 + dice.random.randrange(3), units=1)
        if dice.rare(2):
            fields["allowMultipleAllocations"] = True
            fields["capacity"] = {"memory": {"value": str(2 + dice.random.randrange(3))}}
        devices.append(device(f"d{number}", **fields))
    amounts = {"parts": str(2 + dice.random.randrange(3)), "units": "2"}
    return [
        counters(("card-0", amounts), ("card-1", {"parts": "2", "units": "3"})),
        slice_of(*devices, count=2),
    ]


def small_wishes(dice: Dice) -> list[Raw]:
    found = []
    for number in range(1 + dice.random.randrange(3)):
        fields: dict[str, Any] = {}
        if dice.rare(2):
            fields["capacity"] = {"requests": {"memory": str(1 + dice.random.randrange(3))}}
        found.append(request(f"r{number}", dice.one((1, 1, 2)), **fields))
    return found


def amount_of(one: Raw, wish: Raw) -> int | None:
    """What the wish takes of the device's memory, None if it cannot have the device."""
    asked = wish["exactly"].get("capacity", {}).get("requests", {}).get("memory")
    there = one.get("capacity", {}).get("memory", {}).get("value")
    if there is None:
        return 0 if asked is None else None
    taken = int(there if asked is None else asked)
    return taken if taken <= int(there) else None


def is_possible(choice: list[tuple[Raw, tuple[Raw, ...]]], sets: list[Raw]) -> bool:
    """Whether these devices can be given together: by sums over everything at once."""
    whole = [one["name"] for _, many in choice for one in many if not is_shared(one)]
    if len(set(whole)) < len(whole):
        return False
    memory: dict[str, int] = {}
    left = {
        (one["name"], name): int(value["value"])
        for one in sets
        for name, value in one["counters"].items()
    }
    charged: set[str] = set()
    for wish, many in choice:
        for one in many:
            taken = amount_of(one, wish)
            if taken is None:
                return False
            if is_shared(one):
                memory[one["name"]] = memory.get(one["name"], 0) + taken
                if memory[one["name"]] > int(one["capacity"]["memory"]["value"]):
                    return False
            if one["name"] not in charged:
                charged.add(one["name"])
                for use in one.get("consumesCounters", []):
                    for name, value in use["counters"].items():
                        left[use["counterSet"], name] -= int(value["value"])
    return all(amount >= 0 for amount in left.values())


def is_shared(one: Raw) -> bool:
    return bool(one.get("allowMultipleAllocations"))


def solutions(slices: list[Raw], wishes: list[Raw]) -> Iterator[list[str]]:
    """All solutions in the order of the search."""
    devices = slices[1]["spec"]["devices"]
    choices = (itertools.combinations(devices, wish["exactly"]["count"]) for wish in wishes)
    for picked in itertools.product(*choices):
        if is_possible(list(zip(wishes, picked, strict=True)), slices[0]["spec"]["sharedCounters"]):
            yield [one["name"] for many in picked for one in many]


@settings(CALM, max_examples=300)
@given(RANDOM)
def test_counters_and_capacity_give_the_first_solution_of_brute_force(random: Random) -> None:
    dice = Dice(random)
    slices, wishes = small_pool(dice), small_wishes(dice)
    outcome = allocate(
        [claim_of(*wishes)],
        classes=[GPU_CLASS],
        slices=slices,
        allocated_claims=[],
        node=node(),
    )
    expected = next(solutions(slices, wishes), None)
    found = None
    if isinstance(outcome, Allocated):
        found = [one["device"] for one in outcome.allocations[0]["devices"]["results"]]
    assert found == expected


# The state kept up by events.


class World:
    """What the API server would have, and a state that was told of each change."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.state = ClusterState()
        self.objects: dict[tuple[str, str], Raw] = {}
        self.assumed: dict[str, tuple[Raw, Raw]] = {}
        self._version = 0

    def fill(self, scene: Scene) -> None:
        for kind, many in (
            ("class", scene.classes),
            ("slice", scene.slices),
            ("rule", scene.rules),
            ("claim", scene.held),
        ):
            for raw in many:
                self.put(kind, raw)

    def put(self, kind: str, raw: Raw) -> None:
        self._version += 1
        metadata = {**raw["metadata"], "resourceVersion": str(self._version)}
        raw = {**raw, "metadata": metadata}
        self.objects[kind, metadata["name"]] = raw
        getattr(self.state, f"put_{kind}")(raw)

    def drop(self, kind: str, name: str) -> None:
        raw = self.objects.pop((kind, name))
        where = (raw["metadata"]["namespace"], name) if kind == "claim" else (name,)
        getattr(self.state, f"drop_{kind}")(*where)

    def rebuilt(self) -> ClusterState:
        """A state made from scratch of what is there now."""
        fresh = ClusterState()
        for (kind, _), raw in self.objects.items():
            getattr(fresh, f"put_{kind}")(raw)
        for raw, allocation in self.assumed.values():
            fresh.assume(raw, allocation)
        return fresh

    def step(self, scene: Scene) -> None:
        """One random event."""
        event = self.dice.one((self._drop, self._put_again, self._decide, self._settle))
        event(scene)

    def _drop(self, _: Scene) -> None:
        if self.objects:
            self.drop(*self.dice.one(sorted(self.objects)))

    def _put_again(self, scene: Scene) -> None:
        """An object of the scene as it was, or with another generation."""
        kind, many = self.dice.one(
            [
                ("slice", scene.slices),
                ("slice", scene.slices),
                ("rule", scene.rules),
                ("claim", scene.held),
                ("class", scene.classes),
            ]
        )
        if not many:
            return
        raw = self.dice.one(many)
        if kind == "slice" and self.dice.rare(3):
            spec = raw["spec"]
            raw = {**raw, "spec": {**spec, "pool": {**spec["pool"], "generation": 2}}}
        self.put(kind, raw)

    def _decide(self, scene: Scene) -> None:
        """A claim is allocated, and either written at once or assumed at first."""
        raw = self.dice.one(scene.claims)
        raw = {**raw, "metadata": {**raw["metadata"], "uid": "u", "name": f"n{self._version}"}}
        raw["metadata"]["uid"] = f"uid-{self._version}"
        answer = allocate_on(self.state.snapshot(), [raw], scene.node)
        if not isinstance(answer, Allocated):
            return
        if self.dice.rare(2):
            self.put("claim", {**raw, "status": {"allocation": answer.allocations[0]}})
        else:
            self.put("claim", raw)
            self.state.assume(raw, answer.allocations[0])
            self.assumed[raw["metadata"]["uid"]] = raw, answer.allocations[0]

    def _settle(self, _: Scene) -> None:
        """A write that was assumed is confirmed, or failed."""
        if not self.assumed:
            return
        raw, allocation = self.assumed.pop(self.dice.one(sorted(self.assumed)))
        if self.dice.rare(2) and ("claim", raw["metadata"]["name"]) in self.objects:
            self._version += 1
            metadata = {**raw["metadata"], "resourceVersion": str(self._version)}
            written = {**raw, "metadata": metadata, "status": {"allocation": allocation}}
            self.objects["claim", metadata["name"]] = written
            self.state.confirm(written)
        else:
            self.state.forget(raw)


def content(cluster: Snapshot) -> Any:
    """All that a snapshot shows, to be compared."""
    return (
        dict(cluster.classes),
        {
            id_: ([one.name for one in pool.slices], pool.rules)
            for id_, pool in cluster.pools.items()
        },
        {name: set(ids) for name, ids in cluster.by_node.items()},
        set(cluster.floating),
        dict(cluster.usage),
    )


def slack(pool: Pool, usage: PoolUsage | None) -> Any:
    """What is left of the counters of a pool."""
    if usage is None or pool.counters is None:
        return None
    left = usage.slack(pool.counters)
    return dict(left.left), left.overdrawn


def shown(answer: Answer) -> Any:
    if isinstance(answer, Allocated):
        return answer.allocations
    return answer.kind, answer.message


def numbered() -> Callable[[], str]:
    ids = itertools.count(1)
    return lambda: f"00000000-0000-4000-9000-{next(ids):012}"


@settings(CALM, max_examples=100)
@given(RANDOM)
def test_state_after_any_events_is_the_state_made_from_scratch(random: Random) -> None:
    dice = Dice(random)
    scene = random_scene(random)
    world = World(dice)
    world.fill(scene)
    nodes = [scene.node, {"metadata": {"name": "m"}}]
    for _ in range(dice.one((1, 5, 15))):
        world.step(scene)
        kept, fresh = world.state.snapshot(), world.rebuilt().snapshot()
        assert content(kept) == content(fresh)
        for pool in kept.site(node_view(scene.node)).pools:
            assert slack(pool, kept.usage.get(pool.id)) == slack(pool, fresh.usage.get(pool.id))
        wish = dice.one([*scene.claims, claim(dice, 7, ("true",))])
        answers = [
            [shown(one) for one in allocate_over(cluster, [wish], nodes, share_ids=numbered())]
            for cluster in (kept, fresh)
        ]
        assert answers[0] == answers[1]
