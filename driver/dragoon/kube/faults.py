"""Faults to order from an in-process API server: failures, hangs, lost answers, cut watches.

Shipped, not test code: whoever talks to the API is tested against the same outages.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoon.errors import ApiUnavailableError
from dragoon.kube.port import Object, Resource

Error = Callable[[], Exception]
"""An ApiError, or what no port should raise: a surprise."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call that reached the server. verb: get, list, watch, create, replace, patch, delete."""

    verb: str
    resource: Resource
    name: str = ""
    namespace: str | None = None
    subresource: str | None = None


@dataclass(slots=True, eq=False)
class Fault:
    """An ordered fault. `hits` counts the calls it met; `reached` is set by the first.

    A hanging fault holds its calls until lift(). lift() also ends a fault early.
    """

    matches: Callable[[Call], bool]
    error: Error | None
    remaining: int | None
    late: bool = False
    hangs: bool = False
    hits: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    lifted: asyncio.Event = field(default_factory=asyncio.Event)

    def lift(self) -> None:
        """Ends the fault and lets the calls it holds go on."""
        self.remaining = 0
        self.lifted.set()

    @property
    def spent(self) -> bool:
        """Whether it can do nothing any more; one that holds calls still has to be lifted."""
        return self.lifted.is_set() or (self.remaining == 0 and not self.hangs)

    def take(self, call: Call, *, late: bool) -> bool:
        """Whether this fault meets the call now; uses up one of its times."""
        if self.late is not late or self.remaining == 0 or not self.matches(call):
            return False
        if self.remaining is not None:
            self.remaining -= 1
        self.hits += 1
        self.reached.set()
        return True


class Faults:
    """The faults of one server. Orders are met in the order in which they were given.

    calls: every call so far, also those that failed. cuts and ends count what was done to watches.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self.calls: list[Call] = []
        self.cuts = 0
        self.ends = 0
        self._wake = wake
        self._faults: list[Fault] = []
        self._dropped: list[tuple[Resource, tuple[str, ...]]] = []

    def fail(
        self,
        *,
        error: Error = lambda: ApiUnavailableError("the API server is away", status=503),
        times: int | None = 1,
        verb: str | None = None,
        resource: Resource | None = None,
        when: Callable[[Call], bool] | None = None,
    ) -> Fault:
        """The next matching calls fail with `error()` and have no effect; None: until lifted."""
        return self._order(Fault(_predicate(verb, resource, when), error, times))

    def lose_answer(
        self,
        *,
        error: Error = lambda: ApiUnavailableError("the connection broke"),
        times: int | None = 1,
        verb: str | None = None,
        resource: Resource | None = None,
        when: Callable[[Call], bool] | None = None,
    ) -> Fault:
        """The next matching calls take effect, but the caller gets `error()`."""
        return self._order(Fault(_predicate(verb, resource, when), error, times, late=True))

    def hang(
        self,
        *,
        times: int | None = 1,
        verb: str | None = None,
        resource: Resource | None = None,
        when: Callable[[Call], bool] | None = None,
    ) -> Fault:
        """The next matching calls wait for lift() before they take effect."""
        return self._order(Fault(_predicate(verb, resource, when), None, times, hangs=True))

    def hold_answer(
        self,
        *,
        times: int | None = 1,
        verb: str | None = None,
        resource: Resource | None = None,
        when: Callable[[Call], bool] | None = None,
    ) -> Fault:
        """The next matching calls take effect at once; their answers wait for lift()."""
        predicate = _predicate(verb, resource, when)
        return self._order(Fault(predicate, None, times, late=True, hangs=True))

    def drop(self, resource: Resource, *path: str) -> None:
        """Leaves a field out of every write, as a disabled feature gate does. `*`: each entry."""
        self._dropped.append((resource, path))

    def cut_watches(self) -> None:
        """Every open watch fails as if its connection broke."""
        self.cuts += 1
        self._wake()

    def end_watches(self) -> None:
        """Every open watch ends, as after the server's time-out."""
        self.ends += 1
        self._wake()

    def clear(self) -> None:
        """Lifts everything."""
        for fault in self._faults:
            fault.lift()
        self._faults.clear()
        self._dropped.clear()

    async def meet(self, call: Call, *, late: bool = False) -> None:
        """Called by the server before (or, late, after) a call takes effect. May raise or wait."""
        if not late:
            self.calls.append(call)
        self._faults = [fault for fault in self._faults if not fault.spent]
        for fault in self._faults:
            if fault.take(call, late=late):
                if fault.hangs:
                    await fault.lifted.wait()
                if fault.error is not None:
                    raise fault.error()
                return

    def strip(self, resource: Resource, body: Object) -> None:
        """Removes the dropped fields from what is written, in place."""
        for dropped, path in self._dropped:
            if dropped == resource:
                _remove(body, path)

    def _order(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault


def _predicate(
    verb: str | None, resource: Resource | None, when: Callable[[Call], bool] | None
) -> Callable[[Call], bool]:
    def matches(call: Call) -> bool:
        return (
            (verb is None or call.verb == verb)
            and (resource is None or call.resource == resource)
            and (when is None or when(call))
        )

    return matches


def _remove(found: Any, path: Sequence[str]) -> None:
    head, *rest = path
    if head == "*":
        for entry in found if isinstance(found, list) else ():
            _remove(entry, rest)
    elif isinstance(found, dict) and head in found:
        if rest:
            _remove(found[head], rest)
        else:
            del found[head]
