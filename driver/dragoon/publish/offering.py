"""What this node offers: its cards, their link groups, and who else gives them away, together.

Looks at the Node and at all slices of the node before the first offer and then every minute. The
first look also tells what an earlier process published: names of NVLink domains, and what cards
said of themselves that may be lost now.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from dragoon.errors import DragoonError
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.gpu.topology import nvlink_domains
from dragoon.kube import events
from dragoon.kube.backoff import Backoff
from dragoon.kube.port import NODES, SLICES, Api, Object
from dragoon.publish import domains, owners
from dragoon.publish.devices import Devices, build
from dragoon.publish.offer import Offer
from dragoon.publish.owners import Owner
from dragoon.publish.publisher import Publisher

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Look:
    """The Node, and the slices of all drivers on it."""

    node: Object
    slices: tuple[Object, ...]


class Offering:
    """Turns inventories into offers to a publisher. Belongs to the loop that runs run()."""

    def __init__(
        self,
        api: Api,
        publisher: Publisher,
        *,
        driver: str,
        node: str,
        recorder: events.EventRecorder,
        interval: float = 60.0,
    ) -> None:
        """interval: seconds between two looks for other owners."""
        self._api = api
        self._publisher = publisher
        self._driver = driver
        self._node = node
        self._recorder = recorder
        self._interval = interval
        self._inventory: Inventory | None = None
        self._news = asyncio.Event()
        self._retry = Backoff(first=0.5, limit=15.0)
        self._look: _Look | None = None
        self._domains: dict[PciAddress, str] = {}
        self._last_seen: dict[str, Object] = {}
        self._offered = Devices()
        self._owners: tuple[Owner, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """What people should know about the cards offered now."""
        return self._offered.problems

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Who else offers cards of this node; empty where the node's label accepts it."""
        return self._owners

    def show(self, inventory: Inventory) -> None:
        """What was found on this node; the last one counts."""
        if inventory != self._inventory:
            self._inventory = inventory
            self._news.set()

    async def run(self) -> None:
        """Offers until cancelled. Nothing is offered before other owners could be looked for."""
        await self._news.wait()
        while True:
            self._news.clear()
            wait = await self._look_around()
            if self._look is not None and self._inventory is not None:
                self._offer(self._look, self._inventory)
            try:
                async with asyncio.timeout(wait):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _look_around(self) -> float:
        """Reads the Node and its slices; answers how long to wait before the next look."""
        try:
            node = await self._api.get(NODES, self._node)
            listing = await self._api.list(SLICES, fields={"spec.nodeName": self._node})
        except DragoonError as error:
            wait = self._retry.next()
            log.warning("other owners of GPUs not looked for", error=str(error), next_try_s=wait)
            return wait
        self._retry.reset()
        if self._look is None:
            self._remember(listing.items)
        self._look = _Look(node, listing.items)
        return self._interval

    def _remember(self, slices: Sequence[Object]) -> None:
        """Takes over what an earlier process published."""
        devices = [
            device
            for slice_ in slices
            if slice_["spec"]["driver"] == self._driver
            for device in slice_["spec"].get("devices") or []
        ]
        self._domains = domains.published(devices)
        self._last_seen = {device["name"]: device for device in devices}

    def _offer(self, look: _Look, inventory: Inventory) -> None:
        found = owners.find(look.node, look.slices, inventory, driver=self._driver)
        self._tell_owners(look.node, () if owners.coexists(look.node) else found)
        values = domains.assign(
            nvlink_domains(inventory.gpus), node=self._node, previous=self._domains
        )
        built = build(
            inventory,
            domains=values,
            taints=owners.taints(self._owners),
            last_seen=self._last_seen,
        )
        # Of cards that are away for a while the memory stays.
        self._domains |= values
        self._last_seen |= {device.name: device.raw() for device in built.devices}
        for problem in set(built.problems) - set(self._offered.problems):
            log.warning("GPU problem", problem=problem)
        self._offered = built
        self._publisher.offer(Offer(built.devices, built.counter_sets))

    def _tell_owners(self, node: Object, found: tuple[Owner, ...]) -> None:
        if found and found != self._owners:
            text = owners.describe(found)
            log.warning("GPUs are offered twice", problem=text)
            self._recorder.emit(
                node, reason="OtherGpuOwner", action="Publish", note=text, type_=events.WARNING
            )
        elif self._owners and not found:
            log.info("GPUs have no other owner any more")
        self._owners = found
