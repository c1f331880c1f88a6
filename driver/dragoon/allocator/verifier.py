"""An independent check of a proposed allocation against raw objects.

Shares nothing with the search but the CEL programs and the reading of names: it works on the raw
objects, one rule after the other, without order or backtracking. What it finds is a list of
sentences, empty for an allocation that breaks no rule (dra-api.md C; the API server checks none of
this, A.6).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dragoon.allocator.claims import node_view
from dragoon.allocator.model import NodeSelection, Raw
from dragoon.allocator.nodes import matches
from dragoon.cel import EvaluationError, compile_selector, device_view
from dragoon.errors import DragoonError

_Key = tuple[str, str, str]


def verify(
    claims: Sequence[Raw],
    allocations: Sequence[Raw],
    *,
    classes: Iterable[Raw],
    slices: Iterable[Raw],
    allocated_claims: Iterable[Raw],
    node: Raw,
) -> list[str]:
    """Every rule that these allocations of one pod's claims on one node break, as sentences."""
    check = _Check(classes, slices, node)
    taken = Counter(_keys(claim.get("status", {}).get("allocation") for claim in allocated_claims))
    problems: list[str] = []
    for claim, allocation in zip(claims, allocations, strict=True):
        problems += check.claim(claim, allocation)
    taken.update(_keys(allocations))
    mine = set(_keys(allocations))
    problems += [f"device {'/'.join(key)} is given twice" for key in mine if taken[key] > 1]
    return problems


def _keys(allocations: Iterable[Raw | None]) -> Iterator[_Key]:
    for allocation in allocations:
        for result in ((allocation or {}).get("devices") or {}).get("results") or ():
            if not result.get("adminAccess"):
                yield result["driver"], result["pool"], result["device"]


class _Check:
    """The raw objects by name."""

    def __init__(self, classes: Iterable[Raw], slices: Iterable[Raw], node: Raw) -> None:
        self._classes = {one["metadata"]["name"]: one for one in classes}
        self._slices = tuple(slices)
        self._node = node

    def claim(self, claim: Raw, allocation: Raw) -> Iterator[str]:
        """The rules that one allocation breaks."""
        wanted = claim["spec"]["devices"]
        results = allocation["devices"]["results"]
        requests = {request["name"]: request["exactly"] for request in wanted["requests"]}
        counts = Counter(result["request"] for result in results)
        for name, request in requests.items():
            count = request.get("count") or 1
            if counts[name] != count:
                yield f"request {name} has {counts[name]} devices, wants {count}"
        devices = []
        for result in results:
            slice_, device = self._find(result)
            if slice_ is None or device is None:
                yield f"device {_name(result)} is in no slice of the newest generation"
                continue
            devices.append((result["request"], slice_["spec"]["driver"], device))
            yield from self._device(requests, result, slice_, device)
        for constraint in wanted.get("constraints") or ():
            yield from _constraint(constraint, devices)
        yield from self._selector(allocation, results)

    def _find(self, result: Raw) -> tuple[Raw | None, Raw | None]:
        same = [
            one
            for one in self._slices
            if (one["spec"]["driver"], one["spec"]["pool"]["name"])
            == (result["driver"], result["pool"])
        ]
        newest = max((one["spec"]["pool"].get("generation", 0) for one in same), default=0)
        for one in same:
            pool = one["spec"]["pool"]
            if pool.get("generation", 0) != newest:
                continue
            for device in one["spec"].get("devices") or ():
                if device["name"] == result["device"]:
                    return one, device
        return None, None

    def _device(self, requests: Raw, result: Raw, slice_: Raw, device: Raw) -> Iterator[str]:
        request = requests.get(result["request"])
        if request is None:
            yield f"there is no request {result['request']}"
            return
        spec = slice_["spec"]
        place = device if spec.get("perDeviceNodeSelection") else spec
        if not _admits(place, self._node):
            yield f"device {_name(result)} cannot be used on this node"
        class_ = self._classes.get(request["deviceClassName"])
        if class_ is None:
            yield f"there is no class {request['deviceClassName']}"
            return
        for selector in (
            *(class_["spec"].get("selectors") or ()),
            *(request.get("selectors") or ()),
        ):
            yield from _selector(selector["cel"]["expression"], result, device)
        for taint in device.get("taints") or ():
            if taint["effect"] in {"NoSchedule", "NoExecute"} and not _tolerated(taint, request):
                yield f"device {_name(result)}: taint {taint['key']} is not tolerated"

    def _selector(self, allocation: Raw, results: Sequence[Raw]) -> Iterator[str]:
        """The allocation must be pinned to the node if a device of it is local to the node."""
        local = any(
            (slice_ or {}).get("spec", {}).get("nodeName") for slice_, _ in map(self._find, results)
        )
        name = self._node["metadata"]["name"]
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
        if local and allocation.get("nodeSelector") != {"nodeSelectorTerms": [term]}:
            yield f"the node selector is not exactly metadata.name In [{name}]"


def _name(result: Raw) -> str:
    return f"{result['driver']}/{result['pool']}/{result['device']}"


def _admits(place: Raw, node: Raw) -> bool:
    selection = NodeSelection(
        place.get("nodeName") or "", bool(place.get("allNodes")), place.get("nodeSelector")
    )
    return matches(selection, node_view(node))


def _selector(expression: str, result: Raw, device: Raw) -> Iterator[str]:
    try:
        view = device_view(result["driver"], device)
        if not compile_selector(expression).evaluate(view):
            yield f"device {_name(result)} does not match {expression}"
    except EvaluationError as error:
        yield f"device {_name(result)}: {expression} fails: {error.message}"
    except DragoonError as error:
        yield f"{expression} cannot be checked: {error.message}"


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


def _constraint(constraint: Raw, devices: Sequence[tuple[str, str, Raw]]) -> Iterator[str]:
    attribute = constraint["matchAttribute"]
    covered = constraint.get("requests") or [request for request, _, _ in devices]
    values = {
        str(_attribute(device, driver, attribute))
        for request, driver, device in devices
        if request in covered
    }
    if len(values) > 1 or "None" in values:
        yield f"{attribute} is not the same: {', '.join(sorted(values))}"


def _attribute(device: Raw, driver: str, name: str) -> Any:
    attributes = device.get("attributes") or {}
    short = name.removeprefix(f"{driver}/")
    return attributes.get(name, attributes.get(short))
