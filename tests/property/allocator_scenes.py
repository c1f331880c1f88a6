"""Random clusters and pods with every allocator feature, biased to where decisions are close.

Drawn from a `random.Random`: a seed is enough to make a scene again.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.property.allocator_devices import DRIVER, TAINTS, Dice, Raw, pool

ATTRIBUTE = f"device.attributes['{DRIVER}']"


SELECTORS = (
    "true",
    f"device.driver == '{DRIVER}'",
    f"{ATTRIBUTE}.?type.orValue('') == 'gpu'",
    f"{ATTRIBUTE}.?type.orValue('') == 'mig'",
    f"{ATTRIBUTE}.?type.orValue('') == 'shared'",
    f"has({ATTRIBUTE}.domain) && {ATTRIBUTE}.domain != 'x'",
    "device.allowMultipleAllocations == true",
    "device.allowMultipleAllocations == false",
    f"'memory' in device.capacity['{DRIVER}']",
)


RISKY = (
    f"{ATTRIBUTE}.domain == 'x'",
    f"{ATTRIBUTE}.index < 2",
    f"device.capacity['{DRIVER}'].memory.compareTo(quantity('2Gi')) >= 0",
    f"cel.bind(a, {ATTRIBUTE}, a.domain == 'y')",
)
"""Selectors that fail on some devices."""


AMOUNTS = ("1Gi", "2Gi", "1500Mi", "3G", "4Gi", "5Gi", "0")


TOLERATIONS = (
    {"key": "k", "operator": "Exists"},
    {"key": "k", "operator": "Equal", "value": "v"},
    {"operator": "Exists", "effect": "NoExecute"},
)


@dataclass
class Scene:
    """Everything that one attempt needs."""

    claims: list[Raw] = field(default_factory=list)
    slices: list[Raw] = field(default_factory=list)
    held: list[Raw] = field(default_factory=list)
    classes: list[Raw] = field(default_factory=list)
    rules: list[Raw] = field(default_factory=list)
    node: Raw = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of `allocate` and `verify`, but for the claims."""
        return {
            "classes": self.classes,
            "slices": self.slices,
            "allocated_claims": self.held,
            "node": self.node,
            "taint_rules": self.rules,
        }


NODE: Raw = {"metadata": {"name": "n", "labels": {"zone": "z", "size": "5"}}}


CLASSES: list[Raw] = [
    {
        "metadata": {"name": "gpu"},
        "spec": {
            "selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}],
            "config": [{"opaque": {"driver": DRIVER, "parameters": {"class": 1}}}],
        },
    },
    {"metadata": {"name": "any"}, "spec": {}},
]


def random_scene(random: Random, *, risky: bool = True) -> Scene:
    """A cluster and a pod. With risky, selectors may fail and pools may be broken."""
    dice = Dice(random)
    risky = risky and dice.rare(3)
    slices = [one for number in range(1 + random.randrange(3)) for one in pool(dice, number, risky)]
    random.shuffle(slices)
    texts = SELECTORS + (RISKY if risky else ())
    return Scene(
        [claim(dice, number, texts) for number in range(1 if dice.rare(2) else 2)],
        slices,
        holders(dice, slices),
        CLASSES,
        [rule(dice, number, slices) for number in range(random.randrange(2))],
        NODE,
    )


def claim(dice: Dice, number: int, texts: tuple[str, ...]) -> Raw:
    requests = [request(dice, f"r{i}", texts) for i in range(dice.one((1, 1, 1, 2, 2, 3)))]
    names = [one["name"] for one in requests]
    names += [f"{one['name']}/{sub['name']}" for one in requests for sub in subs(one)]
    constraints = [
        {
            dice.one(("matchAttribute", "matchAttribute", "distinctAttribute")): dice.one(
                (f"{DRIVER}/domain", f"{DRIVER}/domain", f"{DRIVER}/index", f"{DRIVER}/type")
            ),
            **({"requests": some} if (some := dice.some(names, 3)) else {}),
        }
        for _ in range(dice.one((0, 0, 0, 1, 2)))
    ]
    config = [
        {
            "opaque": {"driver": DRIVER, "parameters": {"n": i}},
            **({"requests": some} if (some := dice.some(names, 3)) else {}),
        }
        for i in range(dice.random.randrange(3))
    ]
    return {
        "metadata": {"namespace": "default", "name": f"c{number}", "uid": f"u{number}"},
        "spec": {"devices": {"requests": requests, "constraints": constraints, "config": config}},
    }


