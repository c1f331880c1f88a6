"""A snapshot as the allocator takes it, and copies of it in which some claims hold nothing.

One object that cannot be read is noted and left out; the others count.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from dragoon.allocator import Answer, ClusterState, Snapshot, allocate_on, allocate_over, verify
from dragoon.diagnose.documents import Origin, shown
from dragoon.diagnose.linting import shapes
from dragoon.diagnose.manifests import Item, Raw, listed, mapping, text
from dragoon.diagnose.snapshot import ClusterSnapshot, identity
from dragoon.errors import DragoonError, InvalidInputError

_PoolKey = tuple[str, str]
_SHARES: Final = 0xD4A600 << 104
"""Where made-up share IDs begin: random ones are elsewhere."""
ATTEMPTS: Final = 20_000
"""Devices tried before a question about a copy is given up: some tenths of a second."""


class Cluster:
    """Asks the allocator about a snapshot. Mutable only while claims are set aside.

    problems: objects that were left out, and why. nodes: in the order of their names.
    """

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self.problems: list[str] = []
        self._state = ClusterState()
        self._shares = 0
        self.snapshot = snapshot.replacing(
            classes=self._readable(self._put_class, snapshot.classes),
            slices=self._readable(self._put_slice, snapshot.slices),
            taint_rules=self._readable(self._state.put_rule, snapshot.taint_rules),
            claims=self._readable(self._state.put_claim, snapshot.claims),
            nodes=self._readable(_check_node, snapshot.nodes),
        )
        self._view = self._state.snapshot()
        self._raw = _RawIndex(self.snapshot)
        nodes = self.snapshot.nodes or self._raw.named_nodes()
        self.nodes = tuple(sorted(nodes, key=lambda one: identity(one)[1]))

    @property
    def view(self) -> Snapshot:
        """What the allocator decides on, as it is now."""
        return self._view

    def allocate_over(self, claims: Sequence[Raw], nodes: Iterable[Raw]) -> Iterator[Answer]:
        """What the allocator says of claims on each node in turn. Raises as the allocator does."""
        return allocate_over(self._view, claims, nodes, share_ids=self._share_id)

    def allocate_without(
        self,
        claims: Sequence[Raw],
        node: Raw,
        gone: Sequence[Raw],
        *,
        attempts: int = ATTEMPTS,
    ) -> Answer:
        """What it says on one node of a copy in which some claims hold nothing.

        attempts: devices tried before it gives up. Raises as the allocator does.
        """
        try:
            for one in gone:
                self._state.put_claim(released(one))
            view = self._state.snapshot()
        finally:
            for one in gone:
                self._state.put_claim(one)
        return allocate_on(view, claims, node, attempts=attempts, share_ids=self._share_id)

    def verify(
        self,
        claims: Sequence[Raw],
        allocations: Sequence[Raw],
        node: Raw,
        gone: Sequence[Raw] = (),
    ) -> list[str]:
        """What the allocator's verifier finds wrong with allocations, without some claims."""
        names = {identity(one) for one in gone}
        return verify(
            [_asking(one) for one in claims],
            allocations,
            classes=self.snapshot.classes,
            slices=self.slices(node),
            allocated_claims=[one for one in self.holders(node) if identity(one) not in names],
            node=node,
            taint_rules=self.snapshot.taint_rules,
        )

    def holders(self, node: Raw) -> list[Raw]:
        """The claims that hold devices of pools that this node has, by namespace and name."""
        return self._raw.holders(identity(node)[1])

    def slices(self, node: Raw) -> list[Raw]:
        """All slices of the pools that this node has."""
        return self._raw.slices(identity(node)[1])

    def with_claim(self, claim: Raw) -> None:
        """The claim is there from now on, as what simulate has placed."""
        self._state.put_claim(claim)
        self._view = self._state.snapshot()
        self._raw.add(claim)

    def _share_id(self) -> str:
        """Share IDs that are the same in every run: nothing is written with them."""
        self._shares += 1
        return str(UUID(int=_SHARES + self._shares, version=4))

    def _readable(self, put: Callable[[Raw], Any], objects: Iterable[Raw]) -> tuple[Raw, ...]:
        """Those that the allocator takes; the others are noted."""
        taken: list[Raw] = []
        for raw in objects:
            try:
                put(raw)
                taken.append(raw)
            except DragoonError as error:
                self.problems.append(error.message)
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                # The records are made for what an API server has checked; a file has anything.
                name = "/".join(filter(None, identity(raw)))
                kind = text(raw.get("kind"))
                self.problems.append(f"{kind} {name} cannot be read: {type(error).__name__}")
        return tuple(taken)

    def _put_class(self, raw: Raw) -> None:
        _check(raw, "metadata.name", [mapping(raw.get("metadata")).get("name")], str)
        for found in shapes.check(Item(Origin(""), {**raw, "kind": "DeviceClass"}, "")):
            raise InvalidInputError(f"{found.object}: {found.path}: found {found.found}")
        self._state.put_class(raw)

    def _put_slice(self, raw: Raw) -> None:
        spec = mapping(raw.get("spec"))
        names = [
            spec.get("driver"),
            mapping(spec.get("pool")).get("name"),
            spec.get("nodeName", ""),
        ]
        names += [mapping(one).get("name") for one in listed(spec.get("devices"))]
        _check(raw, "names of driver, pool, node and devices", names, str)
        self._state.put_slice(raw)


