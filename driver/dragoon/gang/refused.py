"""Evicts pods whose claim a node will never prepare, where its administrator wants that. Pure.

An allocation cannot be changed, and the kubelet asks for ever: such a pod starts nowhere. A pod
with an owner is made again and may get another device; one without is never deleted. A successor
may be refused as well, so evictions for one owner come ever more slowly.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dragoon.api.device_status import DeviceRefusal, wants_eviction
from dragoon.gang.arbiter.ranking import is_prepared
from dragoon.gang.protocol.actions import Action, Evict, Note, WaitUntil
from dragoon.gang.protocol.model import Raw
from dragoon.gang.protocol.viewing import ref
from dragoon.gang.records import PodRecord

_MOST_DOUBLINGS: Final = 10
_REMEMBERED: Final = 10_000
"""Owners. Nobody tells when one that is no Job is gone."""


@dataclass(frozen=True, slots=True)
class EvictionSettings:
    """Seconds between two evictions for one owner: pause, doubled each time up to longest."""

    pause: float = 10.0
    longest: float = 1800.0


@dataclass(frozen=True, slots=True)
class Evicted:
    """How often pods of an owner were evicted, and at which monotonic second the last time."""

    times: int
    tick: float


class Evictions:
    """The named holder of what was evicted: lost with the process, whose successor starts anew."""

    def __init__(self) -> None:
        self._known: dict[str, Evicted] = {}

    @property
    def by_owner(self) -> Mapping[str, Evicted]:
        """By the UID of the owner."""
        return self._known

    def add(self, owner: str, tick: float) -> None:
        """A pod of this owner was evicted now."""
        known = self._known.pop(owner, None)  # So that the one evicted last stands last.
        self._known[owner] = Evicted(known.times + 1 if known else 1, tick)
        while len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]

    def forget(self, owner: str) -> None:
        """The owner is gone."""
        self._known.pop(owner, None)


def refused(
    claim: Raw,
    pods: Iterable[PodRecord],
    known: Mapping[str, Evicted],
    *,
    driver: str,
    tick: float,
    settings: EvictionSettings,
) -> tuple[Action, ...]:
    """What to do about the pods of a raw claim: evict, wait, or say that nobody can.

    Only pods that are bound and not prepared: whoever runs with the claim is left alone.
    """
    refusal = wants_eviction(claim, driver)
    if refusal is None:
        return ()
    waiting = [
        pod
        for pod in pods
        if pod.node and pod.is_alive and pod.raw is not None and not is_prepared(pod.raw)
    ]
    # One pod of an owner at a time: what it was evicted for may be over with its successor.
    first = {pod.owner.uid if pod.owner else pod.uid: pod for pod in reversed(waiting)}
    return tuple(_about(pod, refusal, known, tick, settings) for pod in first.values())


def _about(
    pod: PodRecord,
    refusal: DeviceRefusal,
    known: Mapping[str, Evicted],
    tick: float,
    settings: EvictionSettings,
) -> Action:
    why = f"claim refused on node {pod.node}: {refusal.code}: {refusal.message}"
    target = ref(pod.raw or {})
    if pod.owner is None:
        return Note("Refused", f"pod {pod}: {why}; it has no owner: delete it", pod=target)
    before = known.get(pod.owner.uid)
    if before is not None:
        doublings = min(before.times - 1, _MOST_DOUBLINGS)
        again = before.tick + min(settings.longest, settings.pause * 2.0**doublings)
        if again > tick:
            return WaitUntil(again)
    return Evict(target, why)
