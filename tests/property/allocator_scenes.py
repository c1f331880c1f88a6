"""Random clusters and pods with every allocator feature, biased to where decisions are close.

Drawn from a `random.Random`: a seed is enough to make a scene again.
"""

from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Any

Raw = dict[str, Any]

DRIVER = "gpu.dragoon.dev"
OTHER = "other.example"
ATTRIBUTE = f"device.attributes['{DRIVER}']"
GI = 2**30

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

POLICIES: tuple[Raw | None, ...] = (
    None,
    {"default": "1Gi", "validRange": {"min": "1Gi"}},
    {"default": "4Gi", "validRange": {"min": "512Mi", "max": "4Gi", "step": "512Mi"}},
    {"default": "1Gi", "validValues": ["1Gi", "2Gi", "4Gi"]},
    {"default": "2Gi"},
)
CORES: tuple[Raw | None, ...] = (
    None,
    {"default": "0", "validRange": {"min": "0", "max": "100", "step": "1"}},
    {"default": "500m", "validRange": {"min": "500m", "max": "100", "step": "500m"}},
)
AMOUNTS = ("1Gi", "2Gi", "1500Mi", "3G", "4Gi", "5Gi", "0")
TAINTS = (
    {"key": "k", "effect": "NoSchedule"},
    {"key": "k", "value": "v", "effect": "NoExecute"},
    {"key": "l", "effect": "None"},
)
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


