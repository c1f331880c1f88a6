"""What an attempt has taken of one pool so far, on top of what claims hold of it.

Source: `structured` of k8s.io/dynamic-resource-allocation 0.37.2.
"""

from typing import Final

from dragoon.allocator.candidates import Candidate
from dragoon.allocator.model import Counter, Counts, Request
from dragoon.allocator.pools import Pool
from dragoon.allocator.usage import PoolUsage

_ZERO: Final = 0


class Trial:
    """One pool during one attempt. Mutable; every `take` can be given back, last one first."""

    def __init__(self, pool: Pool, usage: PoolUsage) -> None:
        self.pool = pool
        self.usage = usage
        self._taken: dict[str, list[int]] = {}
        self._shares: dict[str, int] = {}
        self._used: dict[str, dict[str, int]] = {}
        self._spent: dict[Counter, int] = {}

    def is_in_use(self, name: str, claim: int, request: Request) -> bool:
        """Whether the device cannot be had because somebody has it as a whole.

        Admin access looks only at its own claim. A device that can be shared never counts as
        taken by this attempt.
        """
        if request.admin:
            return claim in self._taken.get(name, ())
        return name in self.usage.exclusive or name in self._taken

    def has_room(self, candidate: Candidate) -> bool:
        """Whether the capacity is enough beside what others have of the device."""
        name = candidate.device.name
        mine = self._used.get(name)
        if mine is None and name not in self.usage.shared:
            return True
        theirs = self.usage.consumed(name)
        return all(
            use.taken + theirs.get(use.name, _ZERO) + (mine or {}).get(use.name, _ZERO) <= use.limit
            for use in candidate.uses
        )

    def take(self, candidate: Candidate, claim: int) -> None:
        """Marks the device as taken, or adds a share of it."""
        name = candidate.device.name
        if not candidate.device.facts.multiple:
            self._taken.setdefault(name, []).append(claim)
            return
        self._shares[name] = self._shares.get(name, 0) + 1
        used = self._used.setdefault(name, {})
        for use in candidate.uses:
            used[use.name] = used.get(use.name, _ZERO) + use.taken

    def give_back(self, candidate: Candidate, claim: int) -> None:
        """Undoes the last `take` of this device."""
        name = candidate.device.name
        if not candidate.device.facts.multiple:
            claims = self._taken[name]
            claims.remove(claim)
            if not claims:
                del self._taken[name]
            return
        self._shares[name] -= 1
        used = self._used[name]
        for use in candidate.uses:
            used[use.name] -= use.taken
        if not self._shares[name]:
            del self._shares[name], self._used[name]

    def reserve(self, candidate: Candidate) -> bool | None:
        """Takes the counters of a device: True if that was done, None if there is nothing to do.

        False if not all counters of the pool would be at least zero. A device that is shared
        already has its counters.
        """
        device = candidate.device
        counters = self.pool.counters
        if not device.counters or counters is None:
            return None
        if device.facts.multiple and (
            device.name in self.usage.shared or device.name in self._shares
        ):
            return None
        self._add(device.counters, 1)
        slack = self.usage.slack(counters)
        left, spent = slack.left, self._spent
        # Counters of other devices were fine before, unless claims overdrew one.
        touched = left if slack.overdrawn else (counter for counter, _ in device.counters)
        if all(left[counter] >= spent.get(counter, _ZERO) for counter in touched):
            return True
        self._add(device.counters, -1)
        return False

    def release(self, candidate: Candidate) -> None:
        """Undoes a `reserve` that was True."""
        self._add(candidate.device.counters, -1)

    def _add(self, counts: Counts, sign: int) -> None:
        spent = self._spent
        for counter, amount in counts:
            spent[counter] = spent.get(counter, _ZERO) + sign * amount
