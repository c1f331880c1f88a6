"""Random small clusters and gangs, and a brute force that knows nothing of the planner.

Drawn from a `random.Random`: a seed is enough to make a scene again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any

from dragoon.allocator.gang import GangAsk, NodeFacts, PlacementSnapshot, PodAsk
from dragoon.allocator.gang.model import ANYWHERE
from dragoon.api.gang import Level, Topology
from tests.unit.allocator.gang.objects import (
    CLIQUE,
    GROUP,
    claim,
    counter_set,
    either,
    gpus,
    member,
    node,
    partitioned,
    slices_of,
    snapshot,
    wish,
)
from tests.unit.allocator.objects import Raw, holding

_PARTS = 2
Name = tuple[str, str]
"""Node and device."""


@dataclass(frozen=True)
class Scene:
    """A cluster and a gang, also as the brute force reads them, and as raw objects."""

    snapshot: PlacementSnapshot
    ask: GangAsk
    slices: list[Raw]
    holders: list[Raw]
    devices: dict[Name, Raw]
    held: set[Name]


def random_scene(random: Random) -> Scene:
    nodes: list[NodeFacts] = []
    slices: list[Raw] = []
    devices: dict[Name, Raw] = {}
    for index in range(random.randrange(1, 4)):
        name = f"n{index}"
        labels = {"rack": random.choice("rs")} if random.randrange(4) else {}
        taken = random.choice((0, 0, 1))
        nodes.append(
            node(
                name,
                cpu=random.choice((2000, 3000, 8000)),
                labels=labels,
                most_pods=random.choice((2, 110)),
                used={"cpu": 1000 * taken},
                pods=taken,
            )
        )
        sets, here = random_devices(random, name)
        slices += slices_of(name, here, sets)
        devices |= {(name, one["name"]): one for one in here}
    held = {name for name in devices if not random.randrange(6)}
    holders = [
        holding(device, pool=f"{where}/gpu", name=f"held-{where}-{device}")
        for where, device in sorted(held)
    ]
    known = snapshot(nodes, slices, holders)
    return Scene(known, random_gang(random), slices, holders, devices, held)


def random_devices(random: Random, name: str) -> tuple[list[Raw], list[Raw]]:
    """Counter sets and devices of a node."""
    clique: Raw = {"fabricClique": random.choice("pq")} if random.randrange(2) else {}
    if random.randrange(2):
        cards = random.randrange(3)
        parts = [one for card in range(cards) for one in partitioned(card, _PARTS, **clique)]
        return [counter_set(card, _PARTS) for card in range(cards)], parts
    groups = [random.choice((f"{name}-a", f"{name}-b", None)) for _ in range(random.randrange(5))]
    return [], gpus(*groups, **clique)


def random_gang(random: Random) -> GangAsk:
    wishes = [random_wish(random) for _ in range(random.randrange(1, 3))]
    shared = claim("shared", wish()) if not random.randrange(4) else None
    found: list[PodAsk] = []
    for index in range(random.randrange(1, 5)):
        request, same = random.choice(wishes)
        own = [claim(f"c{index}", request, same=same)] if random.randrange(8) else []
        if shared is not None and random.randrange(2):
            own.append(shared)
        selector = {"rack": random.choice("rs")} if not random.randrange(6) else {}
        found.append(
            member(
                f"w{index}",
                *own,
                cpu=random.choice((0, 1000, 1000, 2000)),
                node_selector=selector,
            )
        )
    minimum = random.randrange(1, len(found) + 1) if not random.randrange(3) else len(found)
    return GangAsk("g", tuple(found), minimum, topology=random_topology(random))


def random_wish(random: Random) -> tuple[Raw, str]:
    kind = random.randrange(4)
    if kind == 0:
        return either(("whole", random.choice((1, 2))), ("mig", 1)), ""
    if kind == 1:
        return wish(random.choice((1, 2)), "mig"), ""
    if kind == 2:
        return wish(2), GROUP
    return wish(random.choice((1, 2))), ""


def random_topology(random: Random) -> Topology:
    rack, clique = Level(node_label="rack"), Level(attribute=CLIQUE)
    kind = random.randrange(6)
    if kind < 3:
        return ANYWHERE
    if kind == 3:
        return Topology(required=(rack,))
    if kind == 4:
        return Topology(required=(clique,), preferred=(rack,))
    return Topology(preferred=(rack, clique))


def has_placement(scene: Scene) -> bool:
    """Whether the first members, as many as the gang needs, have a placement: by trying all."""
    return any(
        _place(scene, scene.ask.members[: scene.ask.minimum], values) for values in _domains(scene)
    )


def _domains(scene: Scene) -> Iterator[tuple[str, str] | None]:
    """Each value of the required level; None where there is none."""
    required = scene.ask.topology.required
    if not required:
        yield None
    elif required[0].node_label:
        yield from (("rack", value) for value in "rs")
    else:
        yield from (("clique", value) for value in "pq")


def _place(scene: Scene, left: Sequence[PodAsk], domain: tuple[str, str] | None) -> bool:
    cpu = {one.name: one.allocatable["cpu"] - one.used["cpu"] for one in scene.snapshot.nodes}
    pods = {one.name: one.most_pods - one.pods for one in scene.snapshot.nodes}
    taken: set[Name] = set()
    where: dict[str, str] = {}

    def next_member(index: int) -> bool:
        if index == len(left):
            return True
        pod = left[index]
        asked = pod.requests["cpu"]
        for node_ in scene.snapshot.nodes:
            name = node_.name
            if (asked and asked > cpu[name]) or pods[name] < 1 or not _takes(node_, pod, domain):
                continue
            cpu[name] -= asked
            pods[name] -= 1
            if next_claim(index, 0, name):
                return True
            cpu[name] += asked
            pods[name] += 1
        return False

    def next_claim(index: int, number: int, name: str) -> bool:
        claims = left[index].claims
        if number == len(claims):
            return next_member(index + 1)
        uid = claims[number]["metadata"]["uid"]
        if uid in where:
            return where[uid] == name and next_claim(index, number + 1, name)
        where[uid] = name
        for chosen in _choices(scene, claims[number], name, taken, domain):
            taken.update(chosen)
            if next_claim(index, number + 1, name):
                return True
            taken.difference_update(chosen)
        del where[uid]
        return False

    return next_member(0)


def _takes(node_: NodeFacts, pod: PodAsk, domain: tuple[str, str] | None) -> bool:
    if domain and domain[0] == "rack" and node_.labels.get("rack") != domain[1]:
        return False
    return all(node_.labels.get(key) == value for key, value in pod.node_selector.items())


def _choices(
    scene: Scene,
    claim_: Mapping[str, Any],
    name: str,
    taken: set[Name],
    domain: tuple[str, str] | None,
) -> Iterator[tuple[Name, ...]]:
    """Every set of devices of the node that the claim could get beside what is taken."""
    devices = claim_["spec"]["devices"]
    (request,) = devices["requests"]
    for one in request.get("firstAvailable") or [request["exactly"]]:
        kind = {"whole": "gpu", "mig": "mig"}[one["deviceClassName"]]
        free = [
            key
            for key, raw in scene.devices.items()
            if key[0] == name
            and key not in scene.held | taken
            and _value(raw, "type") == kind
            and (not domain or domain[0] == "rack" or _value(raw, "fabricClique") == domain[1])
        ]
        for chosen in combinations(free, one["count"]):
            linked = {_value(scene.devices[key], "nvlinkDomain") for key in chosen}
            if devices.get("constraints") and (len(linked) > 1 or None in linked):
                continue
            if _counters_suffice(scene, name, {*taken, *scene.held, *chosen}, chosen):
                yield chosen


def _value(raw: Raw, name: str) -> str | None:
    found = raw["attributes"].get(name)
    return None if found is None else str(found["string"])


def _counters_suffice(scene: Scene, name: str, used: set[Name], chosen: Sequence[Name]) -> bool:
    """No part of a card twice; as in kube-scheduler an old overlap blocks all cards of the pool."""
    if not any(scene.devices[key].get("consumesCounters") for key in chosen):
        return True
    parts: list[tuple[str, str]] = [
        (use["counterSet"], part)
        for key in used
        if key[0] == name
        for use in scene.devices[key].get("consumesCounters") or ()
        for part in use["counters"]
    ]
    return len(parts) == len(set(parts))
