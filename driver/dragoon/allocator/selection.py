"""Whether selectors match a device, each evaluated once for all devices that are alike to it.

A selector that fails stops kube-scheduler's whole attempt, so a failure is kept
as a finding about the device, and is raised only when the search comes to that device.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

from dragoon.allocator.model import Facts
from dragoon.cel import (
    COST_LIMIT,
    DeviceView,
    EvaluationError,
    Read,
    compile_selector,
    device_view,
)
from dragoon.cel.program import Program
from dragoon.errors import DragoonError

_KEPT: Final = 512
_SHOWN: Final = 80
"""Characters of an expression in a message."""
_CHEAP: Final = 100
"""Cost on one device up to which everybody's plans may pay for a selector: ours have 30 at most, and
the API server takes a million."""
_VERDICTS: Final = 8_192
"""Devices that a selector remembers its verdict for."""

_Names = tuple[frozenset[str], frozenset[str]]
"""Names of attributes and of capacities, as published."""


class SelectorError(DragoonError):
    """A selector does not compile, or fails on a device that the search has come to."""

    code = "Selector"


class CostlySelectorsError(DragoonError):
    """Evaluations have cost as much as was allowed for all of them together."""

    code = "CostlySelectors"
    default_retryable = True


class _Allowance:
    """What evaluations may still cost. Mutable."""

    def __init__(self, cost: int) -> None:
        self._cost = self._left = cost

    def charge(self, text: str, cost: int) -> None:
        self._left -= cost
        if self._left < 0:
            raise CostlySelectorsError(
                f"selectors: found a cost of more than {self._cost} over all devices, of which one of "
                f"{cost} for each device by {text[:_SHOWN]!r}; allowed is less for one plan"
            )


_allowance: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def allowing(cost: int) -> Iterator[None]:
    """What evaluations may cost together until its end, in units of CEL as Kubernetes estimates.

    An expression may cost 0.3 s on each of many thousand devices. Inside, an evaluation that is not
    remembered raises CostlySelectorsError once that is used up.
    """
    before = _allowance.set(_Allowance(cost))
    try:
        yield
    finally:
        _allowance.reset(before)


class Selector:
    """A compiled selector that remembers its verdicts and failures.

    evaluations: how often it was really evaluated.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.program: Program = compile_selector(text)
        self.evaluations = 0
        self._reads = self.program.reads
        self._names: dict[str, _Names] = {}
        self._verdicts: dict[Any, bool | EvaluationError] = {}

    @property
    def is_cheap(self) -> bool:
        """Whether it may be asked about devices that no search has come to."""
        return self.program.estimated_cost <= _CHEAP

    def matches(self, facts: Facts, *, free: bool = False) -> bool:
        """Whether it selects devices with these facts. free: whatever is allowed.

        Raises EvaluationError where the evaluation fails, CostlySelectorsError under `allowing`.
        """
        key = facts if self._reads is None else self._what_is_read(facts, self._reads)
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._evaluated(facts, None if free else _allowance.get())
            if len(self._verdicts) >= _VERDICTS:
                self._verdicts.clear()
            self._verdicts[key] = verdict
        if isinstance(verdict, EvaluationError):
            raise verdict.with_traceback(None)
        return verdict

    def _evaluated(self, facts: Facts, allowance: _Allowance | None) -> bool | EvaluationError:
        if allowance is not None:
            allowance.charge(self.text, min(self.program.estimated_cost, COST_LIMIT))
        self.evaluations += 1
        try:
            return self.program.evaluate(view_of(facts))
        except EvaluationError as error:
            return error

    def _what_is_read(self, facts: Facts, wanted: frozenset[Read]) -> Any:
        """The part of the facts that the selector looks at; equal parts give equal verdicts."""
        names = self._names.get(facts.driver)
        if names is None:
            names = self._names[facts.driver] = published(wanted, facts.driver)
        attributes, capacity = names
        return (
            facts.driver,
            facts.multiple,
            facts.unreadable,
            tuple([one for one in facts.attributes if one[0] in attributes]),
            tuple([one for one in facts.capacity if one[0] in capacity]) if capacity else (),
        )


@lru_cache(maxsize=_KEPT)
def selector(text: str) -> Selector:
    """The selector of this text.

    Raises InvalidInputError for a text that is wrong, UnsupportedError for one that Dragoon cannot
    evaluate.
    """
    return Selector(text)


def view_of(facts: Facts) -> DeviceView:
    """The variable `device` of a selector.

    Raises EvaluationError for an attribute that no selector can be evaluated with.
    """
    if facts.unreadable:
        raise EvaluationError(facts.unreadable)
    return device_view(
        facts.driver,
        {
            "attributes": {name: {kind: value} for name, kind, value in facts.attributes},
            "capacity": {name: {"value": capacity.text} for name, capacity in facts.capacity},
            "allowMultipleAllocations": facts.multiple,
        },
    )


def published(wanted: frozenset[Read], driver: str) -> _Names:
    """The names under which a driver may publish what is read: its own need no domain."""
    names: dict[str, set[str]] = {"attributes": set(), "capacity": set()}
    for part, domain, name in wanted:
        names[part].add(f"{domain}/{name}")
        if domain == driver:
            names[part].add(name)
    return frozenset(names["attributes"]), frozenset(names["capacity"])
