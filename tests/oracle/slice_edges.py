"""Random slices, with names, values, lists and policies at and beyond what the API server takes."""

from copy import deepcopy
from typing import Any

from tests.oracle.edges import Raw, change_a_leaf
from tests.property.allocator_devices import Dice, pool


def random_slice(dice: Dice) -> Raw:
    """A slice as Dragoon could publish it, with some leaves at or beyond what is allowed."""
    raw: Raw = deepcopy(dice.one(pool(dice, 0, risky=False)))
    spec = raw["spec"]
    if "nodeSelector" in spec:
        del spec["nodeSelector"]
        spec["allNodes"] = True
    for one in spec.get("devices", []):
        for field in ("bindingConditions", "bindingFailureConditions", "bindsToNode"):
            one.pop(field, None)
    for _ in range(dice.one((0, 1, 1, 2, 3))):
        dice.one(_BREAKS)(dice, raw)
    return raw


def _name_at_limit(dice: Dice, raw: Raw) -> None:
    length = dice.one((1, 31, 32, 33, 62, 63, 64, 65, 252, 253, 254))
    text = dice.one(
        ("a" * length, "a" * (length - 1) + "-", "-" + "a" * length, "a.b/" + "c" * length, "")
    )
    text = dice.one(
        (text, text.upper(), "A_b", "a_b", "9a", "a..b", "a/b", "/a", "a/", "caf\u00e9")
    )
    _put_name(dice, raw, text)


def _put_name(dice: Dice, raw: Raw, text: str) -> None:
    """The text as one of the names of a slice."""
    spec = raw["spec"]
    devices = [one for one in spec.get("devices", []) if isinstance(one, dict)]
    kind = dice.random.randrange(9)
    if kind == 0:
        raw["metadata"]["name"] = text
    elif kind == 1:
        spec["driver"] = text
    elif kind == 2:
        spec["pool"]["name"] = text
    elif kind == 3 and "nodeName" in spec:
        spec["nodeName"] = text
    elif kind == 4 and spec.get("sharedCounters"):
        dice.one(spec["sharedCounters"])["name"] = text
    elif devices:
        one = dice.one(devices)
        if kind == 5:
            one["name"] = text
        elif kind == 6:
            one.setdefault("attributes", {})[text] = {"int": 1}
        elif kind == 7:
            one.setdefault("capacity", {})[text] = {"value": "1"}
        else:
            taint = {
                "key": dice.one((text, "k")),
                "value": dice.one((text, "")),
                "effect": "NoSchedule",
            }
            one.setdefault("taints", []).append(taint)


def _value_at_limit(dice: Dice, raw: Raw) -> None:
    devices = raw["spec"].get("devices")
    if not devices:
        return
    text = dice.one(("a", "\u00e4")) * dice.one((31, 32, 33, 63, 64, 65))
    value: Any = dice.one(
        (
            {"string": text},
            {
                "version": dice.one(
                    ("1.2.3", "1.2", "01.2.3", "v1.2.3", "1.2.3-" + text, "1.2.3+b.01", "1.2.3-01")
                )
            },
            {"int": dice.one((2**63 - 1, -(2**63), 2**63, 1.5))},
            {"bool": dice.one((True, False, "true"))},
            {"int": 1, "string": "a"},
            {},
        )
    )
    dice.one(devices).setdefault("attributes", {})["edge"] = value


def _many(dice: Dice, raw: Raw) -> None:
    """Lists and maps at their limits."""
    spec = raw["spec"]
    kind = dice.random.randrange(6)
    devices = spec.get("devices")
    if kind == 0 and devices is not None:
        wanted = dice.one((63, 64, 65, 127, 128, 129))
        devices += [{"name": f"m{number}"} for number in range(wanted - len(devices))]
    elif kind == 1 and spec.get("sharedCounters"):
        sets = spec["sharedCounters"]
        sets += [
            {"name": f"m{n}", "counters": {"c": {"value": "1"}}}
            for n in range(dice.one((5, 6, 7, 8)))
        ]
    elif kind == 2 and spec.get("sharedCounters"):
        many = {f"c{n}": {"value": "1"} for n in range(dice.one((0, 31, 32, 33)))}
        dice.one(spec["sharedCounters"])["counters"] = many
    elif devices and isinstance(one := dice.one(devices), dict):
        _many_of_a_device(dice, one, kind)


def _many_of_a_device(dice: Dice, one: Raw, kind: int) -> None:
    if kind == 3:
        one["attributes"] = {f"a{n}": {"int": n} for n in range(dice.one((16, 31, 32, 33)))}
    elif kind == 4:
        one["taints"] = [
            {"key": f"k{n}", "effect": "NoExecute"} for n in range(dice.one((15, 16, 17)))
        ]
    else:
        uses = {f"c{n}": {"value": "1"} for n in range(dice.one((0, 1, 31, 32, 33)))}
        one["consumesCounters"] = [
            {"counterSet": dice.one(("s", f"s{n}")), "counters": uses}
            for n in range(dice.one((1, 2, 3)))
        ]


def _policy(dice: Dice, raw: Raw) -> None:
    """A request policy of whole numbers near its rules."""
    devices = raw["spec"].get("devices")
    if not devices:
        return
    numbers = ("0", "1", "2", "3", "4", "8", "10", "1Ki")
    one = dice.one(devices)
    policy: Raw = {"default": dice.one(numbers)}
    if dice.rare(2):
        policy["validValues"] = [dice.one(numbers) for _ in range(dice.one((1, 2, 3, 10, 11)))]
        if dice.rare(2):
            policy["validValues"] = sorted(
                policy["validValues"], key=lambda text: (len(text), text)
            )
    if not policy.get("validValues") or dice.rare(6):
        fields = dice.some(("max", "step"), 2) + ([] if dice.rare(9) else ["min"])
        policy["validRange"] = {field: dice.one(numbers) for field in fields}
    if dice.rare(9):
        del policy["default"]
    if not dice.rare(9):
        one["allowMultipleAllocations"] = True
    one.setdefault("capacity", {})["memory"] = {"value": dice.one(numbers), "requestPolicy": policy}


def _place(dice: Dice, raw: Raw) -> None:
    spec = raw["spec"]
    for field, value in (
        ("nodeName", "n"),
        ("allNodes", True),
        ("nodeName", ""),
        ("allNodes", False),
    ):
        if dice.rare(3):
            spec[field] = value
    if dice.rare(4):
        spec.pop("nodeName", None)


def _pool_numbers(dice: Dice, raw: Raw) -> None:
    numbers = (0, 1, -1, 2**63 - 1, 2**63, None)
    raw["spec"]["pool"][dice.one(("generation", "resourceSliceCount"))] = dice.one(numbers)


def _both(dice: Dice, raw: Raw) -> None:
    raw["spec"][dice.one(("devices", "sharedCounters"))] = []
    if dice.rare(2):
        raw["spec"]["sharedCounters"] = [{"name": "s", "counters": {"c": {"value": "1"}}}]


def _twice(dice: Dice, raw: Raw) -> None:
    """A device or a counter set of the same name twice."""
    for field in ("devices", "sharedCounters"):
        if raw["spec"].get(field):
            raw["spec"][field].append(deepcopy(dice.one(raw["spec"][field])))


def _leaf(dice: Dice, raw: Raw) -> None:
    change_a_leaf(dice, [raw["spec"]])


_BREAKS = (
    *(_name_at_limit, _name_at_limit, _value_at_limit, _value_at_limit, _many, _many),
    *(_policy, _policy, _place, _pool_numbers, _both, _twice, _leaf, _leaf),
)
