"""The nodes as the shapes of a gang see them: where a shape may be, and what is left there."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dragoon.allocator.constraints import attribute_of
from dragoon.allocator.gang import fit
from dragoon.allocator.gang.alike import Likeness
from dragoon.allocator.gang.fragments import Value
from dragoon.allocator.gang.mix import COUNTED
from dragoon.allocator.gang.model import Amounts, GangAsk, NodeFacts, PlacementSnapshot
from dragoon.allocator.gang.offers import Offers, Restriction
from dragoon.allocator.gang.preference import LINKS, link_of
from dragoon.allocator.gang.seats import EMPTY, Limits, Load, Seats, added
from dragoon.allocator.gang.shapes import Shape, allocated_selectors
from dragoon.allocator.gang.valuing import Valuation
from dragoon.allocator.gang.worth import Usage
from dragoon.allocator.model import Node, PoolId
from dragoon.allocator.nodes import NodeSelectorError
from dragoon.allocator.pools import Pool
from dragoon.api.gang import Level

MOST_BINS: Final = 65_536
"""Nodes that are looked at anew because only some devices of them may be used: some four seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Area:
    """Nodes that may be used, and which of their devices."""

    nodes: tuple[NodeFacts, ...]
    restrictions: tuple[Restriction, ...] = ()


