"""Watches claims, pods and rules, and notes what must never be seen.

Only what takes a clock is judged at once: that nobody acted on a device that is held twice. For all
else the order counts in which things happened; that is judged of the history, when a run is over.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from dragoon.kube.client import KubeClient
from dragoon.kube.port import CLAIMS, GANGS, PODS, TAINT_RULES, Object, Resource
from racecampaign.guarding import ruled
from racecampaign.history import CHANGES, Event, History, revision_of
from racecampaign.objects import Device, Key, devices

ACTED_WITHIN_S: Final = 5.0
_LOOK_S: Final = 0.05
_LATE_S: Final = 30.0
_MARK: Final = "seen-until-here"
_MARKS: Final[Mapping[Resource, Object]] = {
    PODS: {
        "containers": [{"name": "c", "image": "none"}],
        "schedulingGates": [{"name": f"racecampaign/{_MARK}"}],
    },
    CLAIMS: {"devices": {}},
    TAINT_RULES: {
        "deviceSelector": {"driver": "nobody.example", "pool": _MARK},
        "taint": {"key": f"racecampaign/{_MARK}", "effect": "NoSchedule"},
    },
}


@dataclass
class Overlap:
    """Two or more claims that were seen holding one device.

    since: seconds of the clock. acted: nothing is to be said of it any more.
    """

    device: Device
    since: float
    holders: set[Key]
    acted: bool = False


@dataclass
class Witness:
    """What was found, and what the watches have told.

    history: of pods, claims and rules, and of the Gangs, which explain it. objects: those that hold
    devices, and rules, as they are now.
    """

    client: KubeClient
    found: list[str] = field(default_factory=list)
    overlaps: int = 0
    history: History = field(default_factory=History)
    objects: dict[Resource, dict[Key, Object]] = field(
        default_factory=lambda: {CLAIMS: {}, TAINT_RULES: {}}
    )
    clock: Callable[[], float] = time.monotonic
    _open: dict[Device, Overlap] = field(default_factory=dict)

    async def run(self) -> None:
        """Watches until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for resource in (PODS, CLAIMS, TAINT_RULES, GANGS):
                tasks.create_task(self._follow(resource))
            tasks.create_task(self._look_on())

    async def _follow(self, resource: Resource) -> None:
        listing = await self.client.list(resource)
        version = listing.resource_version
        for one in listing.items:
            self.see(Event.of(resource, "ADDED", one))
        while True:
            async for event in self.client.watch(resource, resource_version=version):
                version = event.object["metadata"]["resourceVersion"]
                self.see(Event.of(resource, event.kind, event.object))
                self.look()

    def see(self, event: Event) -> None:
        """What a watch tells."""
        self.history.add(event)
        seen = self.objects.get(event.resource, {})
        if event.is_gone:
            seen.pop(Key.of(event.object), None)
        elif event.kind in CHANGES:
            seen[Key.of(event.object)] = event.object

    async def _look_on(self) -> None:
        """Time alone can make an overlap one that nobody acted on."""
        while True:
            self.look()
            await asyncio.sleep(_LOOK_S)

    async def all_of(self, namespace: str) -> list[Event]:
        """What happened in a namespace until now, complete and in order.

        It is marked by objects that are for nobody: when they have been seen, so has been all that
        came before. Raises TimeoutError if they are not.
        """
        marks = {
            resource: revision_of(await self.client.create(resource, _mark(resource, namespace)))
            for resource in _MARKS
        }
        for resource in _MARKS:
            home = namespace if resource.namespaced else None
            await self.client.delete(resource, _MARK, namespace=home)
        async with asyncio.timeout(_LATE_S):
            await self.history.seen(marks)
        return self.history.take(namespace, min(marks.values()))

    def held(self) -> dict[Device, set[Key]]:
        """Every device that is allocated, and to whom."""
        holders: defaultdict[Device, set[Key]] = defaultdict(set)
        for key, claim in self.objects[CLAIMS].items():
            for device in devices(claim):
                holders[device].add(key)
        return dict(holders)

    def look(self) -> None:
        """Notes what must not be, as the watches show it now."""
        now, held = self.clock(), self.held()
        pools = {ruled(rule) for rule in self.objects[TAINT_RULES].values()}
        for device, holders in held.items():
            if len(holders) > 1 and device not in self._open:
                self.overlaps += 1
                self._open[device] = Overlap(device, now, set(holders))
        for device, overlap in list(self._open.items()):
            holders = held.get(device, set())
            overlap.holders |= holders if len(holders) > 1 else set()
            left = holders & overlap.holders
            if not left:
                del self._open[device]
                continue
            overlap.acted |= (device.driver, device.pool) in pools
            if not overlap.acted and now - overlap.since > ACTED_WITHIN_S:
                overlap.acted = True
                self.found.append(_neglected(device, left))


def _neglected(device: Device, holders: Iterable[Key]) -> str:
    names = ", ".join(sorted(f"{one.namespace}/{one.name}" for one in holders))
    return (
        f"device {device.name} of {device.pool}: held twice, and no rule after "
        f"{ACTED_WITHIN_S:g} s; held by {names}"
    )


def _mark(resource: Resource, namespace: str) -> Object:
    home = {"namespace": namespace} if resource.namespaced else {}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": _MARK, **home},
        "spec": _MARKS[resource],
    }
