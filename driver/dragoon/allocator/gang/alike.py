"""Which nodes are alike to the claims of a gang, whatever their devices are called.

Two nodes with the same likeness give the same answer to every load, with devices at the same
places. Of what selectors read only their verdicts are compared: a text that differs on every node
tells nodes apart only where a selector answers differently. Selectors that cost much are not asked
for that; what they read is compared.
"""

import contextlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoon.allocator.candidates import query_of
from dragoon.allocator.constraints import attribute_of
from dragoon.allocator.gang.offers import Restriction, requests_of
from dragoon.allocator.gang.preference import LINKS
from dragoon.allocator.gang.shapes import Shape
from dragoon.allocator.gang.worth import Usage
from dragoon.allocator.model import Device, DeviceClass, Facts
from dragoon.allocator.nodes import NodeSelectorError, matches
from dragoon.allocator.pools import Pool
from dragoon.allocator.selection import Selector, selector
from dragoon.allocator.usage import UNUSED, PoolUsage
from dragoon.cel import EvaluationError, Read
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
        asked = _compiled(texts)
        self._cheap = tuple(one for one in asked if one.is_cheap)
        self._verdicts: dict[Hashable, tuple[Hashable, ...]] = {}
        self._wanted = _reads(self._cheap)
        self._reads = _reads(one for one in asked if not one.is_cheap)
        self._same = tuple(
            dict.fromkeys(
                one.attribute
                for shape in shapes
                for claim in shape.claims
                for one in claim.constraints
            )
        )
        self._known: dict[Facts, tuple[Hashable, tuple[Any, ...]]] = {}
        self._names: dict[str, _Names] = {}

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
        """What counts of a device, and the values that are only compared with each other."""
        known = self._known.get(facts)
        if known is None:
            names = self._names_for(facts.driver)
            has_same = not names.short.isdisjoint([one.name for one in facts.attributes])
            values = tuple(attribute_of(facts, one) if has_same else None for one in names.same)
            read = _part(facts, names.read)
            known = self._known[facts] = (read, self._verdicts_on(facts, names.wanted)), values
        return known

    def _verdicts_on(self, facts: Facts, wanted: frozenset[str] | None) -> tuple[Hashable, ...]:
        """What the cheap selectors say of a device."""
        part = _part(facts, wanted)
        known = self._verdicts.get(part)
        if known is None:
            known = self._verdicts[part] = tuple(_verdict(one, facts) for one in self._cheap)
        return known

    def _names_for(self, driver: str) -> "_Names":
        known = self._names.get(driver)
        if known is None:
            same = (*self._same, *(f"{driver}/{name}" for name in LINKS))
            short = frozenset((*same, *(one.removeprefix(f"{driver}/") for one in same)))
            read, wanted = (
                _ALL if reads is _ALL else _published(reads, driver)
                for reads in (self._reads, self._wanted)
            )
            known = self._names[driver] = _Names(same, short, read, wanted)
        return known


class _Names(NamedTuple):
    """Of attributes, for one driver.

    same: that are compared with each other. short: under which those may stand. read: by selectors
    that cost much. wanted: by the others.
    """

    same: tuple[str, ...]
    short: frozenset[str]
    read: frozenset[str] | None
    wanted: frozenset[str] | None


def _part(facts: Facts, names: frozenset[str] | None) -> Hashable:
    """A device without the other attributes."""
    if names is _ALL:
        return facts
    return (
        facts.driver,
        facts.multiple,
        facts.unreadable,
        tuple([one for one in facts.attributes if one.name in names]),
        facts.capacity,
        facts.binds_to_node,
    )


def _verdict(asked: Selector, facts: Facts) -> Hashable:
    """What a selector says of a device, or why it fails on it."""
    try:
        return asked.matches(facts, free=True)
    except EvaluationError as error:
        return error.message


def _compiled(texts: Iterable[str]) -> list[Selector]:
    """Selectors that compile: the others fail on every device alike."""
    found: list[Selector] = []
    for text in texts:
        with contextlib.suppress(DragoonError):
            found.append(selector(text))
    return found


def _reads(selectors: Iterable[Selector]) -> frozenset[Read] | None:
    """What selectors read together."""
    found: frozenset[Read] = frozenset()
    for one in selectors:
        if one.program.reads is None:
            return _ALL
        found |= one.program.reads
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
