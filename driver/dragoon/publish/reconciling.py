"""Which writes lead from the slices that stand in the API to those that should. Pure.

The rules of the Go helper (`resourceslice` of k8s.io/dynamic-resource-allocation 0.37.2): a pool's
generation is kept where one slice at most is updated and none is created, else it grows and every
slice is written; obsolete slices go first, so that removed hardware disappears even if a later
write fails; the index in a slice's name keeps the order in which the allocator reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dragoon.api import limits
from dragoon.kube.port import Object
from dragoon.publish import comparing, slices
from dragoon.publish.comparing import Content
from dragoon.publish.slices import Pool


@dataclass(frozen=True, slots=True)
class Target:
    """What should stand: the content of each slice of a pool (`slices.parts`)."""

    pool: Pool
    parts: tuple[Object, ...]

    def slice_(self, index: int, generation: int = slices.FIRST_GENERATION) -> Object:
        """The slice of one part, as it would be created."""
        count = len(self.parts)
        spec = slices.spec(self.pool, self.parts[index], count=count, generation=generation)
        return slices.new(self.pool, index, spec)

    def bodies(self) -> list[Object]:
        """All of them, as they would be created."""
        return [self.slice_(index) for index in range(len(self.parts))]


@dataclass(frozen=True, slots=True)
class Adoption:
    """A server stored `stored` where we sent `sent`: then that is what we want."""

    sent: Content
    stored: Content


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes a slice if it is still the one that was seen."""

    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Write:
    """Creates a slice (its metadata has no name yet) or replaces the one that was seen."""

    index: int
    body: Object

    @property
    def creates(self) -> bool:
        return "name" not in self.body["metadata"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Writes in their order: deletions, updates, creations; generation is the pool's afterwards."""

    generation: int
    deletes: tuple[Delete, ...] = ()
    writes: tuple[Write, ...] = ()

    @property
    def actions(self) -> tuple[Delete | Write, ...]:
        return (*self.deletes, *self.writes)


@dataclass(frozen=True, slots=True)
class _Observed:
    """The slices of our driver on our node, sorted out."""

    kept: Mapping[int, Object]
    obsolete: tuple[Object, ...] = ()
    newest: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """What was learned from earlier writes: the highest generation, and what servers made of them.

    times: when each taint was added, also of slices that somebody has deleted since.
    """

    generation: int = 0
    adopted: Mapping[int, Adoption] = field(default_factory=dict)
    times: Mapping[comparing.TaintKey, str] = field(default_factory=dict)


_NOTHING = Memory()


def remembered(target: Target, observed: Sequence[Object], memory: Memory) -> Memory:
    """With the times of the taints that are wanted now.

    A taint that is not wanted any more is forgotten: if it comes back, it is a new one.
    """
    wanted = {
        (device["name"], taint["key"], taint.get("value", ""), taint["effect"])
        for part in target.parts
        for device in part.get("devices", ())
        for taint in device.get("taints", ())
    }
    known = {**memory.times, **dict(comparing.taint_times(observed))}
    return replace(memory, times={key: time for key, time in known.items() if key in wanted})


def decide(target: Target, observed: Sequence[Object], memory: Memory = _NOTHING) -> Plan:
    """The writes that are needed; none where everything is as it should be.

    observed: all slices of this driver and node, as a consistent list gave them.
    """
    seen = _sort_out(target, observed, memory)
    indexes = range(len(target.parts))
    missing = [index for index in indexes if index not in seen.kept]
    changed = [
        index
        for index, slice_ in sorted(seen.kept.items())
        if not _agrees(target, index, slice_, memory)
    ]
    generation, rewritten = seen.newest, changed
    if missing or len(changed) > 1:
        generation = _next(max(seen.newest, memory.generation))
        rewritten = sorted(seen.kept)
    times = {**memory.times, **dict(comparing.taint_times(observed))}
    updates = (
        Write(index, _updated(target, index, generation, seen.kept[index], times))
        for index in rewritten
    )
    creates = (Write(i, _with_times(target.slice_(i, generation), times)) for i in missing)
    return Plan(generation, tuple(map(_delete, seen.obsolete)), (*updates, *creates))


def _next(generation: int) -> int:
    """One more; a number that somebody else drove to its end starts again."""
    return generation + 1 if generation < limits.INT64_MAX else slices.FIRST_GENERATION


def _sort_out(target: Target, observed: Sequence[Object], memory: Memory) -> _Observed:
    """One slice for each index at most, of the pool's newest generation; the rest is obsolete.

    A slice that waits for somebody's finalizer is neither: it cannot be deleted again, and a new
    one must take its place.
    """
    generations = {
        s["metadata"]["uid"]: _generation(s)
        for s in observed
        if s["spec"]["pool"]["name"] == target.pool.name
    }
    newest = max(generations.values(), default=0)
    # At the end of the numbers no slice can get a higher one: all are made anew.
    usable = newest < limits.INT64_MAX
    living = [s for s in observed if not s["metadata"].get("deletionTimestamp")]
    kept: dict[int, Object] = {}
    obsolete = []
    for slice_ in sorted(living, key=lambda s: _rank(target, s, memory)):
        index = _part(target, slice_)
        current = usable and generations.get(slice_["metadata"]["uid"]) == newest
        if current and index is not None and index not in kept:
            kept[index] = slice_
        else:
            obsolete.append(slice_)
    return _Observed(kept, tuple(obsolete), newest)


def _part(target: Target, slice_: Object) -> int | None:
    """Which part of the target a slice holds by its name, None where it holds none."""
    index = slices.index_of(slice_)
    return index if index is not None and index < len(target.parts) else None


def _rank(target: Target, slice_: Object, memory: Memory) -> tuple[bool, str, str]:
    """Of two slices with one index the first stays: the right one, then the older."""
    index, meta = _part(target, slice_), slice_["metadata"]
    right = index is not None and _agrees(target, index, slice_, memory)
    return not right, meta.get("creationTimestamp") or "", meta["name"]


def _agrees(target: Target, index: int, slice_: Object, memory: Memory) -> bool:
    wanted = target.slice_(index)
    sent, found = comparing.content(wanted), comparing.content(slice_)
    adoption = memory.adopted.get(index)
    if adoption is not None and adoption.sent == sent and adoption.stored == found:
        return True
    return bool(sent == found) and comparing.times_agree(wanted, slice_)


def _generation(slice_: Object) -> int:
    return int(slice_["spec"]["pool"].get("generation", 0))


def _updated(
    target: Target,
    index: int,
    generation: int,
    old: Object,
    times: Mapping[comparing.TaintKey, str],
) -> Object:
    """The observed slice with our owner and our spec; what others labelled stays."""
    wanted = _with_times(target.slice_(index, generation), times)
    meta = {**old["metadata"], "ownerReferences": wanted["metadata"].get("ownerReferences", [])}
    return {**wanted, "metadata": meta}


def _with_times(wanted: Object, times: Mapping[comparing.TaintKey, str]) -> Object:
    """Taints that stand already keep their timeAdded: eviction counts from it."""
    if "devices" not in wanted["spec"]:
        return wanted
    devices = []
    for device in wanted["spec"]["devices"]:
        taints = [
            {"timeAdded": times[key], **taint} if key in times else taint
            for taint in device.get("taints", ())
            for key in [(device["name"], taint["key"], taint.get("value", ""), taint["effect"])]
        ]
        devices.append({**device, "taints": taints} if taints else device)
    return {**wanted, "spec": {**wanted["spec"], "devices": devices}}


def _delete(slice_: Object) -> Delete:
    meta = slice_["metadata"]
    return Delete(meta["name"], meta["uid"], meta["resourceVersion"])
