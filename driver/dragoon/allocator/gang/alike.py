"""Which nodes are alike to the claims of a gang, whatever their devices are called.

Two nodes with the same likeness give the same answer to every load, with devices at the same
places. Only what selectors and constraints read is compared: a UUID tells nodes apart only where a
selector reads it.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

from dragoon.allocator.candidates import query_of
from dragoon.allocator.constraints import attribute_of
from dragoon.allocator.gang.offers import Restriction, requests_of
from dragoon.allocator.gang.preference import LINKS
from dragoon.allocator.gang.shapes import Shape
from dragoon.allocator.gang.worth import Usage
from dragoon.allocator.model import Device, DeviceClass, Facts
from dragoon.allocator.nodes import NodeSelectorError, matches
from dragoon.allocator.pools import Pool
from dragoon.allocator.selection import selector
from dragoon.allocator.usage import UNUSED, PoolUsage
from dragoon.cel import Read
from dragoon.errors import DragoonError

_ALL: Final = None
"""A selector may read everything."""


class Likeness:
    """Compares nodes for the claims of some shapes. Mutable: it remembers devices that are alike.

    texts: further selectors that may tell devices apart.
    """

    def __init__(
        self,
        shapes: Iterable[Shape],
        classes: Mapping[str, DeviceClass],
        texts: Iterable[str] = (),
    ) -> None:
        requests = [one for shape in shapes for one in requests_of(shape.claims)]
        texts = dict.fromkeys(texts)
        for request in requests:
            if request.class_name in classes:
                query = query_of(request, classes[request.class_name].selectors)
                texts |= dict.fromkeys((*query.of_class, *query.of_request))
        self._reads = _reads(texts)
        self._same = tuple(
            dict.fromkeys(
                one.attribute
                for shape in shapes
                for claim in shape.claims
                for one in claim.constraints
            )
        )
        self._known: dict[Facts, tuple[Hashable, tuple[Any, ...]]] = {}
        self._names: dict[str, tuple[tuple[str, ...], frozenset[str], frozenset[str] | None]] = {}

    def of(
        self, pools: Sequence[Pool], usage: Usage, restrictions: Sequence[Restriction]
    ) -> Hashable:
        """Equal for nodes with these pools that are alike."""
        values: dict[Any, int] = {}
        return tuple(
            self._of_pool(pool, usage.get(pool.id, UNUSED), values, restrictions) for pool in pools
        )

    def _of_pool(
        self,
        pool: Pool,
        usage: PoolUsage,
        values: dict[Any, int],
        restrictions: Sequence[Restriction],
    ) -> Hashable:
        if pool.problem:
            return (pool.id.driver, "")
        counters = pool.counters
        left = () if counters is None else tuple(usage.slack(counters).left.items())
        devices: list[Hashable] = []
        for slice_, device in pool.devices():
            read, same = self._of_facts(device.facts)
            devices.append(
                (
                    read,
                    tuple(
                        None if one is None else values.setdefault((at, one), len(values))
                        for at, one in enumerate(same)
                    ),
                    device.counters,
                    pool.taints(device),
                    device.name in usage.exclusive,
                    tuple(usage.consumed(device.name).items())
                    if device.name in usage.shared
                    else None,
                    slice_.nodes is not None or _is_here(device, pool),
                    all(one.allows(device.facts) for one in restrictions),
                )
            )
        return (pool.id.driver, left, tuple(devices))

    def _of_facts(self, facts: Facts) -> tuple[Hashable, tuple[Any, ...]]:
        """What is read of a device, and the values that are only compared with each other."""
        known = self._known.get(facts)
        if known is None:
            same, short, read = self._names_for(facts.driver)
            names = [one.name for one in facts.attributes]
            has_same = not short.isdisjoint(names)
            values = tuple(attribute_of(facts, one) if has_same else None for one in same)
            known = self._known[facts] = (
                facts
                if read is _ALL
                else (
                    facts.driver,
                    facts.multiple,
                    facts.unreadable,
                    tuple([one for one in facts.attributes if one.name in read]),
                    facts.capacity,
                    facts.binds_to_node,
                ),
                values,
            )
        return known

    def _names_for(
        self, driver: str
    ) -> tuple[tuple[str, ...], frozenset[str], frozenset[str] | None]:
        """Attributes that are compared, the names under which they may stand, those read."""
        known = self._names.get(driver)
        if known is None:
            same = (*self._same, *(f"{driver}/{name}" for name in LINKS))
            short = frozenset((*same, *(one.removeprefix(f"{driver}/") for one in same)))
            read = _ALL if self._reads is _ALL else _published(self._reads, driver)
            known = self._names[driver] = same, short, read
        return known


def _reads(texts: Iterable[str]) -> frozenset[Read] | None:
    """What selectors read together; one that does not compile reads nothing."""
    found: frozenset[Read] = frozenset()
    for text in texts:
        try:
            reads = selector(text).program.reads
        except DragoonError:
            continue
        if reads is None:
            return _ALL
        found |= reads
    return found


def _published(wanted: frozenset[Read], driver: str) -> frozenset[str]:
    """The names under which a driver may publish the attributes that are read."""
    names = {f"{domain}/{name}" for _, domain, name in wanted}
    return frozenset(names | {name for _, domain, name in wanted if domain == driver})


def _is_here(device: Device, pool: Pool) -> Hashable:
    try:
        return device.nodes is not None and matches(device.nodes, pool.node)
    except NodeSelectorError as error:
        return error.message
