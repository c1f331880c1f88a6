"""The verifier's view of raw objects: which device is where, and on which nodes it can be used."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spot:
    """A device in its slice."""

    slice: Raw
    device: Raw

    @property
    def driver(self) -> str:
        """The driver of the slice."""
        return str(self.slice["spec"]["driver"])

    @property
    def pool(self) -> tuple[str, str]:
        """Driver and pool."""
        return self.driver, str(self.slice["spec"]["pool"]["name"])

    @property
    def name(self) -> str:
        """Driver, pool and device."""
        return "/".join((*self.pool, self.device["name"]))

    @property
    def place(self) -> Raw:
        """What says on which nodes the device can be used: its own selection or its slice's."""
        spec: Raw = self.slice["spec"]
        return self.device if spec.get("perDeviceNodeSelection") else spec


class World:
    """The raw objects by name."""

    def __init__(
        self, classes: Iterable[Raw], slices: Iterable[Raw], node: Raw, taint_rules: Iterable[Raw]
    ) -> None:
        self.classes = {one["metadata"]["name"]: one for one in classes}
        self.node = node
        self._rules = tuple(taint_rules)
        self._pools: dict[tuple[str, str], list[Raw]] = {}
        for one in slices:
            self._pools.setdefault(Spot(one, {}).pool, []).append(one)
        self._spots = {spot.name: spot for pool in self._pools for spot in self.of_pool(pool)}

    def find(self, result: Raw) -> Spot | None:
        """The device of a result, in a usable pool; None if there is none."""
        return self._spots.get(name_of(result))

    def spots(self) -> Iterable[Spot]:
        """The devices of all usable pools that can be used on the node."""
        return filter(self.is_here, self._spots.values())

    def of_pool(self, pool: tuple[str, str]) -> list[Spot]:
        """The devices of a pool on all nodes; none where it is not complete or not valid."""
        slices = self.slices_of(pool)
        here = [one for one in slices if self._has_devices(one)]
        counts = {one["spec"]["pool"]["resourceSliceCount"] for one in here}
        if counts != {len(slices)}:
            return []
        newest = max(map(_generation, self._pools[pool]))
        if len(here) not in counts and newest > _generation(here[0]):
            return []
        names = [spot.name for spot in _spots(here)]
        # Devices of other nodes may have the same names: those of this node come last and stay.
        return (
            _spots(sorted(slices, key=self._has_devices)) if len(set(names)) == len(names) else []
        )

    def slices_of(self, pool: tuple[str, str]) -> list[Raw]:
        """The slices of the pool's generation that count: the newest that has any for this node.

        Where those for this node are enough, what other nodes have under its name is not asked.
        """
        known = [one for one in self._pools[pool] if not _has_groups(one)]
        newest = max((_generation(one) for one in known if self._has_devices(one)), default=-1)
        same = [one for one in known if _generation(one) == newest]
        here = [one for one in same if self._has_devices(one)]
        counts = {one["spec"]["pool"]["resourceSliceCount"] for one in here}
        return here if counts == {len(here)} else same

    def is_here(self, spot: Spot) -> bool:
        """Whether the device can be used on the node."""
        return admits(spot.place, self.node)

    def taints(self, spot: Spot) -> Iterator[Raw]:
        """The device's taints, also those of rules."""
        yield from spot.device.get("taints") or ()
        for rule in self._rules:
            selector = rule["spec"].get("deviceSelector")
            if selector is not None and all(
                selector.get(key) in {None, value}
                for key, value in (
                    ("driver", spot.driver),
                    ("pool", spot.pool[1]),
                    ("device", spot.device["name"]),
                )
            ):
                yield rule["spec"]["taint"]

    def _has_devices(self, one: Raw) -> bool:
        if not one["spec"].get("perDeviceNodeSelection"):
            return admits(one["spec"], self.node)
        return any(admits(device, self.node) for device in one["spec"].get("devices") or ())


def _spots(slices: Iterable[Raw]) -> list[Spot]:
    return [Spot(one, device) for one in slices for device in one["spec"].get("devices") or ()]


def _has_groups(one: Raw) -> bool:
    """Compatibility groups: kube-scheduler ignores such a slice."""
    return any(
        consumption.get("compatibilityGroups")
        for device in one["spec"].get("devices") or ()
        for consumption in device.get("consumesCounters") or ()
    )


def name_of(result: Raw) -> str:
    """Driver, pool and device of a result."""
    return f"{result['driver']}/{result['pool']}/{result['device']}"


def admits(place: Raw, node: Raw) -> bool:
    """Whether nodeName, allNodes or nodeSelector of a place admit the node."""
    if place.get("nodeName"):
        return bool(place["nodeName"] == node["metadata"]["name"])
    if place.get("allNodes"):
        return True
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    for term in (place.get("nodeSelector") or {}).get("nodeSelectorTerms") or ():
        wanted = [(labels, one) for one in term.get("matchExpressions") or ()]
        wanted += [(fields, one) for one in term.get("matchFields") or ()]
        if wanted and all(_holds(found.get(one["key"]), one) for found, one in wanted):
            return True
    return False


def _holds(value: str | None, requirement: Raw) -> bool:
    operator: str = requirement["operator"]
    values: list[str] = list(requirement.get("values") or ())
    if operator in {"NotIn", "DoesNotExist"}:
        return value is None or (operator == "NotIn" and value not in values)
    if value is None:
        return False
    if operator in {"Gt", "Lt"}:
        try:
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
        except ValueError:
            return False
    return operator == "Exists" or value in values


def _generation(one: Raw) -> int:
    return int(one["spec"]["pool"].get("generation") or 0)
