"""Random slices for the allocator: pools with cards in every form, some of them spoiled."""

from itertools import chain
from random import Random
from typing import Any

Raw = dict[str, Any]


DRIVER = "gpu.dragoon.dev"


OTHER = "other.example"


GI = 2**30


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


TAINTS = (
    {"key": "k", "effect": "NoSchedule"},
    {"key": "k", "value": "v", "effect": "NoExecute"},
    {"key": "l", "effect": "None"},
)


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
