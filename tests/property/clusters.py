"""Random small clusters and claims, biased to where decisions are close."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.unit.allocator.objects import CLASS, DRIVER, Raw, node, request

ATTRIBUTE = f"device.attributes['{DRIVER}']"
OTHER_DRIVER = "other.example"
KEYS = ("k", "l")


@dataclass(frozen=True, slots=True)
class Wish:
    """A selector, and the same as a Python test on the driver and the raw device."""

    text: str
    accepts: Callable[[str, Raw], bool]


def attribute(driver: str, raw: Raw, name: str) -> Any:
    """The plain value of `device.attributes[DRIVER].name`, None without it."""
    found = raw["attributes"].get(f"{DRIVER}/{name}")
    if found is None and driver == DRIVER:
        found = raw["attributes"].get(name)
    return next(iter((found or {}).values()), None)


SAFE_WISHES = (
    Wish("true", lambda _driver, _raw: True),
    Wish("false", lambda _driver, _raw: False),
    Wish(f"device.driver == '{DRIVER}'", lambda driver, _raw: driver == DRIVER),
    Wish(
        f"has({ATTRIBUTE}.a) && {ATTRIBUTE}.a == 'x'",
        lambda driver, raw: attribute(driver, raw, "a") == "x",
    ),
    Wish(f"{ATTRIBUTE}.?b.orValue(0) == 1", lambda driver, raw: attribute(driver, raw, "b") == 1),
)
"""Selectors that fail on no device of a random cluster."""

RISKY_WISHES = (
    f"{ATTRIBUTE}.a == 'x'",
    f"{ATTRIBUTE}.b > 0 || {ATTRIBUTE}.a == 'y'",
    f"{ATTRIBUTE}.b",
    f"device.capacity['{DRIVER}'].memory.compareTo(quantity('2Gi')) >= 0",
    "device.attributes.exists(d, v, v.exists(k, k == 'a'))",
)
"""Selectors that fail on some devices."""


@st.composite
def devices(draw: st.DrawFn, names: list[str]) -> list[Raw]:
    found = []
    for name in names:
        attributes: Raw = {}
        if draw(st.integers(0, 3)):
            attributes["a"] = {"string": draw(st.sampled_from("xyz"))}
        if draw(st.booleans()):
            kind = draw(st.sampled_from(("int", "int", "int", "string")))
            value = draw(st.integers(0, 1))
            attributes["b"] = {kind: value if kind == "int" else str(value)}
        if not draw(st.integers(0, 4)):
            attributes[f"{DRIVER}/a"] = {"string": draw(st.sampled_from("xy"))}
            attributes.pop("a", None)
        raw: Raw = {"name": name, "attributes": attributes}
        if draw(st.booleans()):
            raw["capacity"] = {"memory": {"value": draw(st.sampled_from(("1Gi", "2048Mi", "4Gi")))}}
        if not draw(st.integers(0, 4)):
            taint = {
                "key": draw(st.sampled_from(KEYS)),
                "effect": draw(st.sampled_from(("NoSchedule", "NoExecute", "None"))),
            }
            raw["taints"] = [taint if draw(st.booleans()) else {**taint, "value": "v"}]
        found.append(raw)
    return found


@st.composite
def pools(draw: st.DrawFn, *, broken: bool) -> list[Raw]:
    """All slices of one to three pools; with broken, some pools cannot be used."""
    slices: list[Raw] = []
    for number in range(draw(st.integers(1, 3))):
        driver = draw(st.sampled_from((DRIVER, DRIVER, OTHER_DRIVER)))
        parts = draw(st.integers(1, 2))
        names = [f"d{i}" for i in range(draw(st.integers(0, 4)))]
        if broken and names and not draw(st.integers(0, 5)):
            names[-1] = names[0]
        cut = draw(st.integers(0, len(names)))
        for part, chunk in enumerate((names[:cut], names[cut:]) if parts == 2 else (names,)):
            spec: Raw = {
                "driver": driver,
                "pool": {
                    "name": f"p{number}",
                    "generation": 1,
                    "resourceSliceCount": parts,
                },
                "devices": draw(devices(chunk)),
                **draw(selection()),
            }
            if broken and not draw(st.integers(0, 6)):
                spec["pool"]["generation"] = 2
            if broken and not draw(st.integers(0, 8)):
                spec["pool"]["resourceSliceCount"] = 3 if parts == 2 else 2
            name = f"{draw(st.sampled_from('mnz'))}-{number}-{part}"
            slices.append({"metadata": {"name": name}, "spec": spec})
    return draw(st.permutations(slices))


@st.composite
def selection(draw: st.DrawFn) -> Raw:
    """The node selection of a slice; most admit the node `n`."""
    kind = draw(st.integers(0, 9))
    if kind < 6:
        return {"nodeName": "n"}
    if kind < 7:
        return {"nodeName": "m"}
    if kind < 8:
        return {"allNodes": True}
    requirement = {
        "key": "zone",
        "operator": draw(st.sampled_from(("In", "NotIn"))),
        "values": draw(st.sampled_from((["z"], ["z", "y"], ["y"]))),
    }
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}


@st.composite
def requests(draw: st.DrawFn, texts: tuple[str, ...]) -> list[Raw]:
    found = []
    for name in ("r0", "r1", "r2")[: draw(st.integers(1, 3))]:
        chosen = draw(st.lists(st.sampled_from(texts), max_size=2))
        raw = request(
            name, draw(st.sampled_from((1, 1, 2, 3))), *chosen, class_name=draw(classes())
        )
        raw["exactly"]["allocationMode"] = "ExactCount"
        if not draw(st.integers(0, 2)):
            raw["exactly"]["tolerations"] = [draw(tolerations())]
        found.append(raw)
    return found


def classes() -> st.SearchStrategy[str]:
    return st.sampled_from((CLASS, CLASS, "any"))


@st.composite
def tolerations(draw: st.DrawFn) -> Raw:
    operator = draw(st.sampled_from(("Exists", "Equal")))
    raw: Raw = {"operator": operator}
    if operator == "Equal" or draw(st.booleans()):
        raw["key"] = draw(st.sampled_from(KEYS))
    if operator == "Equal" and draw(st.booleans()):
        raw["value"] = "v"
    if draw(st.booleans()):
        raw["effect"] = draw(st.sampled_from(("NoSchedule", "NoExecute")))
    return raw


@st.composite
def claims(draw: st.DrawFn, texts: tuple[str, ...]) -> list[Raw]:
    """One or two claims of a pod, with constraints and configuration."""
    found: list[Raw] = []
    for number in range(draw(st.sampled_from((1, 1, 2)))):
        wanted = draw(requests(texts))
        names = [one["name"] for one in wanted]
        subsets = st.lists(st.sampled_from(names), unique=True)
        constraints = [
            {
                "matchAttribute": draw(st.sampled_from((f"{DRIVER}/a", f"{DRIVER}/b", "x.y/a"))),
                **({"requests": some} if (some := draw(subsets)) else {}),
            }
            for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2))))
        ]
        config = [
            {
                "opaque": {"driver": DRIVER, "parameters": {"n": i}},
                **({"requests": some} if (some := draw(subsets)) else {}),
            }
            for i in range(draw(st.integers(0, 2)))
        ]
        devices_: Raw = {"requests": wanted, "constraints": constraints, "config": config}
        found.append(
            {
                "metadata": {"namespace": "default", "name": f"c{number}", "uid": f"u{number}"},
                "spec": {"devices": devices_},
            }
        )
    return found


@st.composite
def holders(draw: st.DrawFn, slices: list[Raw]) -> list[Raw]:
    """Claims that hold some of the devices."""
    results = [
        {
            "request": "x",
            "driver": one["spec"]["driver"],
            "pool": one["spec"]["pool"]["name"],
            "device": device["name"],
        }
        for one in slices
        for device in one["spec"]["devices"]
        if not draw(st.integers(0, 4))
    ]
    for result in results:
        if not draw(st.integers(0, 5)):
            result["adminAccess"] = True
    return [
        {
            "metadata": {"namespace": "default", "name": f"held{i}", "uid": f"held{i}"},
            "spec": {"devices": {}},
            "status": {"allocation": {"devices": {"results": [result]}}},
        }
        for i, result in enumerate(results)
    ]


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that one attempt needs."""

    claims: list[Raw]
    slices: list[Raw]
    held: list[Raw]
    classes: list[Raw]
    node: Raw


CLASSES: list[Raw] = [
    {
        "metadata": {"name": CLASS},
        "spec": {
            "selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}],
            "config": [{"opaque": {"driver": DRIVER, "parameters": {"class": 1}}}],
        },
    },
    {"metadata": {"name": "any"}, "spec": {}},
]


@st.composite
def scenes(draw: st.DrawFn, *, risky: bool) -> Scene:
    """A cluster and a pod. With risky, selectors may fail and pools may be broken."""
    texts = tuple(wish.text for wish in SAFE_WISHES) + (RISKY_WISHES if risky else ())
    slices = draw(pools(broken=risky))
    asked = draw(claims(texts))
    return Scene(asked, slices, draw(holders(slices)), CLASSES, node(zone="z"))
