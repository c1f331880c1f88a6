"""Claims of every kind, as kube-scheduler allocates them, and the pods that have them."""

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dragoon.api.claims import ClaimRef
from dragoon.api.opaque_config import API_VERSION
from dragoon.gpu import naming
from dragoon.gpu.sim.machine import Card
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, NODES, PODS, Object

DRIVER = "gpu.dragoon.dev"
NODE = "n1"
NAMESPACE = "team-a"
_MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine of elf(5)

LIBRARY = b"\x7fELF\x02" + bytes(13) + _MACHINES.get(platform.machine(), 0).to_bytes(2, "little")
"""As much of a library as the plugin looks at; nothing loads it here."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a claim was given: devices with what they consume, and the tier that it asks for."""

    kind: str
    results: tuple[Mapping[str, Any], ...]
    tier: str = ""

    @property
    def devices(self) -> frozenset[str]:
        """The names of the devices."""
        return frozenset(one["device"] for one in self.results)


@dataclass(eq=False)
class Pod:
    """A pod with its one claim, on this node."""

    name: str
    uid: str
    claim: ClaimRef
    wish: Wish


def wishes(cards: Iterable[Card]) -> dict[str, Wish]:
    """One of each kind. They use different cards as far as there are four."""
    first, second, third, *_ = cards
    big, small = _profile(second, "3g."), _profile(second, "1g.")
    return {
        "whole": whole(first),
        "mig": Wish(
            "mig",
            (
                _result(naming.mig_name(second.address, big, big.starts[-1]), request="big"),
                _result(naming.mig_name(second.address, small, small.starts[1]), request="small"),
            ),
        ),
        "hami": share(third, "hami", memory="4Gi", cores="10"),
        "cgroup": share(third, "cgroup", memory="6Gi"),
        "none": share(third, "none", memory="1Gi"),
    }


def bystanders(cards: Iterable[Card]) -> tuple[Wish, ...]:
    """Pods that stay all the time: one has a card, one a part of a card that others share."""
    _, _, third, fourth, *_ = cards
    return whole(fourth), share(third, "hami", memory="2Gi", name="bystander")


def whole(*cards: Card) -> Wish:
    """Whole cards in one claim."""
    results = [
        _result(naming.whole_name(card.address), request=f"r{n}") for n, card in enumerate(cards)
    ]
    return Wish("whole", tuple(results))


def share(card: Card, tier: str, *, memory: str, cores: str = "0", name: str = "") -> Wish:
    """A part of a card; the name tells shares of one tier apart."""
    consumed = {"memory": memory, "cores": cores}
    shared = _result(
        naming.shared_name(card.address),
        shareID=f"s-{name or tier}",
        consumedCapacity=consumed,
    )
    return Wish(tier, (shared,), tier)


class Scheduler:
    """Creates pods with claims that are allocated, and ends them, as a control plane does."""

    def __init__(self, api: MemoryApi) -> None:
        self._api = api
        self._number = 0

    async def create_node(self) -> None:
        """The node itself."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        await self._api.create(NODES, node)

    async def pod(self, wish: Wish) -> Pod:
        """A pod, the claim made for it, and an allocation of what is wished."""
        self._number += 1
        name = f"p{self._number}"
        pod = await self._api.create(PODS, _pod(name))
        uid = pod["metadata"]["uid"]
        body = _claim(name, uid, wish)
        created = await self._api.create(CLAIMS, body)
        body["metadata"] = created["metadata"]
        await self._api.replace(CLAIMS, body, subresource="status")
        pod["status"] = {
            "phase": "Pending",
            "resourceClaimStatuses": [{"name": "c", "resourceClaimName": name}],
        }
        await self._api.replace(PODS, pod, subresource="status")
        return Pod(name, uid, ClaimRef(NAMESPACE, name, created["metadata"]["uid"]), wish)

    async def say(self, pod: Pod, state: str) -> None:
        """The kubelet reports the pod's container: running or terminated."""
        found = await self._api.get(PODS, pod.name, namespace=NAMESPACE)
        found["status"]["phase"] = "Running"
        found["status"]["containerStatuses"] = [{"name": "main", "state": {state: {}}}]
        await self._api.replace(PODS, found, subresource="status")

    async def delete(self, pod: Pod) -> None:
        """Pod and claim go, as after a force-deletion: at once."""
        await self._api.delete(PODS, pod.name, namespace=NAMESPACE)
        await self._api.delete(CLAIMS, pod.claim.name, namespace=NAMESPACE)


def _result(device: str, request: str = "gpu", **more: Any) -> dict[str, Any]:
    fields = {"request": request, "driver": DRIVER, "pool": f"{NODE}/gpu", "device": device}
    return fields | more


def _profile(card: Card, prefix: str) -> Any:
    return next(one for one in card.mig if one.name.startswith(prefix))


def _pod(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "nodeName": NODE,
            "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
            "containers": [
                {"name": "main", "image": "i", "resources": {"claims": [{"name": "c"}]}}
            ],
        },
    }


def _claim(name: str, pod_uid: str, wish: Wish) -> Object:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod_uid, "controller": True}
    requests = [
        {"name": request, "exactly": {"deviceClassName": "sim.dragoon.dev"}}
        for request in dict.fromkeys(one["request"] for one in wish.results)
    ]
    allocation = {"devices": {"results": list(wish.results), "config": _config(wish)}}
    reserved = {"resource": "pods", "name": name, "uid": pod_uid}
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]},
        "spec": {"devices": {"requests": requests}},
        "status": {"allocation": allocation, "reservedFor": [reserved]},
    }


def _config(wish: Wish) -> list[Any]:
    if not wish.tier:
        return []
    parameters = {"apiVersion": API_VERSION, "kind": "SharedGpuConfig", "tier": wish.tier}
    opaque = {"driver": DRIVER, "parameters": parameters}
    return [{"source": "FromClaim", "requests": [], "opaque": opaque}]
