"""The named holder of a cluster's slices, claims, classes and taint rules, kept up by events.

Raw objects are decoded once into shared records and dropped. A snapshot costs nothing but the
references to what it shows; what is changed afterwards is copied first. What we write ourselves is
seen by the next decision before any watch shows it (case C37): `assume` when the write starts,
`confirm` with the answer of the API server, `forget` when the write failed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from dragoon.allocator.claims import class_view
from dragoon.allocator.fields import label, required
from dragoon.allocator.interning import Interner
from dragoon.allocator.model import DeviceClass, PoolId, Raw, Slice, TaintRule
from dragoon.allocator.pools import PoolSlices
from dragoon.allocator.slices import rule_record, slice_record
from dragoon.allocator.snapshot import Memory, Snapshot
from dragoon.allocator.usage import UNUSED, Hold, PoolUsage, holds_of

Key = TypeVar("Key")
Value = TypeVar("Value")


class Shown(Generic[Key, Value]):
    """A dict that is copied before the first change after it was shown to somebody."""

    def __init__(self) -> None:
        self._content: dict[Key, Value] = {}
        self._is_shown = False

    def show(self) -> Mapping[Key, Value]:
        """The content as it is now, for good."""
        self._is_shown = True
        return self._content

    def get(self, key: Key) -> Value | None:
        """The value of a key, None without it."""
        return self._content.get(key)

    def put(self, key: Key, value: Value | None) -> None:
        """Sets the value of a key; None removes it."""
        if self._is_shown:
            self._content, self._is_shown = dict(self._content), False
        if value is None:
            self._content.pop(key, None)
        else:
            self._content[key] = value


@dataclass(frozen=True, slots=True)
class _Claim:
    """A claim as last seen. version: its resourceVersion, None where that is no number.

    allocation: raw, as `holds` were read from it.
    """

    uid: str
    version: int | None
    allocation: Raw | None
    holds: tuple[Hold, ...]


class ClusterState:
    """Everything decisions are made from. Not for several threads at once."""

    def __init__(self) -> None:
        self._interner = Interner()
        self._memory = Memory()
        self._classes: Shown[str, DeviceClass] = Shown()
        self._pools: Shown[PoolId, PoolSlices] = Shown()
        self._by_node: Shown[str, tuple[PoolId, ...]] = Shown()
        self._usage: Shown[PoolId, PoolUsage] = Shown()
        self._floating: dict[PoolId, None] = {}
        self._slices: dict[str, Slice] = {}
        self._members: dict[PoolId, dict[str, Slice]] = {}
        self._dirty: dict[PoolId, None] = {}
        self._rules: dict[str, TaintRule] = {}
        # The same rules again, as pools find them: thousands are about one pool each.
        self._narrow: dict[PoolId, dict[str, TaintRule]] = {}
        self._wide: dict[str, TaintRule] = {}
        self._claims: dict[tuple[str, str], _Claim] = {}
        self._assumed: dict[str, tuple[Hold, ...]] = {}
        self._serial = 0
        self._snapshot: Snapshot | None = None

    @property
    def interned(self) -> int:
        """How many different records there are, for tests and metrics."""
        return len(self._interner)

    def put_class(self, raw: Raw) -> None:
        """A DeviceClass as it is now. Raises InvalidInputError, UnsupportedError."""
        found = class_view(raw)
        self._classes.put(found.name, found)
        self._snapshot = None

    def drop_class(self, name: str) -> None:
        """A DeviceClass is gone."""
        self._classes.put(name, None)
        self._snapshot = None

    def put_slice(self, raw: Raw) -> None:
        """A ResourceSlice as it is now.

        Raises InvalidInputError for one that cannot be read. It then counts as gone, which leaves
        its pool incomplete: no device of it is given away by what it was before.
        """
        self.drop_slice(required(raw, "metadata.name", "ResourceSlice"))
        self.put_slice_record(slice_record(raw, self._interner))

    def put_slice_record(self, found: Slice) -> None:
        """A ResourceSlice as it is now, read elsewhere: large clusters read them off the loop."""
        self.drop_slice(found.name)
        self._slices[found.name] = found
        self._members.setdefault(found.pool, {})[found.name] = found
        self._dirty[found.pool] = None

    def drop_slice(self, name: str) -> None:
        """A ResourceSlice is gone."""
        old = self._slices.pop(name, None)
        if old is not None:
            members = self._members[old.pool]
            del members[name]
            self._dirty[old.pool] = None
            if not members and self._pools.get(old.pool) is None:
                # No snapshot has shown it. Whoever makes none must not remember every pool.
                del self._members[old.pool], self._dirty[old.pool]
        self._snapshot = None

    def put_rule(self, raw: Raw) -> None:
        """A DeviceTaintRule as it is now.

        Raises InvalidInputError for one that cannot be read; it then stays as it was.
        """
        found = rule_record(raw)
        self.drop_rule(raw["metadata"]["name"])
        if found is not None:
            self._rules[found.name] = found
            self._rules_beside(found)[found.name] = found
            self._touch(found)

    def drop_rule(self, name: str) -> None:
        """A DeviceTaintRule is gone."""
        old = self._rules.pop(name, None)
        if old is not None:
            beside = self._rules_beside(old)
            del beside[name]
            if not beside and old.only_pool is not None:
                del self._narrow[old.only_pool]
            self._touch(old)
        self._snapshot = None

    def put_claim(self, raw: Raw) -> None:
        """A ResourceClaim as a watch shows it; an older version than the one known is ignored.

        Raises InvalidInputError for an allocation that cannot be read.
        """
        key, found = self._read(raw)
        known = self._claims.get(key)
        if known is not None and known.uid == found.uid and _is_older(found, known):
            return
        self._replace(key, found)

    def drop_claim(self, namespace: str, name: str) -> None:
        """A ResourceClaim is gone. What is assumed for it stays until it is forgotten."""
        self._replace((namespace, name), None)

    def assume(self, claim: Raw, allocation: Raw) -> None:
        """We are about to write this allocation: from now on it holds its devices."""
        metadata = required(claim, "metadata", "ResourceClaim")
        holds = holds_of(allocation, label(metadata))
        self._suppose(required(metadata, "uid", "ResourceClaim"), holds)

    def confirm(self, claim: Raw) -> None:
        """The write was done; claim is the API server's answer.

        Of a claim that a watch has shown to be gone meanwhile, nothing is kept.
        """
        key, found = self._read(claim)
        known = self._claims.get(key)
        if known is not None and known.uid == found.uid and not _is_older(found, known):
            self._replace(key, found)
        self.forget(claim)

    def forget(self, claim: Raw) -> None:
        """The write failed or is not wanted any more: what was assumed holds nothing."""
        self._suppose(required(claim, "metadata.uid", "ResourceClaim"), ())

    def forget_node(self, name: str, left: Collection[str]) -> None:
        """A node is gone: drops what was remembered about it. left: the names of all others."""
        self._memory.forget(name, left)

    def snapshot(self) -> Snapshot:
        """Everything as it is now. It never changes.

        Decisions may be made in another thread, one at a time, while events come in here.
        """
        for pool in self._dirty:
            self._rebuild(pool)
        self._dirty.clear()
        if self._snapshot is None:
            self._snapshot = Snapshot(
                self._classes.show(),
                self._pools.show(),
                self._by_node.show(),
                tuple(self._floating),
                self._usage.show(),
                self._memory,
            )
        return self._snapshot

    def _touch(self, rule: TaintRule) -> None:
        """The pools that a rule taints change with it."""
        pools = self._members if rule.only_pool is None else {rule.only_pool} & self._members.keys()
        self._dirty.update((pool, None) for pool in pools if rule.covers(pool))

    def _rules_beside(self, rule: TaintRule) -> dict[str, TaintRule]:
        """The rules that are about the same one pool, or those about several."""
        pool = rule.only_pool
        return self._wide if pool is None else self._narrow.setdefault(pool, {})

    def _rebuild(self, id_: PoolId) -> None:
        """Makes a pool's record anew, and where it can be looked for."""
        members = self._members.get(id_, {})
        slices = tuple(sorted(members.values(), key=lambda one: one.name))
        old = self._pools.get(id_)
        if not slices:
            self._members.pop(id_, None)
        found = {**self._wide, **self._narrow.get(id_, {})}
        rules = tuple(rule for _, rule in sorted(found.items()) if slices and rule.covers(id_))
        self._pools.put(id_, PoolSlices(id_, slices, rules) if slices else None)
        before, after = _nodes(old.slices if old else ()), _nodes(slices)
        for node in before.keys() - after.keys():
            rest = tuple(one for one in self._by_node.get(node) or () if one != id_)
            self._by_node.put(node, rest or None)
        for node in after.keys() - before.keys():
            self._by_node.put(node, tuple(sorted((*(self._by_node.get(node) or ()), id_))))
        if any(one.nodes is None or not one.nodes.node_name for one in slices):
            self._floating[id_] = None
        else:
            self._floating.pop(id_, None)

    def _read(self, raw: Raw) -> tuple[tuple[str, str], _Claim]:
        """A raw claim, with its key.

        What it holds is read once: most changes are of other fields.
        """
        metadata = required(raw, "metadata", "ResourceClaim")
        key = metadata.get("namespace") or "", required(metadata, "name", "ResourceClaim")
        version = str(metadata.get("resourceVersion") or "")
        allocation = (raw.get("status") or {}).get("allocation")
        known = self._claims.get(key)
        if known is not None and known.allocation == allocation:
            holds = known.holds
        else:
            holds = holds_of(allocation, label(metadata))
        return key, _Claim(
            metadata.get("uid") or "",
            int(version) if version.isdecimal() else None,
            allocation,
            holds,
        )

    def _replace(self, key: tuple[str, str], claim: _Claim | None) -> None:
        old = self._claims.pop(key, None)
        if claim is not None:
            self._claims[key] = claim
        self._settle(old.holds if old else (), claim.holds if claim else ())

    def _suppose(self, uid: str, holds: tuple[Hold, ...]) -> None:
        old = self._assumed.pop(uid, ())
        if holds:
            self._assumed[uid] = holds
        self._settle(old, holds)

    def _settle(self, gone: tuple[Hold, ...], new: tuple[Hold, ...]) -> None:
        """Brings what is held of each pool up to date."""
        if gone == new:
            return
        for pool in {hold.pool for hold in (*gone, *new)}:
            self._serial += 1
            usage = (self._usage.get(pool) or UNUSED).changed(
                [hold for hold in gone if hold.pool == pool],
                [hold for hold in new if hold.pool == pool],
                self._serial,
            )
            self._usage.put(pool, usage or None)
        self._snapshot = None


def _nodes(slices: Iterable[Slice]) -> dict[str, None]:
    """The nodes that slices name."""
    names = (one.nodes.node_name for one in slices if one.nodes is not None)
    return dict.fromkeys(name for name in names if name)


def _is_older(one: _Claim, other: _Claim) -> bool:
    return one.version is not None and other.version is not None and one.version < other.version
