"""Random scenes, selectors and devices pushed to where rules change their answer.

Everything is drawn from a `random.Random`, so a seed gives the same questions again.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tests.oracle.expressions import written
from tests.property.allocator_devices import DRIVER, Dice, device
from tests.property.allocator_scenes import Scene, holders, random_scene

Raw = dict[str, Any]

_AMOUNTS = (
    *("0", "1", "-1", "1n", "500m", "1500m", "1.5Gi", "1e3", "2Gi", "4Gi", "4294967297"),
    *("9223372036854775806", "9223372036854775807", "9223372036854775808", "8Ei", "1E"),
)
_AMOUNT_KEYS = frozenset(
    ("value", "memory", "cores", "slices", "engines", "default", "min", "max", "step")
)
_NEEDED = frozenset(("name", "request", "driver", "pool", "device", "value"))
"""What every object that comes from an API server has; it is changed, but not left out."""
_COUNTS = (0, 1, 2, 31, 32, 33, -1)
VALUES: dict[str, tuple[Raw, ...]] = {
    "i": ({"int": 0}, {"int": 3}, {"int": -1}, {"int": 2**63 - 1}),
    "s": ({"string": ""}, {"string": "a"}, {"string": "L4"}, {"string": "\u00e4x"}),
    "b": ({"bool": True}, {"bool": False}),
    "v": ({"version": "1.2.3"}, {"version": "1.2.3-rc.1"}, {"version": "10.0.0"}),
    "domain": ({"version": "1.0.0"}, {"bool": True}, {"string": "x"}, {"int": 1}),
}
"""Attributes that random expressions read."""


def edgy_scene(dice: Dice) -> Scene:
    """A cluster and a pod, with random selectors and up to four leaves changed to edges."""
    scene: Scene = deepcopy(random_scene(dice.random))
    if not dice.rare(3):
        _ease(dice, scene)
    if dice.rare(3):
        _with_expressions(dice, scene)
    if dice.rare(5):
        _with_another_generation(dice, scene)
    if dice.rare(8):
        _with_a_big_pool(dice, scene)
    if dice.rare(6):
        scene.held += [
            {**one, "metadata": {**one["metadata"], "name": f"also-{number}"}}
            for number, one in enumerate(holders(dice, scene.slices))
        ]
    if dice.rare(40):
        scene.classes = [one for one in scene.classes if dice.rare(2)]
    trees = (
        *([one["spec"] for one in scene.claims],) * 2,
        *([one["spec"] for one in scene.slices],) * 2,
        [one["status"] for one in scene.held],
    )
    for _ in range(dice.one((0, 0, 1, 2, 4))):
        change_a_leaf(dice, dice.one(trees))
    return scene


def random_selector(dice: Dice) -> str:
    """An expression over the attributes of `random_device`."""
    return (
        written(dice.one, "bool").replace("'d'", f"'{DRIVER}'").replace("'o.x'", "'other.example'")
    )


def random_device(dice: Dice) -> Raw:
    """A device with some of the attributes that expressions read, for CEL alone."""
    raw: Raw = {"name": "x", "attributes": {}, "capacity": {}}
    for name in dice.some(VALUES, len(VALUES)):
        prefix = "other.example/" if dice.rare(5) else ""
        raw["attributes"][prefix + name] = dict(dice.one(VALUES[name]))
    if dice.rare(2):
        raw["capacity"]["memory"] = {"value": dice.one(_AMOUNTS)}
    if dice.rare(2):
        raw["allowMultipleAllocations"] = dice.rare(2)
    return raw


def _ease(dice: Dice, scene: Scene) -> None:
    """Asks for less and holds less, so that what is given can be compared, not only what is not."""
    scene.held = [one for one in scene.held if dice.rare(3)]
    for claim in scene.claims:
        wanted = claim["spec"]["devices"]
        wanted["constraints"] = [one for one in wanted["constraints"] if dice.rare(3)]
    for wish in _wishes(scene):
        for field in ("selectors", "capacity"):
            if not dice.rare(3):
                wish.pop(field, None)
        if "count" in wish and not dice.rare(4):
            wish["count"] = 1


def _with_expressions(dice: Dice, scene: Scene) -> None:
    for one in scene.slices:
        for raw in one["spec"].get("devices", []):
            for name in dice.some(VALUES, 4):
                raw.setdefault("attributes", {})[name] = dict(dice.one(VALUES[name]))
    for wish in _wishes(scene):
        if dice.rare(2):
            wish["selectors"] = [{"cel": {"expression": random_selector(dice)}}]


def _wishes(scene: Scene) -> Iterator[Raw]:
    for claim in scene.claims:
        for request in claim["spec"]["devices"]["requests"]:
            yield from request.get("firstAvailable") or [request["exactly"]]


def _with_another_generation(dice: Dice, scene: Scene) -> None:
    """An older or a newer slice of a pool, perhaps complete, perhaps of another node."""
    twin = deepcopy(dice.one(scene.slices))
    twin["metadata"]["name"] = f"{dice.one('az')}-twin"
    twin["spec"]["pool"]["generation"] += dice.one((-1, 0, 1))
    twin["spec"]["pool"]["resourceSliceCount"] = dice.one((1, 2))
    if "nodeName" in twin["spec"]:
        twin["spec"]["nodeName"] = dice.one("nm")
    scene.slices.insert(dice.random.randrange(len(scene.slices) + 1), twin)


def _with_a_big_pool(dice: Dice, scene: Scene) -> None:
    """As many devices as a claim can have, one less or one more."""
    count = dice.one((31, 32, 33, 40))
    devices = [deepcopy(device(dice, f"big-{number}")) for number in range(count)]
    spec = {
        "driver": DRIVER,
        "pool": {"name": "big", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": devices,
    }
    scene.slices.append({"metadata": {"name": "big"}, "spec": spec})
    if dice.rare(2):
        dice.one(list(_wishes(scene)))["count"] = dice.one((16, 31, 32))


def _leaves(value: Any, key: Any = None) -> Iterator[tuple[Any, Any]]:
    """Each leaf as its container and the key in it."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in parts:
        if isinstance(part, dict | list):
            yield from _leaves(part, name)
        else:
            yield value, name


def change_a_leaf(dice: Dice, tree: list[Raw]) -> None:
    """Another value for a leaf: an edge, what the same field has elsewhere, or nothing."""
    places = list(_leaves(tree))
    if not places:
        return
    container, key = dice.one(places)
    value = container[key]
    if isinstance(container, dict) and key not in _NEEDED and dice.rare(6):
        del container[key]
    elif isinstance(value, bool):
        container[key] = not value
    elif isinstance(value, int):
        container[key] = dice.one(_COUNTS)
    elif key in _AMOUNT_KEYS:
        container[key] = dice.one(_AMOUNTS)
    else:
        container[key] = dice.one([there[name] for there, name in places if name == key])
