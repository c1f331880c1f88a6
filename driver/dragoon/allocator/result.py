"""status.allocation as kube-scheduler writes it.

Source: `structured` of k8s.io/dynamic-resource-allocation 0.37.2.

The allocationTimestamp is not the allocator's: whoever writes the allocation adds it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoon.allocator.fields import items
from dragoon.allocator.model import Claim, DeviceClass, Node, NodeSelection, Raw, Request
from dragoon.allocator.nodes import NodeSelectorError
from dragoon.allocator.problem import Chosen

ShareIds = Callable[[], str]
"""Makes a fresh share ID: a random UUID in lower case."""


def allocation(
    claim: Claim,
    chosen: Sequence[Chosen],
    classes: Mapping[str, DeviceClass],
    node: Node,
    share_ids: ShareIds,
) -> dict[str, Any]:
    """The raw status.allocation of a claim for these devices.

    Raises NodeSelectorError for a slice with a node selector of several terms.
    """
    devices: dict[str, Any] = {"results": [_result(one, share_ids) for one in chosen]}
    config = _config(claim, _granted(claim, chosen), classes)
    if config:
        devices["config"] = config
    result: dict[str, Any] = {"devices": devices}
    selector = _node_selector(chosen, node)
    if selector is not None:
        result["nodeSelector"] = selector
    return result


def _result(chosen: Chosen, share_ids: ShareIds) -> dict[str, Any]:
    device, facts = chosen.id, chosen.candidate.device.facts
    result: dict[str, Any] = {
        "request": chosen.request.name,
        "driver": device.driver,
        "pool": device.pool,
        "device": device.device,
    }
    if chosen.request.admin:
        result["adminAccess"] = True
    if chosen.request.raw_tolerations:
        result["tolerations"] = [dict(one) for one in chosen.request.raw_tolerations]
    result.update((name, list(value)) for name, value in facts.conditions)
    if facts.multiple:
        result["shareID"] = share_ids()
        if chosen.candidate.uses:
            result["consumedCapacity"] = {
                use.name: str(use.amount) for use in chosen.candidate.uses
            }
    return result


def _granted(claim: Claim, chosen: Sequence[Chosen]) -> list[Request]:
    """Of each request what was granted: the request itself, or the alternative that was chosen."""
    by_base = {one.request.base: one.request for one in chosen}
    return [by_base.get(wanted.name, wanted.alternatives[0]) for wanted in claim.requests]


def _config(
    claim: Claim, granted: Sequence[Request], classes: Mapping[str, DeviceClass]
) -> list[dict[str, Any]]:
    """Class configuration first, each class once, then the claim's; all requests is no request."""
    users: dict[str, list[str]] = {}
    for request in granted:
        users.setdefault(request.class_name, []).append(request.name)
    entries = [
        _entry("FromClass", requests, entry)
        for class_name, requests in users.items()
        for entry in classes[class_name].config
    ]
    for entry in claim.config:
        wanted = list(items(entry, "requests"))
        if not wanted or any(_concerns(wanted, request) for request in granted):
            entries.append(_entry("FromClaim", wanted, entry))
    for assembled in entries:
        listed = assembled.get("requests")
        if listed and all(_concerns(listed, request) for request in granted):
            del assembled["requests"]
    return entries


def _concerns(names: Sequence[str], request: Request) -> bool:
    return request.base in names or request.name in names


def _entry(source: str, requests: list[str], config: Raw) -> dict[str, Any]:
    entry: dict[str, Any] = {"source": source, "requests": list(requests)}
    entry.update((key, value) for key, value in config.items() if key != "requests")
    if not requests:
        del entry["requests"]
    return entry


def _node_selector(chosen: Sequence[Chosen], node: Node) -> dict[str, Any] | None:
    """Where the claim can be used: on this node if a device is local to it, else where all are."""
    fields: list[Raw] = []
    expressions: list[Raw] = []
    for one in chosen:
        slice_, device = one.candidate.slice, one.candidate.device
        nodes = (device.nodes if slice_.nodes is None else slice_.nodes) or NodeSelection()
        if nodes.node_name or device.facts.binds_to_node:
            requirement = {"key": "metadata.name", "operator": "In", "values": [node.name]}
            return {"nodeSelectorTerms": [{"matchFields": [requirement]}]}
        for term in _terms(nodes, one):
            _add_new(fields, items(term, "matchFields"))
            _add_new(expressions, items(term, "matchExpressions"))
    term = {
        name: [dict(requirement) for requirement in requirements]
        for name, requirements in (("matchExpressions", expressions), ("matchFields", fields))
        if requirements
    }
    return {"nodeSelectorTerms": [term]} if term else None


def _terms(nodes: NodeSelection, chosen: Chosen) -> tuple[Raw, ...]:
    terms = items(nodes.selector or {}, "nodeSelectorTerms")
    if len(terms) > 1:
        raise NodeSelectorError(
            f"device {chosen.id}: a node selector with {len(terms)} terms; kube-scheduler takes one"
        )
    return terms


def _add_new(known: list[Raw], more: Sequence[Raw]) -> None:
    """Adds the requirements that are not there yet; the order of values does not matter."""
    for requirement in more:
        if not any(_identity(one) == _identity(requirement) for one in known):
            known.append(requirement)


def _identity(requirement: Raw) -> tuple[Any, Any, frozenset[Any]]:
    return requirement["key"], requirement["operator"], frozenset(items(requirement, "values"))
