"""An independent check of a proposed allocation against raw objects.

Shares nothing with the search but the CEL programs and the parsing of amounts: it works on the raw
objects, one rule after the other, without order or backtracking. What it finds is a list of
sentences, empty for an allocation that breaks no rule (the API server checks none of this).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dragoon.allocator.verifier_sums import allocated, lacking, sums
from dragoon.allocator.verifier_world import Raw, Spot, World, admits, name_of
from dragoon.cel import DeviceView, compile_selector, device_view
from dragoon.errors import DragoonError

_MAX_DEVICES: Final = 32


def verify(
    claims: Sequence[Raw],
    allocations: Sequence[Raw],
    *,
    classes: Iterable[Raw],
    slices: Iterable[Raw],
    allocated_claims: Iterable[Raw],
    node: Raw,
    taint_rules: Iterable[Raw] = (),
) -> list[str]:
    """Every rule that these allocations of one pod's claims on one node break, as sentences."""
    world = World(classes, slices, node, taint_rules)
    held = list(allocated(allocated_claims))
    problems: list[str] = []
    for claim, allocation in zip(claims, allocations, strict=True):
        problems += _Check(world, claim, allocation).problems()
    problems += sums(world, claims, allocations, held)
    return problems


class _Check:
    """One claim and the allocation proposed for it."""

    def __init__(self, world: World, claim: Raw, allocation: Raw) -> None:
        self._world = world
        self._wanted = claim["spec"]["devices"]
        self._allocation = allocation
        self._results: Sequence[Raw] = allocation["devices"]["results"]
        self._requests: dict[str, Raw] = {}
        for request in self._wanted["requests"]:
            if request.get("exactly"):
                self._requests[request["name"]] = request["exactly"]
            for sub in request.get("firstAvailable") or ():
                self._requests[f"{request['name']}/{sub['name']}"] = sub

    def problems(self) -> Iterator[str]:
        """The rules that the allocation breaks."""
        if len(self._results) > _MAX_DEVICES:
            yield f"{len(self._results)} devices, a claim can have {_MAX_DEVICES}"
        for request in self._wanted["requests"]:
            yield from self._count(request)
        spots: list[tuple[Raw, Spot]] = []
        for result in self._results:
            spot = self._world.find(result)
            if spot is None:
                yield f"device {name_of(result)} is in no slice of a usable pool"
            elif result["request"] not in self._requests:
                yield f"there is no request {result['request']}"
            else:
                spots.append((result, spot))
                yield from self._device(result, spot, self._requests[result["request"]])
        for constraint in self._wanted.get("constraints") or ():
            yield from _constraint(constraint, spots)
        yield from self._config()
        yield from self._selector(spots)

    def _count(self, request: Raw) -> Iterator[str]:
        """One alternative at most, and as many devices as it wants."""
        name = request["name"]
        given = Counter(
            result["request"]
            for result in self._results
            if result["request"].partition("/")[0] == name
        )
        if len(given) != 1:
            yield f"request {name} is met {len(given)} times: {', '.join(sorted(given)) or 'never'}"
            return
        ((full, count),) = given.items()
        wanted = self._requests.get(full)
        if wanted is None:
            return
        if wanted.get("allocationMode") == "All":
            yield from self._everything(full, wanted)
        elif count != (wanted.get("count") or 1):
            yield f"request {full} has {count} devices, wants {wanted.get('count') or 1}"

    def _everything(self, full: str, wanted: Raw) -> Iterator[str]:
        given = {name_of(one) for one in self._results if one["request"] == full}
        for spot in self._world.spots():
            misfits = [*self._selected(wanted, spot), *lacking(wanted, spot)]
            if not misfits and spot.name not in given:
                yield f"request {full} wants all devices, {spot.name} is missing"

    def _device(self, result: Raw, spot: Spot, request: Raw) -> Iterator[str]:
        if not self._world.is_here(spot):
            yield f"device {spot.name} cannot be used on this node"
        yield from self._selected(request, spot)
        yield from lacking(request, spot)
        for taint in self._world.taints(spot):
            if taint["effect"] in {"NoSchedule", "NoExecute"} and not _tolerated(taint, request):
                yield f"device {spot.name}: taint {taint['key']} is not tolerated"
        for field, expected in (
            ("adminAccess", bool(request.get("adminAccess"))),
            ("tolerations", request.get("tolerations") or []),
            ("bindingConditions", spot.device.get("bindingConditions") or []),
            ("bindingFailureConditions", spot.device.get("bindingFailureConditions") or []),
        ):
            if (result.get(field) or type(expected)()) != expected:
                yield f"device {spot.name}: {field} is {result.get(field)!r}, not {expected!r}"

    def _selected(self, request: Raw, spot: Spot) -> Iterator[str]:
        class_ = self._world.classes.get(request["deviceClassName"])
        if class_ is None:
            yield f"there is no class {request['deviceClassName']}"
            return
        selectors = (class_.get("spec") or {}).get("selectors") or ()
        view: DeviceView | None = None
        for selector in (*selectors, *(request.get("selectors") or ())):
            expression = selector["cel"]["expression"]
            try:
                view = device_view(spot.driver, spot.device) if view is None else view
                if not compile_selector(expression).evaluate(view):
                    yield f"device {spot.name} does not match {expression}"
            except DragoonError as error:
                yield f"device {spot.name}: {expression} fails: {error.message}"

    def _config(self) -> Iterator[str]:
        """Every configuration that applies to a granted request is there, and covers it."""
        found = self._allocation["devices"].get("config") or ()
        for full in dict.fromkeys(one["request"] for one in self._results):
            class_ = self._world.classes.get(
                self._requests.get(full, {}).get("deviceClassName", ""), {}
            )
            for entry in (class_.get("spec") or {}).get("config") or ():
                if not _covered(found, "FromClass", entry, full):
                    yield f"the configuration of the class of request {full} is missing"
            for entry in self._wanted.get("config") or ():
                names = entry.get("requests")
                applies = not names or full in names or full.partition("/")[0] in names
                if applies and not _covered(found, "FromClaim", entry, full):
                    yield f"the claim's configuration for request {full} is missing"

    def _selector(self, spots: Sequence[tuple[Raw, Spot]]) -> Iterator[str]:
        """The allocation is pinned to the node if a device of it is local, else it admits it."""
        node = self._world.node["metadata"]["name"]
        selector = self._allocation.get("nodeSelector")
        places = [spot.place for _, spot in spots]
        if any(place.get("nodeName") for place in places) or any(
            spot.device.get("bindsToNode") for _, spot in spots
        ):
            term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            if selector != {"nodeSelectorTerms": [term]}:
                yield f"the node selector is not exactly metadata.name In [{node}]"
        elif selector is None:
            if any(place.get("nodeSelector") for place in places):
                yield "the node selector of a slice is missing"
        elif not admits({"nodeSelector": selector}, self._world.node):
            yield "the node selector does not admit the node"


