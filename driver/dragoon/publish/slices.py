"""Devices as the ResourceSlices of one pool, `<node>/gpu`. Pure.

The allocator reads slices in the order of their names, so names begin with their index. A pool
has at least one slice, possibly empty: it says that the driver is here and there is no GPU. What
devices consume stands in slices of its own, before theirs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from dragoon.api import limits
from dragoon.errors import ConfigError
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.gpu.topology import nvlink_domains
from dragoon.kube.port import NODES, SLICES, Object
from dragoon.publish import domains
from dragoon.publish.card import Division
from dragoon.publish.choosing import Wishes
from dragoon.publish.device import CounterSet, Device
from dragoon.publish.devices import build

FIRST_GENERATION: Final = 1

DEVICES_PER_SLICE: Final = limits.DEVICES_PER_DETAILED_SLICE
"""Always the lower limit: a first taint must not move devices to other slices."""

_PREFIX_BYTES: Final = 57
"""The server keeps 58 bytes of a generateName, and refuses one that is too long for a name."""

_INDEX: Final = re.compile(r"([0-9a-f]{5,})-", re.ASCII)
_POOL_SUFFIX: Final = "/gpu"


@dataclass(frozen=True, slots=True)
class Pool:
    """Whose slices these are. node_uid is empty where no Node object is known (the CLI)."""

    driver: str
    node: str
    node_uid: str = ""

    @property
    def name(self) -> str:
        return self.node + _POOL_SUFFIX

    @property
    def owners(self) -> list[Object]:
        """The Node as controlling owner: its slices go when it goes."""
        if not self.node_uid:
            return []
        return [
            {
                "apiVersion": NODES.api_version,
                "kind": NODES.kind,
                "name": self.node,
                "uid": self.node_uid,
                "controller": True,
            }
        ]


def check_node_name(node: str) -> str:
    """Returns the name of a node, or raises ConfigError where it cannot be in a pool's name."""
    limit = limits.POOL_NAME_BYTES - len(_POOL_SUFFIX)
    if not limits.is_subdomain(node, limit):
        raise ConfigError(
            f"node name: found {node!r} ({len(node)} characters), allowed is a lower-case DNS "
            f"subdomain of at most {limit} characters",
            hint="give the name of the Node object",
        )
    return node


def pack(devices: Sequence[Device]) -> tuple[tuple[Device, ...], ...]:
    """The devices of each slice, in the given order; the MIG devices of one card stay together."""
    parts: list[list[Device]] = [[]]
    for group in _groups(devices):
        fits = len(parts[-1]) + len(group) <= DEVICES_PER_SLICE
        if not fits and len(group) <= DEVICES_PER_SLICE and parts[-1]:
            parts.append([])
        for device in group:
            if len(parts[-1]) == DEVICES_PER_SLICE:
                parts.append([])
            parts[-1].append(device)
    return tuple(map(tuple, parts))


def parts(devices: Sequence[Device], counter_sets: Sequence[CounterSet] = ()) -> tuple[Object, ...]:
    """The content of each slice of a pool, at least one: `sharedCounters` first, then `devices`."""
    size = limits.COUNTER_SETS_PER_SLICE
    sets = [counter_sets[at : at + size] for at in range(0, len(counter_sets), size)]
    return (
        *({"sharedCounters": [one.raw() for one in part]} for part in sets),
        *({"devices": [device.raw() for device in part]} for part in pack(devices)),
    )


def spec(pool: Pool, content: Object, *, count: int, generation: int) -> Object:
    """The spec of one slice of a pool of `count` slices. content: one of `parts`."""
    return {
        "driver": pool.driver,
        "nodeName": pool.node,
        "pool": {"name": pool.name, "generation": generation, "resourceSliceCount": count},
        **content,
    }


def _groups(devices: Sequence[Device]) -> Iterator[tuple[Device, ...]]:
    """Devices in a row that draw from one counter set; one alone where there is none."""

    def key(numbered: tuple[int, Device]) -> str | int:
        number, device = numbered
        return number if device.consumes is None else device.consumes.name

    for _, group in groupby(enumerate(devices), key):
        yield tuple(device for _, device in group)


def new(pool: Pool, index: int, spec_: Object) -> Object:
    """A slice to be created; the server completes its name."""
    owners = {"ownerReferences": pool.owners} if pool.owners else {}
    prefix = f"{index:05x}-{pool.driver}-{pool.node}"[:_PREFIX_BYTES].rstrip("-.")
    return {
        "apiVersion": SLICES.api_version,
        "kind": SLICES.kind,
        "metadata": {"generateName": f"{prefix}-", **owners},
        "spec": spec_,
    }


def index_of(slice_: Mapping[str, Any]) -> int | None:
    """The index in a slice's name, None where it has none of ours."""
    found = _INDEX.match(slice_["metadata"]["name"])
    return None if found is None else int(found[1], 16)


def render(
    inventory: Inventory,
    *,
    node: str,
    driver: str,
    wishes: Wishes | None = None,
    divisions: Mapping[PciAddress, Division] | None = None,
    previous_domains: Mapping[PciAddress, str] | None = None,
) -> tuple[Object, ...]:
    """The slices that a node with these GPUs publishes first, without a Node as owner.

    wishes, divisions: as in `devices.build`. previous_domains: the values of nvlinkDomain before,
    of which members keep theirs. Raises ConfigError for a name that no Node can have.
    """
    pool = Pool(driver, check_node_name(node))
    groups = nvlink_domains(inventory.gpus)
    values = domains.assign(groups, node=node, previous=previous_domains or {})
    built = build(inventory, wishes=wishes, divisions=divisions, domains=values)
    found = parts(built.devices, built.counter_sets)
    return tuple(
        new(pool, index, spec(pool, part, count=len(found), generation=FIRST_GENERATION))
        for index, part in enumerate(found)
    )