def _check_node(raw: Raw) -> None:
    metadata = mapping(raw.get("metadata"))
    _check(raw, "metadata.name", [metadata.get("name")], str)
    _check(raw, "metadata.labels", [metadata.get("labels") or {}], dict)


def _check(raw: Raw, what: str, found: list[Any], kind: type) -> None:
    """Raises InvalidInputError for a value on which the allocator relies without looking."""
    wrong = [one for one in found if not isinstance(one, kind)]
    if wrong:
        name = f"{text(raw.get('kind'))} {identity(raw)[1]}"
        allowed = "text" if kind is str else "an object"
        raise InvalidInputError(f"{name}: {what}: found {shown(wrong[0])}, allowed is {allowed}")


class _RawIndex:
    """Raw slices and claims by pool, and pools by node."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._pools: dict[_PoolKey, list[Raw]] = {}
        for one in snapshot.slices:
            self._pools.setdefault(_pool(one), []).append(one)
        self._local: dict[str, list[_PoolKey]] = {}
        self._wide: list[_PoolKey] = []
        for pool, slices in self._pools.items():
            names = {text(mapping(one.get("spec")).get("nodeName")) for one in slices}
            if "" in names:
                self._wide.append(pool)
            for name in names - {""}:
                self._local.setdefault(name, []).append(pool)
        self._held: dict[_PoolKey, dict[tuple[str, str], Raw]] = {}
        for claim in snapshot.claims:
            self.add(claim)

    def add(self, claim: Raw) -> None:
        for result in results(claim):
            pool = text(result.get("driver")), text(result.get("pool"))
            self._held.setdefault(pool, {})[identity(claim)] = claim

    def named_nodes(self) -> tuple[Raw, ...]:
        """Nodes by name alone, for a snapshot that has slices of them and no Node objects."""
        return tuple({"metadata": {"name": name}} for name in self._local)

    def slices(self, node: str) -> list[Raw]:
        return [one for pool in self._pools_of(node) for one in self._pools[pool]]

    def holders(self, node: str) -> list[Raw]:
        found: dict[tuple[str, str], Raw] = {}
        for pool in self._pools_of(node):
            found |= self._held.get(pool, {})
        return [found[name] for name in sorted(found)]

    def _pools_of(self, node: str) -> list[_PoolKey]:
        return list(dict.fromkeys((*self._local.get(node, ()), *self._wide)))


def _asking(claim: Raw) -> Raw:
    """The claim with the lists that the verifier reads, also where it asks for nothing."""
    spec = mapping(claim.get("spec"))
    return {**claim, "spec": {"devices": {"requests": [], **mapping(spec.get("devices"))}}}


def results(claim: Raw) -> list[Raw]:
    """The results of a claim's allocation, none if it has none."""
    allocation = mapping(mapping(claim.get("status")).get("allocation"))
    return [mapping(one) for one in listed(mapping(allocation.get("devices")).get("results"))]


def released(claim: Raw) -> Raw:
    """A copy of the claim without its allocation."""
    status = {k: v for k, v in mapping(claim.get("status")).items() if k != "allocation"}
    return {**claim, "status": status}


def _pool(slice_: Raw) -> _PoolKey:
    spec = mapping(slice_.get("spec"))
    return text(spec.get("driver")), text(mapping(spec.get("pool")).get("name"))
