"""What this node offers: its cards, their forms and link groups, and who else gives them away.

Looks at the Node, all slices of the node, the journal and the cards before the first offer, at
each change of the Node, and then every minute: slices of other drivers and holders of devices tell
nobody. The first look also tells what an earlier process published: names of NVLink domains, what
cards said of themselves that may be lost now, and forms that are not offered any more but may be
held.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import structlog

from dragoon.api.enforcement import NodeEnforcement
from dragoon.api.forms import Form
from dragoon.errors import DragoonError
from dragoon.gpu.model import Inventory
from dragoon.gpu.obstacles import Obstacle
from dragoon.gpu.topology import nvlink_domains
from dragoon.kube import events
from dragoon.kube.backoff import Backoff
from dragoon.kube.port import Api, Object
from dragoon.publish import domains, owners
from dragoon.publish.blaming import Blames, blamed
from dragoon.publish.blocking import blocked
from dragoon.publish.choosing import Wishes, unmatched
from dragoon.publish.device import Device
from dragoon.publish.devices import Devices, build
from dragoon.publish.last_seen import LastSeen
from dragoon.publish.looking import Hardware, Look, Looker, Sources
from dragoon.publish.offer import Offer, careful
from dragoon.publish.own_node import OwnNode
from dragoon.publish.owners import Owner
from dragoon.publish.publisher import Publisher
from dragoon.publish.reserving import reserved
from dragoon.publish.slices import Pool
from dragoon.publish.wishing import Wanted, wanted
from dragoon.publish.withdrawing import leaving

log = structlog.get_logger(__name__)

SETTLE_SECONDS = 300.0
"""How long a device that is withdrawn keeps its taint at least: far longer than a pod takes from
the allocation of its claim to its binding."""


class Offering:
    """Turns inventories into offers to a publisher. Belongs to the loop that runs run()."""

    def __init__(
        self,
        api: Api,
        publisher: Publisher,
        node: OwnNode,
        *,
        driver: str,
        recorder: events.EventRecorder,
        wishes: Wishes | None = None,
        sources: Sources | None = None,
        interval: float = 60.0,
        settle: float = SETTLE_SECONDS,
    ) -> None:
        """wishes: the settings; the node's label wins over them.

        interval: seconds between two looks. settle: see SETTLE_SECONDS.
        """
        self._publisher = publisher
        self._driver = driver
        self._node = node
        self._recorder = recorder
        self._settings = wishes or Wishes()
        self._looker = Looker(api, Pool(driver, node.name), sources or Sources())
        self._interval = interval
        self._settle = settle
        self._inventory: Inventory | None = None
        self._news = asyncio.Event()
        self._retry = Backoff(first=0.5, limit=15.0)
        self._look: Look | None = None
        self._wanted = Wanted(self._settings)
        self._last_seen = LastSeen()
        self._leaving: dict[str, float] = {}
        self._problems: tuple[str, ...] = ()
        self._owners: tuple[Owner, ...] = ()
        self._obstacles: tuple[Obstacle, ...] = ()
        self._blames: Blames = {}
        self._devices: tuple[str, ...] = ()
        self._followers: list[Callable[[tuple[str, ...]], None]] = []
        node.follow(self._node_changed)

    @property
    def problems(self) -> tuple[str, ...]:
        """What people should know about the cards offered now."""
        return self._problems

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Who else offers cards of this node; empty where the node's label accepts it."""
        return self._owners

    @property
    def wanted(self) -> Wanted:
        """The forms that count on this node, and what decided them."""
        return self._wanted

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of all devices that are offered, tainted or not."""
        return self._devices

    def follow(self, callback: Callable[[tuple[str, ...]], None]) -> None:
        """Calls back with `devices` whenever they change; it may not block or raise."""
        self._followers.append(callback)

    @property
    def leaving(self) -> tuple[str, ...]:
        """Devices that are not offered any more and still published, with a taint."""
        return tuple(sorted(self._leaving))

    def show(self, inventory: Inventory) -> None:
        """What was found on this node; the last one counts."""
        if inventory != self._inventory:
            self._inventory = inventory
            self._news.set()

    def enforce(self, found: NodeEnforcement) -> None:
        """What this node can hold shares by; the last answer counts.

        Before the first there are no new shares, and those of an earlier process stay.
        """
        if found != self._settings.enforcement:
            self._settings = replace(self._settings, enforcement=found)
            self._news.set()

    def block(self, obstacles: tuple[Obstacle, ...]) -> None:
        """What keeps cards from taking forms now; the last answer counts."""
        if obstacles != self._obstacles:
            self._obstacles = obstacles
            self._news.set()

    def blame(self, blames: Blames) -> None:
        """Which cards are not well; the last answer counts."""
        if blames != self._blames:
            self._blames = blames
            self._news.set()

    def look_again(self) -> None:
        """Something outside has changed that no inventory shows, such as a MIG instance."""
        self._news.set()

    async def run(self) -> None:
        """Offers until cancelled. Nothing is offered before other owners could be looked for."""
        if self._inventory is None:
            await self._news.wait()
        while True:
            wait = await self._look_around()
            self._news.clear()  # All that was told until now is read below.
            node = self._node.current
            if self._look is not None and self._inventory is not None and node is not None:
                await self._offer(node, self._look, self._inventory)
            try:
                async with asyncio.timeout(wait):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _look_around(self) -> float:
        """Asks the API server; answers how long to wait before the next look."""
        try:
            await self._node.read()
            look = await self._looker.at_cluster()
        except DragoonError as error:
            wait = self._retry.next()
            log.warning("other owners of GPUs not looked for", error=str(error), next_try_s=wait)
            return wait
        self._retry.reset()
        if self._look is None:
            self._last_seen.recall(look.slices, self._driver)
        self._look = look
        return self._interval

    def _node_changed(self, _: Object) -> None:
        if self._inventory is not None:
            self._news.set()

    async def _offer(self, node: Object, look: Look, inventory: Inventory) -> None:
        self._wanted = wanted(node, self._settings, look.floor)
        if not self._settings.enforcement.probed and self._was_shared():
            return  # the answer is on its way; without it the shares would be withdrawn
        found = owners.find(node, look.slices, inventory, driver=self._driver)
        self._tell_owners(node, () if owners.coexists(node) else found)
        hardware = await self._looker.at_hardware(inventory, mig=self._is_divided())
        values = domains.assign(
            nvlink_domains(inventory.gpus), node=self._node.name, previous=self._last_seen.domains
        )
        draft = partial(
            build,
            inventory,
            divisions=hardware.divisions,
            domains=values,
            taints=owners.taints(self._owners),
            last_seen=self._last_seen.devices,
        )
        built = draft(wishes=self._wanted.wishes)
        self._leaving = await self._stay(inventory, built, hardware)
        if self._leaving:
            built = draft(wishes=self._wanted.wishes, kept=self._leaving)
        offer = Offer(self._kept_off(built.devices, node), built.counter_sets)
        if offer.has_forms or not look.floor.forms:
            plain = self._without_forms(draft(wishes=Wishes()), built, hardware)
            plain = self._kept_off(plain, node)
            offer = replace(offer, plain=plain) if look.floor.forms else Offer(plain)
        self._last_seen.take_over(inventory, built, values)
        unread = (f"GPU {card}: MIG: {why}" for card, why in hardware.unread.items())
        unknown = unmatched(hardware.divisions.values(), self._wanted.wishes)
        self._tell_problems((*self._wanted.problems, *unknown, *built.problems, *unread))
        if look.floor.publishes:
            self._publisher.offer(offer)
        self._tell_devices(tuple(device.name for device in offer.devices))

    def _kept_off(self, devices: Sequence[Device], node: Object) -> tuple[Device, ...]:
        """The devices with the taints of obstacles, of sick cards and of a node for gangs only."""
        kept = blamed(blocked(devices, self._obstacles), self._blames)
        return reserved(kept, node)

    def _is_divided(self) -> bool:
        """Whether MIG matters: it is wanted, or was published."""
        return Form.MIG in self._wanted.wishes.forms or self._last_seen.divided

    def _was_shared(self) -> bool:
        """Whether shares are wanted, and an earlier process published some."""
        return Form.SHARED in self._wanted.wishes.forms and self._last_seen.shared

    async def _stay(
        self, inventory: Inventory, built: Devices, hardware: Hardware
    ) -> dict[str, float]:
        """The devices of working cards that are published, not offered any more, and must stay."""
        offered = {device.name for device in built.devices}
        published = self._last_seen.of_working(inventory)
        if published <= offered:
            return {}
        return leaving(
            published,
            offered,
            await self._looker.holders(hardware.prepared),
            # Time counts only while the taint stands.
            self._leaving if self._publisher.state.current else {},
            now=asyncio.get_running_loop().time(),
            settle=self._settle,
        )

    @staticmethod
    def _without_forms(whole: Devices, built: Devices, hardware: Hardware) -> tuple[Device, ...]:
        """What is offered where Kubernetes cannot keep forms apart."""
        prepared = hardware.prepared
        held = prepared.devices if prepared else {device.name for device in built.devices}
        return careful(whole.devices, built.devices, held)

    def _tell_devices(self, devices: tuple[str, ...]) -> None:
        if devices != self._devices:
            self._devices = devices
            for callback in self._followers:
                callback(devices)

    def _tell_problems(self, problems: tuple[str, ...]) -> None:
        for problem in dict.fromkeys(problems):
            if problem not in self._problems:
                log.warning("GPU problem", problem=problem)
        self._problems = tuple(dict.fromkeys(problems))

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
