"""Whether a device that was held twice stayed under a rule until its holders were gone. Pure.

kube-scheduler would give such a device to somebody else as soon as one of them lets go.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dragoon.kube.port import CLAIMS, TAINT_RULES, Object
from racecampaign.history import Event
from racecampaign.objects import Device, Key, devices

Pool = tuple[str, str]
"""Driver and pool."""


@dataclass
class _Double:
    """A device that was held twice. holders: all that did. acted: there was a rule since."""

    holders: set[Key]
    acted: bool = False


class _Judge:
    """Sees one event after the other."""

    def __init__(self) -> None:
        self._held: dict[Key, frozenset[Device]] = {}
        self._rules: dict[Key, Pool] = {}
        self._doubles: dict[Device, _Double] = {}

    def see(self, event: Event) -> Iterator[str]:
        """What is wrong from now on."""
        key = Key.of(event.object)
        if event.resource == CLAIMS:
            self._held[key] = frozenset(() if event.is_gone else devices(event.object))
            self._count()
        elif event.resource == TAINT_RULES:
            self._rules.pop(key, None)
            pool = ruled(event.object)
            if pool is not None and not event.is_gone:
                self._rules[key] = pool
        yield from self._look(event.revision)

    def _count(self) -> None:
        holders: dict[Device, set[Key]] = {}
        for key, held in self._held.items():
            for device in held:
                holders.setdefault(device, set()).add(key)
        for device, keys in holders.items():
            if len(keys) > 1:
                self._doubles.setdefault(device, _Double(set())).holders.update(keys)

    def _look(self, revision: int) -> Iterator[str]:
        ruled_pools = set(self._rules.values())
        for device, double in list(self._doubles.items()):
            left = [key for key in double.holders if device in self._held[key]]
            is_ruled = (device.driver, device.pool) in ruled_pools
            if left and double.acted and not is_ruled:
                names = ", ".join(sorted(f"{one.namespace}/{one.name}" for one in left))
                yield (
                    f"device {device.name} of {device.pool}: held twice, and at revision {revision} "
                    f"its rule is gone; still held by {names}"
                )
            double.acted |= is_ruled
            if not left or (double.acted and not is_ruled):
                del self._doubles[device]


def ruled(rule: Object) -> Pool | None:
    """The pool that a rule is about, None where it is about something else."""
    selector = rule["spec"].get("deviceSelector") or {}
    pool = selector.get("driver", ""), selector.get("pool", "")
    return pool if all(pool) else None


def let_go(events: Iterable[Event]) -> list[str]:
    """What is wrong. events: in order, from when no device was held twice.

    That there never was a rule is for somebody with a clock to say.
    """
    judge = _Judge()
    return [problem for event in events for problem in judge.see(event)]
