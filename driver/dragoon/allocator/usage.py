"""What claims hold of a pool: devices, shares, capacity and counters.

Source: `structured` of k8s.io/dynamic-resource-allocation 0.37.2.

kube-scheduler keeps the devices in a set: when one of two claims that hold a device lets it go,
the device counts as free. Here it is in use until the last holder is gone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from dragoon import quantity
from dragoon.allocator.amounts import added
from dragoon.allocator.fields import required
from dragoon.allocator.model import Counter, PoolId, Raw
from dragoon.allocator.pools import Counters


class Hold(NamedTuple):
    """One device that a claim holds. share: its share ID, empty where it holds the whole device.

    consumed: of each capacity, in nano units.
    """

    pool: PoolId
    device: str
    claim: str
    share: str = ""
    consumed: tuple[tuple[str, int], ...] = ()


def holds_of(allocation: Raw | None, claim: str) -> tuple[Hold, ...]:
    """What a raw status.allocation holds; results with admin access hold nothing.

    Raises InvalidInputError, naming the claim, for an amount that is none or a field that is
    missing.
    """
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    owner = f"ResourceClaim {claim}: status.allocation"
    return tuple(
        Hold(
            PoolId(required(result, "driver", owner), required(result, "pool", owner)),
            required(result, "device", owner),
            claim,
            result.get("shareID") or "",
            tuple(
                (name, quantity.nanos(quantity.parse(str(amount))))
                for name, amount in sorted((result.get("consumedCapacity") or {}).items())
            ),
        )
        for result in results
        if not result.get("adminAccess")
    )


@dataclass(frozen=True, slots=True, eq=False)
class Slack:
    """What is left of each counter of a pool, in nano units; overdrawn: one is below nothing."""

    left: Mapping[Counter, int]
    overdrawn: bool


class PoolUsage:
    """What is held of one pool. To others it is immutable: changes make another one.

    exclusive: the claims that hold a device as a whole, mostly one. shared: the shares of a device.
    serial: another number for each change in one state; 0 where nothing is held.
    """

    __slots__ = ("_slack", "_sums", "exclusive", "serial", "shared")

    def __init__(
        self,
        exclusive: Mapping[str, tuple[Hold, ...]] | None = None,
        shared: Mapping[str, tuple[Hold, ...]] | None = None,
        serial: int = 0,
    ) -> None:
        self.serial = serial
        self.exclusive: Mapping[str, tuple[Hold, ...]] = exclusive or {}
        self.shared: Mapping[str, tuple[Hold, ...]] = shared or {}
        self._slack: tuple[Counters, Slack] | None = None
        self._sums: dict[str, dict[str, int]] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PoolUsage):
            return NotImplemented
        return (self.exclusive, self.shared) == (other.exclusive, other.shared)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self.exclusive or self.shared)

    def is_allocated(self, device: str) -> bool:
        """Whether any claim holds the device or a share of it."""
        return device in self.exclusive or device in self.shared

    def consumed(self, device: str) -> Mapping[str, int]:
        """What all shares of a device take of each capacity, in nano units."""
        sums = self._sums.get(device)
        if sums is None:
            # A share that is both seen and assumed is one share.
            shares = dict.fromkeys(self.shared.get(device, ()))
            sums = self._sums[device] = added(one for share in shares for one in share.consumed)
        return sums

    def slack(self, counters: Counters) -> Slack:
        """What held devices leave of these counters of the pool."""
        if self._slack is None or self._slack[0] is not counters:
            held = dict.fromkeys((*self.exclusive, *self.shared))
            self._slack = counters, _slack(counters.values, counters, held, ())
        return self._slack[1]

    def changed(self, gone: Iterable[Hold], new: Iterable[Hold], serial: int) -> "PoolUsage":
        """The usage without the holds that are gone and with the new ones."""
        exclusive, shared = dict(self.exclusive), dict(self.shared)
        touched: set[str] = set()
        for hold in gone:
            holders = shared if hold.share else exclusive
            rest = list(holders.get(hold.device, ()))
            if hold in rest:
                rest.remove(hold)
            _put(holders, hold.device, rest)
            touched.add(hold.device)
        for hold in new:
            holders = shared if hold.share else exclusive
            _put(holders, hold.device, [*holders.get(hold.device, ()), hold])
            touched.add(hold.device)
        changed = PoolUsage(exclusive, shared, serial)
        if self._slack is not None:
            counters, slack = self._slack
            before = {name for name in touched if self.is_allocated(name)}
            after = {name for name in touched if changed.is_allocated(name)}
            left = _slack(slack.left, counters, after - before, before - after)
            changed._slack = counters, left
        return changed


def _put(holders: dict[str, tuple[Hold, ...]], device: str, holds: list[Hold]) -> None:
    """Sorted, so that the same holds are the same usage in whatever order they came."""
    if holds:
        holders[device] = tuple(sorted(holds))
    else:
        holders.pop(device, None)


def _slack(
    start: Mapping[Counter, int], counters: Counters, taken: Iterable[str], freed: Iterable[str]
) -> Slack:
    left = dict(start)
    for names, sign in ((taken, -1), (freed, 1)):
        for name in names:
            for counter, amount in counters.consumers.get(name, ()):
                if counter in left:
                    left[counter] += sign * amount
    return Slack(left, any(amount < 0 for amount in left.values()))


UNUSED: Final = PoolUsage()