def subs(request_: Raw) -> list[Raw]:
    found: list[Raw] = request_.get("firstAvailable", [])
    return found


def request(dice: Dice, name: str, texts: tuple[str, ...]) -> Raw:
    if dice.rare(4):
        count = 1 + dice.random.randrange(3)
        alternatives = [{"name": f"s{i}", **wish(dice, texts)} for i in range(count)]
        return {"name": name, "firstAvailable": alternatives}
    exactly = wish(dice, texts)
    if dice.rare(8):
        exactly["adminAccess"] = True
    return {"name": name, "exactly": exactly}


def wish(dice: Dice, texts: tuple[str, ...]) -> Raw:
    raw: Raw = {"deviceClassName": dice.one(("gpu", "gpu", "any"))}
    if dice.rare(9):
        raw["allocationMode"] = "All"
    else:
        raw.update(
            allocationMode="ExactCount",
            count=dice.one((1, 1, 1, 1, 2, 2, 3, 17, 33)[: 9 if dice.rare(9) else 7]),
        )
    chosen = dice.some(texts, dice.one((0, 1, 1, 2)))
    if chosen:
        raw["selectors"] = [{"cel": {"expression": text}} for text in chosen]
    if dice.rare(5):
        raw["capacity"] = {
            "requests": {
                dice.one(("memory", "memory", "cores", f"{DRIVER}/memory")): dice.one(AMOUNTS)
            }
        }
    if dice.rare(3):
        raw["tolerations"] = [dict(dice.one(TOLERATIONS))]
    return raw


def holders(dice: Dice, slices: list[Raw]) -> list[Raw]:
    """Claims that hold some of the devices, as whole devices or shares."""
    results: list[Raw] = []
    for one in slices:
        for raw in one["spec"].get("devices", []):
            if not dice.rare(5):
                continue
            result: Raw = {
                "request": "x",
                "driver": one["spec"]["driver"],
                "pool": one["spec"]["pool"]["name"],
                "device": raw["name"],
            }
            if dice.rare(6):
                result["adminAccess"] = True
            if bool(raw.get("allowMultipleAllocations")) != dice.rare(15):
                result["shareID"] = f"00000000-0000-4000-8000-{len(results):012}"
                consumed = {name: dice.one(("1Gi", "2Gi", "0")) for name in raw.get("capacity", {})}
                if consumed:
                    result["consumedCapacity"] = consumed
            results.append(result)
    return [
        {
            "metadata": {"namespace": "default", "name": f"held{i}", "uid": f"held{i}"},
            "spec": {"devices": {}},
            "status": {"allocation": {"devices": {"results": [result]}}},
        }
        for i, result in enumerate(results)
    ]


def rule(dice: Dice, number: int, slices: list[Raw]) -> Raw:
    one = dice.one(slices)["spec"]
    selector: Raw | None = {}
    if not dice.rare(3):
        selector = {"driver": one["driver"], "pool": one["pool"]["name"]}
        if one.get("devices") and dice.rare(2):
            selector["device"] = dice.one(one["devices"])["name"]
    elif dice.rare(2):
        selector = None
    taint = dict(dice.one(TAINTS))
    spec = {"taint": taint} if selector is None else {"deviceSelector": selector, "taint": taint}
    return {"metadata": {"name": f"rule-{number}"}, "spec": spec}


def patched(scene: Scene) -> list[Raw]:
    """The slices with the taints of rules in them, as kube-scheduler's tracker makes them."""
    found = []
    for one in scene.slices:
        spec = one["spec"]
        devices = []
        for raw in spec.get("devices", []):
            taints = list(raw.get("taints", []))
            for rule_ in scene.rules:
                selector = rule_["spec"].get("deviceSelector")
                wanted = {
                    "driver": spec["driver"],
                    "pool": spec["pool"]["name"],
                    "device": raw["name"],
                }
                if selector is not None and selector.items() <= wanted.items():
                    taints.append(rule_["spec"]["taint"])
            devices.append({**raw, **({"taints": taints} if taints else {})})
        changed = {**spec, "devices": devices} if "devices" in spec else spec
        found.append({**one, "spec": changed})
    return found