def _covered(found: Iterable[Raw], source: str, entry: Raw, request: str) -> bool:
    return any(
        one["source"] == source
        and one.get("opaque") == entry.get("opaque")
        and (
            not one.get("requests")
            or request in one["requests"]
            or request.partition("/")[0] in one["requests"]
        )
        for one in found
    )


def _tolerated(taint: Raw, request: Raw) -> bool:
    for one in request.get("tolerations") or ():
        right_effect = one.get("effect", "") in {"", taint["effect"]}
        right_key = one.get("key", "") in {"", taint["key"]}
        exists = one.get("operator") == "Exists"
        if (
            right_effect
            and right_key
            and (exists or one.get("value", "") == taint.get("value", ""))
        ):
            return True
    return False


def _constraint(constraint: Raw, spots: Sequence[tuple[Raw, Spot]]) -> Iterator[str]:
    """matchAttribute: one value; distinctAttribute: none twice; either way no device without."""
    attribute = constraint.get("matchAttribute") or constraint["distinctAttribute"]
    covered = constraint.get("requests")
    values = [
        repr(_attribute(spot, attribute))
        for result, spot in spots
        if not covered
        or result["request"] in covered
        or result["request"].partition("/")[0] in covered
    ]
    if "None" in values:
        yield f"a device has no {attribute}"
    elif constraint.get("matchAttribute"):
        if len(set(values)) > 1:
            yield f"{attribute} is not the same: {', '.join(sorted(set(values)))}"
    elif len(set(values)) < len(values):
        yield f"{attribute} is there twice: {', '.join(sorted(values))}"


def _attribute(spot: Spot, name: str) -> Any:
    attributes: Mapping[str, Any] = spot.device.get("attributes") or {}
    short = name.removeprefix(f"{spot.driver}/")
    return attributes.get(name, attributes.get(short))
