"""Counts what the pods of the cluster ask for, so that the planner knows what is to be expected."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from dragoon.allocator.gang.demand import Wish, mix_of, wishes_of
from dragoon.allocator.gang.mix import Mix
from dragoon.gang.records import PodRecord, Raw
from dragoon.kube.informer import Informer
from dragoon.kube.mirror import Change, Key

_KEPT: Final = 4_096
"""Different pods' wishes that are remembered."""
_LENGTH: Final = 16 * 1024 * 1024
"""Characters of the claims that they were read from: what users configure may make one very long."""


class Expecting:
    """The wishes of all pods that use claims, those that have ended too while they are there.

    Belongs to the event loop. claim: finds a raw claim by namespace and name.
    """

    def __init__(self, pods: Informer[PodRecord], claim: Callable[[str, str], Raw | None]) -> None:
        self._claim = claim
        self._counts: Counter[Wish] = Counter()
        self._counted: dict[Key, tuple[Wish, ...]] = {}
        self._open: dict[Key, PodRecord] = {}
        self._read: dict[str, tuple[Wish, ...]] = {}
        self._length = 0
        self._mix: Mix | None = None
        pods.subscribe(self._pod)

    def mix(self) -> Mix:
        """What is to be expected now."""
        for key, pod in tuple(self._open.items()):
            self._count(key, pod)
        if self._mix is None:
            self._mix = mix_of(self._counts)
        return self._mix

    def _pod(self, change: Change[PodRecord]) -> None:
        key, pod = change.key, change.new
        if pod is None:
            self._open.pop(key, None)
            self._forget(self._counted.pop(key, ()))
        elif pod.claims and key not in self._counted:
            self._open[key] = pod

    def _forget(self, wishes: tuple[Wish, ...]) -> None:
        for wish in wishes:
            self._mix = None
            self._counts[wish] -= 1
            if not self._counts[wish]:
                del self._counts[wish]

    def _count(self, key: Key, pod: PodRecord) -> None:
        """Counts a pod once all its claims are there; one that has ended may never have them."""
        claims = [self._claim(pod.namespace, name) for name in pod.claims]
        found = [one for one in claims if one is not None]
        if len(found) < len(claims) and not pod.ended:
            return
        del self._open[key]
        self._counted[key] = wishes = self._wishes(pod, found)
        self._counts.update(wishes)
        self._mix = None

    def _wishes(self, pod: PodRecord, claims: list[Raw]) -> tuple[Wish, ...]:
        """Pods with equal claims and amounts are read once."""
        text = repr((pod.amounts, [one.get("spec") for one in claims]))
        known = self._read.get(text)
        if known is None:
            self._length += len(text)
            if len(self._read) >= _KEPT or self._length > _LENGTH:
                self._read.clear()
                self._length = len(text)
            known = self._read[text] = wishes_of(pod.amounts, claims)
        return known
