"""Which of our devices claims hold on this node.

Two sources, neither of which needs a permission that the plugin does not have anyway. What is
prepared, the plugin's own journal knows. What is allocated and not yet prepared belongs to a pod
that is bound to this node: its claims are read one by one. Listing all claims of the cluster would
show every node every claim. What neither shows is a claim between its allocation and the binding
of its pod; `withdrawing` waits for those.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dragoon.api import claims
from dragoon.errors import ApiNotFoundError
from dragoon.kube.port import CLAIMS, PODS, Api


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the journal of prepare says, by device names.

    devices: those that claims hold. made: those of them whose MIG instance the plugin itself made,
    is making or is removing; every other instance on this node is somebody else's.
    """

    devices: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()


Journal = Callable[[], Awaitable[Prepared | None]]
"""Reads the journal now; None where some of it cannot be read."""


async def nothing_prepared() -> Prepared | None:
    """For processes that prepare nothing."""
    return Prepared()


async def allocated(api: Api, *, driver: str, pool: str, node: str) -> frozenset[str]:
    """The devices of the pool that are allocated to claims of pods on this node.

    Raises what the API raises.
    """
    pods = await api.list(PODS, fields={"spec.nodeName": node})
    wanted = {
        (pod["metadata"].get("namespace", ""), name)
        for pod in pods.items
        for name in _claim_names(pod)
    }
    found: set[str] = set()
    for namespace, name in sorted(wanted):
        try:
            claim = await api.get(CLAIMS, name, namespace=namespace)
        except ApiNotFoundError:
            continue
        allocation = claims.allocation(claim)
        devices = allocation.devices if allocation else ()
        found |= {one.device for one in devices if (one.driver, one.pool) == (driver, pool)}
    return frozenset(found)


def _claim_names(pod: Mapping[str, Any]) -> Iterator[str]:
    """The claims of a pod: named by it, made from its templates, or made for extended resources."""
    status = pod.get("status") or {}
    for entry in pod.get("spec", {}).get("resourceClaims") or ():
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"]
    for made in status.get("resourceClaimStatuses") or ():
        if made.get("resourceClaimName"):
            yield made["resourceClaimName"]
    extended = status.get("extendedResourceClaimStatus") or {}
    if extended.get("resourceClaimName"):
        yield extended["resourceClaimName"]