@dataclass(slots=True, eq=False)
class Bin:
    """A node during one attempt. Mutable: load and left follow what is placed on it.

    takes: per shape whether the node takes it, room apart. kind: equal for nodes that are alike in
    everything. clique: the fabric clique of its devices, None without one. home: members of the
    gang that have their place are here. beside: what is left of resources that the gang takes
    nothing of.
    """

    node: NodeFacts
    seats: Seats
    takes: tuple[bool, ...]
    left: dict[str, int]
    kind: Hashable
    clique: Any
    home: bool
    beside: Mapping[str, int]
    load: Load = EMPTY

    @property
    def is_used(self) -> bool:
        """Whether the gang has anything here."""
        return self.home or bool(self.load)

    def room(self, shape: Shape, most: int) -> int:
        """How many more blocks of the shape it takes, at most that many."""
        if not self.takes[shape.number]:
            return 0
        if shape.pods:
            most = min(most, self.left[fit.PODS] // shape.pods)
        for name, amount in shape.requests.items():
            if amount > 0:
                most = min(most, self.left.get(name, 0) // amount)
        return self.seats.room(self.load, shape.number, most) if most > 0 else 0

    def cost(self, shape: Shape, count: int) -> Value:
        """What more blocks of the shape cost where there is room: what is lost, what stays free."""
        before = self.seats.value(self.load, {**self.beside, **self.left})
        self.add(shape, count)
        after = self.seats.value(self.load, {**self.beside, **self.left})
        self.add(shape, -count)
        return Value(after.loss - before.loss, after.free)

    def add(self, shape: Shape, count: int) -> None:
        """Places blocks of the shape; a negative count takes them back."""
        self.load = tuple(one for one in added(self.load, shape.number, count) if one[1])
        self.left[fit.PODS] -= shape.pods * count
        for name, amount in shape.requests.items():
            self.left[name] = self.left.get(name, 0) - amount * count


@dataclass(frozen=True, slots=True, eq=False)
class _Site:
    """What is worked out once for a node."""

    facts: NodeFacts
    pools: tuple[Pool, ...]
    takes: tuple[bool, ...]
    left: Amounts
    values: dict[str, frozenset[Any]] = field(default_factory=dict)


class Terrain:
    """All usable nodes of a snapshot for the shapes of one ask. Mutable: it remembers.

    has_floating: the shapes could have devices that several nodes offer. is_cut: there were more
    parts of the cluster than may be looked at.
    """

    def __init__(
        self, snapshot: PlacementSnapshot, ask: GangAsk, shapes: Sequence[Shape], limits: Limits
    ) -> None:
        self.shapes = shapes
        self.limits = limits
        self._cluster = snapshot.cluster
        self._usage: Usage = snapshot.cluster.usage
        classes = snapshot.cluster.classes
        self._valuation = Valuation(snapshot.mix, classes) if snapshot.mix else None
        texts = () if self._valuation is None else self._valuation.texts
        self._likeness = Likeness(shapes, classes, texts)
        self._seats: dict[Hashable, Seats] = {}
        self._demand: dict[str, int] = {fit.PODS: 0}
        for shape in shapes:
            count = len(shape.blocks)
            self._demand[fit.PODS] += count * shape.pods
            for name, amount in shape.requests.items():
                self._demand[name] = self._demand.get(name, 0) + count * amount
        self._homes = {member.node for member in ask.members if member.node}
        self._first: dict[str, frozenset[str]] = {}
        for slot in (member.slot for member in ask.members if not member.node):
            if slot is not None:
                names = frozenset(one.device for one in slot.devices)
                self._first[slot.node] = self._first.get(slot.node, frozenset()) | names
        self._sites: dict[str, _Site] = {}
        self._made: dict[tuple[str, tuple[Restriction, ...]], Bin] = {}
        self._opened: set[tuple[Restriction, ...]] = set()
        self._left = MOST_BINS
        self.is_cut = False
        for node in sorted(snapshot.nodes, key=lambda one: one.name):
            if node.name not in ask.excluded:
                self._add(node)
        floating = frozenset(self._cluster.floating)
        self.has_floating = bool(floating) and self._wants_any(floating)
        if floating and not self.has_floating:
            self._drop(floating)

    @property
    def all(self) -> Area:
        """Every node that takes any of the shapes."""
        return Area(tuple(site.facts for site in self._sites.values()))

    def bins(self, area: Area) -> list[Bin]:
        """Fresh bins for the nodes of an area, by name."""
        return [self._fresh(node.name, area.restrictions) for node in area.nodes]

    def alone(self, one: Bin) -> Bin:
        """The bin with its load when nobody else holds devices there."""
        return replace(one, seats=self._alone(one), left=dict(one.left))

    def emptied(self, one: Bin) -> Bin:
        """The bin without a load when nobody else is there."""
        facts = replace(one.node, used={}, pods=0)
        return replace(one, seats=self._alone(one), left=dict(fit.free(facts)), load=EMPTY)

    def _alone(self, one: Bin) -> Seats:
        return self._seats_of(one.node.name, one.seats.offers.restrictions, {})

    def offers(self, name: str, restrictions: tuple[Restriction, ...]) -> Offers:
        """What a node offers."""
        site = self._sites[name]
        return Offers(
            _node(site.facts),
            site.pools,
            self._cluster.classes,
            restrictions=restrictions,
            first=self._first.get(name, frozenset()),
            valuation=self._valuation,
        )

    @property
    def is_settling(self) -> bool:
        """Whether a pool is being updated, so that nobody knows yet what it will have."""
        pools = (pool for site in self._sites.values() for pool in site.pools)
        return any(pool.problem and not pool.invalid for pool in pools)

    def site_pools(self, name: str) -> tuple[Pool, ...]:
        """The pools of a node."""
        return self._sites[name].pools

    def groups(self, area: Area, level: Level) -> dict[Any, Area]:
        """The area by the values of a level; nodes without one are in no group of a label.

        A node can be in several groups of a device attribute, with different devices. None of those
        that are more than may be looked at: users choose levels, and every card has a UUID.
        """
        nodes: dict[Any, list[NodeFacts]] = {}
        if level.node_label:
            for node in area.nodes:
                value = node.labels.get(level.node_label)
                if value is not None:
                    nodes.setdefault(value, []).append(node)
            return {
                value: Area(tuple(found), area.restrictions)
                for value, found in sorted(nodes.items())
            }
        for node in area.nodes:
            for value in self.values(node, level.attribute):
                nodes.setdefault(value, []).append(node)
        nothing = (*area.restrictions, Restriction(level.attribute, frozenset()))
        free = Area(area.nodes, nothing)
        if not self._opens(free):
            return {}
        # Members that need no such device can be anywhere.
        anywhere = any(one.room(shape, 1) for one in self.bins(free) for shape in self.shapes)
        groups: dict[Any, Area] = {}
        for value, found in sorted(nodes.items(), key=lambda one: str(one[0])):
            only = Restriction(level.attribute, frozenset((value,)))
            here = area.nodes if anywhere else tuple(found)
            group = Area(here, (*area.restrictions, only))
            if not self._opens(group):
                return groups
            groups[value] = group
        return groups or {"": free}

    def _opens(self, area: Area) -> bool:
        """Whether the nodes of an area may be looked at under its restrictions."""
        if area.restrictions not in self._opened:
            if len(area.nodes) > self._left:
                self.is_cut = True
                return False
            self._opened.add(area.restrictions)
            self._left -= len(area.nodes)
        return True

    def values(self, node: NodeFacts, attribute: str) -> frozenset[Any]:
        """The values of an attribute that the devices of a node have."""
        site = self._sites[node.name]
        if attribute not in site.values:
            found = (
                attribute_of(device.facts, attribute)
                for pool in site.pools
                for _, device in pool.devices()
            )
            site.values[attribute] = frozenset(one[1] for one in found if one and one[0])
        return site.values[attribute]

    def _wants_any(self, floating: frozenset[PoolId]) -> bool:
        """Whether the shapes could have devices of these pools on any node."""
        seen: set[Any] = set()
        for site in self._sites.values():
            for pool in site.pools:
                if pool.id not in floating or pool.slices in seen:
                    continue
                if all(one.nodes is not None for one in pool.slices):
                    seen.add(pool.slices)  # They have the same devices on every node.
                offers = Offers(_node(site.facts), (pool,), self._cluster.classes)
                if any(offers.has_any(shape.claims) for shape in self.shapes):
                    return True
        return False

    def _drop(self, pools: frozenset[PoolId]) -> None:
        """Forgets pools of which nothing is wanted; one with a problem still stops `All`."""
        for name, site in self._sites.items():
            kept = tuple(one for one in site.pools if one.problem or one.id not in pools)
            self._sites[name] = replace(site, pools=kept)

    def _add(self, node: NodeFacts) -> None:
        takes = tuple(_takes(shape, node) for shape in self.shapes)
        if not any(takes):
            return
        try:
            pools = self._cluster.site(_node(node)).pools
        except NodeSelectorError:
            return  # kube-scheduler ends its attempt here, too.
        left = fit.free(node)
        self._sites[node.name] = _Site(node, pools, takes, left)

    def _fresh(self, name: str, restrictions: tuple[Restriction, ...]) -> Bin:
        made = self._made.get((name, restrictions))
        if made is None:
            made = self._made[name, restrictions] = self._bin(name, restrictions)
        return replace(made, left=dict(made.left))

    def _bin(self, name: str, restrictions: tuple[Restriction, ...]) -> Bin:
        site = self._sites[name]
        seats = self._seats_of(name, restrictions, self._usage)
        left = {one: site.left.get(one, 0) for one in self._demand}
        # More than all of them want together is as good as that.
        enough = tuple(min(left[one], self._demand[one]) for one in left)
        clique, home = self._clique(site), name in self._homes
        kind = id(seats), site.takes, enough, clique, home
        beside = {one: site.left[one] for one in COUNTED if one in site.left and one not in left}
        return Bin(site.facts, seats, site.takes, left, kind, clique, home, beside)

    def _seats_of(self, name: str, restrictions: tuple[Restriction, ...], usage: Usage) -> Seats:
        """The seats of all nodes that are like this one."""
        pools, first = self._sites[name].pools, self._first.get(name, frozenset())
        likeness = (self._likeness.of(pools, usage, restrictions), first)
        seats = self._seats.get(likeness)
        if seats is None:
            offers = self.offers(name, restrictions)
            seats = self._seats[likeness] = Seats(offers, usage, self.shapes, self.limits)
        return seats

    def _clique(self, site: _Site) -> Any:
        for pool in site.pools:
            for _, device in pool.devices():
                value = link_of(device.facts, LINKS[1])
                if value is not None:
                    return value
        return None


def _node(facts: NodeFacts) -> Node:
    return Node(facts.name, facts.labels)


def _takes(shape: Shape, node: NodeFacts) -> bool:
    return all(
        not fit.refusal(member, node)
        and all(fit.admits(one, node.name, node.labels) for one in allocated_selectors(member))
        for member in shape.members
    )
