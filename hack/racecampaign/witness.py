"""Watches claims, pods and rules, and notes what must never be seen."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dragoon.api import gang
from dragoon.kube.client import KubeClient
from dragoon.kube.port import CLAIMS, PODS, TAINT_RULES, Object, Resource

ACTED_WITHIN_S: Final = 5.0
_LOOK_S: Final = 0.05


class Device(NamedTuple):
    """A device that can be held by one claim only."""

    driver: str
    pool: str
    name: str


class Key(NamedTuple):
    """An object of one kind."""

    namespace: str
    name: str
    uid: str


@dataclass
class Overlap:
    """Two or more claims that were seen holding one device. since: monotonic seconds."""

    device: Device
    since: float
    holders: set[Key]
    acted: bool = False
    reported: bool = False


@dataclass
class Witness:
    """What the watches show now, and what was found.

    A gang is whole once all its members are bound, or had devices at one time: from then on one
    that is deleted is placed again on its own, while the others start.
    """

    client: KubeClient
    found: list[str] = field(default_factory=list)
    overlaps: int = 0
    objects: dict[Resource, dict[Key, Object]] = field(
        default_factory=lambda: {CLAIMS: {}, PODS: {}, TAINT_RULES: {}}
    )
    _open: dict[Device, Overlap] = field(default_factory=dict)
    _whole: set[tuple[str, str]] = field(default_factory=set)
    _claims_of: dict[tuple[str, str], dict[str, list[str]]] = field(default_factory=dict)
    _has_devices: dict[tuple[str, str], bool] = field(default_factory=dict)

    async def run(self) -> None:
        """Watches until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for resource in self.objects:
                tasks.create_task(self._follow(resource))
            tasks.create_task(self._look_on())

    async def _follow(self, resource: Resource) -> None:
        seen = self.objects[resource]
        listing = await self.client.list(resource)
        version = listing.resource_version
        seen.update({_key(one): one for one in listing.items})
        while True:
            async for event in self.client.watch(resource, resource_version=version):
                version = event.object["metadata"]["resourceVersion"]
                if event.kind in {"ADDED", "MODIFIED"}:
                    seen[_key(event.object)] = event.object
                elif event.kind == "DELETED":
                    seen.pop(_key(event.object), None)
                self.look()

    async def _look_on(self) -> None:
        """Time alone can make an overlap one that nobody acted on."""
        while True:
            self.look()
            await asyncio.sleep(_LOOK_S)

    def look(self) -> None:
        """Notes what must not be, as the watches show it now."""
        self._see_overlaps()
        self._see_partial_gangs()

    def held(self) -> dict[Device, set[Key]]:
        """Every device that is allocated, and to whom."""
        holders: defaultdict[Device, set[Key]] = defaultdict(set)
        for key, claim in self.objects[CLAIMS].items():
            for device in devices(claim):
                holders[device].add(key)
        return dict(holders)

    def pools_held_back(self) -> set[tuple[str, str]]:
        """Driver and pool of every rule of the controller."""
        return {
            (selector.get("driver", ""), selector.get("pool", ""))
            for rule in self.objects[TAINT_RULES].values()
            if (selector := rule["spec"].get("deviceSelector"))
        }

    def _see_overlaps(self) -> None:
        now, held, ruled = time.monotonic(), self.held(), self.pools_held_back()
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
            self._judge(overlap, is_ruled=(device.driver, device.pool) in ruled, left=left, now=now)

    def _judge(self, overlap: Overlap, *, is_ruled: bool, left: set[Key], now: float) -> None:
        """A rule within five seconds, and then until the last of the holders is gone."""
        late = now - overlap.since > ACTED_WITHIN_S
        overlap.acted |= is_ruled
        if is_ruled or overlap.reported:
            return
        if overlap.acted or late:
            overlap.reported = True
            what = "was let go" if overlap.acted else f"no rule after {ACTED_WITHIN_S:g} s"
            names = ", ".join(sorted(f"{one.namespace}/{one.name}" for one in left))
            self.found.append(
                f"device {overlap.device.name} of {overlap.device.pool}: held twice, {what}; still held by {names}"
            )

    def _see_partial_gangs(self) -> None:
        for key, claim in self.objects[CLAIMS].items():
            self._has_devices[key.namespace, key.name] = allocated(claim) is not None
        for group, pods in self._groups().items():
            if group in self._whole:
                continue
            wanted = _size(pods)
            bound = [pod for pod in pods if pod["spec"].get("nodeName")]
            given = self._given(group, pods)
            if len(bound) >= wanted or given >= wanted:
                self._whole.add(group)
            elif bound:
                self._judge_partial(group, pods, f"{given} of {wanted} had devices")

    def _given(self, group: tuple[str, str], pods: list[Object]) -> int:
        """How many members have all their devices now, or had when they were deleted."""
        members = self._claims_of.setdefault(group, {})
        members |= {pod["metadata"]["uid"]: claim_names(pod) for pod in pods}
        return sum(
            bool(names) and all(self._has_devices.get((group[0], name)) for name in names)
            for names in members.values()
        )

    def _judge_partial(self, group: tuple[str, str], pods: list[Object], given: str) -> None:
        claims = {(key.namespace, key.name): one for key, one in self.objects[CLAIMS].items()}
        missing = [
            name
            for pod in pods
            for name in claim_names(pod)
            if (claim := claims.get((pod["metadata"]["namespace"], name))) is not None
            and not allocated(claim)
        ]
        if missing:
            self._whole.add(group)
            self.found.append(
                f"gang {'/'.join(group)}: a member is bound, {missing} have no devices; {given}"
            )

    def _groups(self) -> dict[tuple[str, str], list[Object]]:
        """The living members, by namespace and label."""
        found: defaultdict[tuple[str, str], list[Object]] = defaultdict(list)
        for pod in self.objects[PODS].values():
            meta = pod["metadata"]
            if (name := (meta.get("labels") or {}).get(gang.LABEL)) and is_alive(pod):
                found[meta["namespace"], name].append(pod)
        return dict(found)


def devices(claim: Object) -> Iterator[Device]:
    """The devices of an allocation."""
    for one in ((allocated(claim) or {}).get("devices") or {}).get("results") or ():
        yield Device(one["driver"], one["pool"], one["device"])


def allocated(claim: Object) -> Object | None:
    """The allocation of a claim, None without one."""
    found: Object | None = (claim.get("status") or {}).get("allocation")
    return found


def claim_names(pod: Object) -> list[str]:
    """The names of a pod's claims, as far as they were made."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    made = {one["name"]: one.get("resourceClaimName") for one in statuses}
    wanted = pod["spec"].get("resourceClaims") or ()
    names = (one.get("resourceClaimName") or made.get(one["name"]) for one in wanted)
    return [name for name in names if name]


def is_alive(pod: Object) -> bool:
    """Neither ended nor on its way out."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in {"Succeeded", "Failed"} and not pod["metadata"].get("deletionTimestamp")


def _size(pods: list[Object]) -> int:
    annotations = pods[0]["metadata"].get("annotations") or {}
    return int(annotations.get(gang.ANNOTATION_SIZE, len(pods)))


def _key(made: Object) -> Key:
    meta = made["metadata"]
    return Key(meta.get("namespace") or "", meta["name"], meta["uid"])