class Dice:
    """A random source with words for chances."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def rare(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def one(self, values: Any) -> Any:
        return values[self.random.randrange(len(values))]

    def some(self, values: Any, most: int) -> list[Any]:
        left = list(values)
        self.random.shuffle(left)
        return left[: self.random.randrange(min(most, len(left)) + 1)]


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


def pool(dice: Dice, number: int, risky: bool) -> list[Raw]:
    driver, name = OTHER if dice.rare(6) else DRIVER, f"p{number}"
    cards = dice.random.randrange(3)
    groups: list[Raw] = []
    if cards and not dice.rare(3):
        sets = [counter_set(dice, card) for card in range(cards)]
        groups.append({"sharedCounters": sets})
        parts = [forms(dice, card, sets[card]) for card in range(cards)]
        groups += (
            [{"devices": list(chain.from_iterable(parts))}]
            if dice.rare(2)
            else [{"devices": part} for part in parts]
        )
    else:
        groups.append({"devices": [device(dice, f"d{i}") for i in range(dice.random.randrange(7))]})
    own = risky and dice.rare(6)
    slices = []
    place = selection(dice)
    for part, group in enumerate(groups):
        spec: Raw = {
            "driver": driver,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": len(groups)},
            **group,
            **({"perDeviceNodeSelection": True} if own else place),
        }
        if own:
            for one in spec.get("devices", []):
                one.update(selection(dice))
        if dice.rare(12) and not own and len(groups) > 1 and part:
            spec.update(nodeName="m")
            spec.pop("allNodes", None)
            spec.pop("nodeSelector", None)
        slices.append({"metadata": {"name": f"{dice.one('mnz')}-{number}-{part}"}, "spec": spec})
    if risky:
        spoil(dice, slices)
    return slices


def spoil(dice: Dice, slices: list[Raw]) -> None:
    """Sometimes breaks a pool: counts, generations, names, counters."""
    if dice.rare(15):
        for one in slices:
            one["spec"]["pool"]["resourceSliceCount"] += 1
    if dice.rare(20):
        dice.one(slices)["spec"]["pool"]["generation"] = 2
    with_devices = [one["spec"]["devices"] for one in slices if one["spec"].get("devices")]
    if with_devices and dice.rare(15):
        devices = dice.one(with_devices)
        devices[-1]["name"] = devices[0]["name"]
    if with_devices and dice.rare(20):
        for use in dice.one(with_devices)[0].get("consumesCounters", []):
            use["counterSet"] = "nope"


def selection(dice: Dice) -> Raw:
    kind = dice.random.randrange(12)
    if kind < 7:
        return {"nodeName": "n"}
    if kind < 8:
        return {"nodeName": "m"}
    if kind < 10:
        return {"allNodes": True}
    expressions = dice.some(
        (
            {"key": "zone", "operator": "In", "values": ["z", "y"]},
            {"key": "zone", "operator": "NotIn", "values": ["y"]},
            {"key": "size", "operator": "Gt", "values": ["4"]},
            {"key": "size", "operator": "Lt", "values": ["5"]},
            {"key": "rack", "operator": "DoesNotExist"},
            {"key": "zone", "operator": "Exists"},
        ),
        2,
    )
    term: Raw = {"matchExpressions": expressions} if expressions else {}
    if dice.rare(3):
        values = [dice.one("nnm")]
        term["matchFields"] = [
            {"key": "metadata.name", "operator": dice.one(("In", "NotIn")), "values": values}
        ]
    return {"nodeSelector": {"nodeSelectorTerms": [term]}}


def counter_set(dice: Dice, card: int) -> Raw:
    return {
        "name": f"card-{card}",
        "counters": {"slices": {"value": "4"}, "engines": {"value": dice.one("234")}},
    }


def forms(dice: Dice, card: int, counters: Raw) -> list[Raw]:
    """The forms of a card: whole, shared, and partitions of it."""

    def uses(slices: str, engines: str) -> list[Raw]:
        amounts = {"slices": {"value": slices}, "engines": {"value": engines}}
        return [{"counterSet": counters["name"], "counters": amounts}]

    whole = {**device(dice, f"c{card}"), "consumesCounters": uses("4", "2")}
    found = [whole]
    if not dice.rare(3):
        shared = {**shareable(dice, f"c{card}-shared"), "consumesCounters": uses("4", "2")}
        found.append(shared)
    found += (
        {
            **device(dice, f"c{card}-mig-{start}", kind="mig"),
            "consumesCounters": uses(size, "1"),
        }
        for start, size in enumerate(
            dice.one((("1", "1", "2"), ("2", "3"), ("1500m", "2500m"), ()))
        )
    )
    return found


def device(dice: Dice, name: str, kind: str = "gpu") -> Raw:
    if kind == "gpu" and dice.rare(4):
        return shareable(dice, name)
    raw: Raw = {"name": name, "attributes": {"type": {"string": kind}}}
    attributes = raw["attributes"]
    if dice.rare(2):
        attributes["domain"] = dice.one(
            ({"string": "x"}, {"string": "x"}, {"string": "y"}, {"int": 1})
        )
    if dice.rare(3):
        attributes["index"] = {"int": dice.random.randrange(3)}
    if dice.rare(8):
        attributes[f"{DRIVER}/{dice.one(('index', 'other'))}"] = {"int": 1}
    if dice.rare(2):
        raw["capacity"] = {"memory": {"value": dice.one(("1Gi", "2048Mi", "4Gi"))}}
    extras(dice, raw)
    return raw


def shareable(dice: Dice, name: str) -> Raw:
    memory: Raw = {"value": "4Gi"}
    policy = dice.one(POLICIES)
    if policy is not None:
        memory["requestPolicy"] = policy
    raw: Raw = {
        "name": name,
        "allowMultipleAllocations": True,
        "attributes": {"type": {"string": "shared"}, "domain": {"string": dice.one("xy")}},
        "capacity": {"memory": memory},
    }
    if dice.rare(2):
        cores: Raw = {"value": "100"}
        policy = dice.one(CORES)
        if policy is not None:
            cores["requestPolicy"] = policy
        raw["capacity"]["cores"] = cores
    if dice.rare(10):
        del raw["capacity"]
    extras(dice, raw)
    return raw


def extras(dice: Dice, raw: Raw) -> None:
    if dice.rare(7):
        raw["taints"] = [dict(dice.one(TAINTS))]
    if dice.rare(12):
        raw["bindingConditions"], raw["bindingFailureConditions"] = ["x/ready"], ["x/failed"]
    if dice.rare(12):
        raw["bindsToNode"] = True


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
