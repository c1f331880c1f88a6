"""Why a step takes a device out, in words and with values. An empty reason lets the device stay.

Each test looks at one device alone, against what claims hold now.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from dragoon.allocator.amounts import CapacityError, Use, consumption, parsed, shown
from dragoon.allocator.model import Claim, Counter, Device, DeviceId, Request, Slice
from dragoon.allocator.nodes import NodeSelectorError, matches
from dragoon.allocator.pools import Pool
from dragoon.allocator.problem import Problem
from dragoon.allocator.selection import SelectorError, selector, view_of
from dragoon.allocator.taints import preventing
from dragoon.allocator.usage import Hold
from dragoon.cel import EvaluationError
from dragoon.errors import DragoonError
from dragoon.quantity import nanos


class Entry(NamedTuple):
    """A device where it was found."""

    pool: Pool
    slice: Slice
    device: Device

    @property
    def id(self) -> DeviceId:
        """The device's name."""
        return DeviceId(self.pool.id.driver, self.pool.id.pool, self.device.name)


Test = Callable[[Entry], str]
"""Why a device is out, empty if it is not."""


def tests_of(request: Request, claim: Claim, problem: Problem) -> Iterator[tuple[str, Test]]:
    """The steps of a request, by name, in the order in which they are told."""
    yield f"class {request.class_name}", _by_class(request, claim, problem)
    yield "selectors of the request", _by_selectors(request.selectors)
    yield "usable on the node", _by_node
    yield "capacity", _by_capacity(request)
    yield "taints", _by_taints(request)
    if not request.admin:
        yield "not in use", _by_usage(problem)
    yield "capacity left", _by_capacity_left(request, problem)
    yield "counters left", _by_counters(problem)


def _by_class(request: Request, claim: Claim, problem: Problem) -> Test:
    try:
        return _by_selectors(problem.class_of(request, claim).selectors)
    except SelectorError:
        return lambda _: f"there is no DeviceClass {request.class_name}"


def _by_selectors(texts: tuple[str, ...]) -> Test:
    def test(entry: Entry) -> str:
        for text in texts:
            try:
                trace = selector(text).program.explain(view_of(entry.device.facts))
            except EvaluationError as error:
                return f"{text} failed: {error.message}"
            except DragoonError as error:
                return f"{text} does not compile: {error.message}"
            if not trace.result:
                return "; ".join(map(str, trace.findings)) or f"{text} is false"
        return ""

    return test


def _by_node(entry: Entry) -> str:
    nodes = entry.device.nodes
    if entry.slice.nodes is not None:
        return ""
    try:
        if nodes is not None and matches(nodes, entry.pool.node):
            return ""
    except NodeSelectorError as error:
        return error.message
    return f"not usable on node {entry.pool.node.name}"


def _by_capacity(request: Request) -> Test:
    wanted = parsed(request.capacity)

    def test(entry: Entry) -> str:
        capacities = entry.device.facts.capacity
        known = dict(capacities)
        for name, amount in wanted.items():
            if name not in known:
                there = ", ".join(sorted(known)) or "none"
                return f"has no capacity {name} (there are: {there})"
            if nanos(amount) > known[name].limit:
                return f"{name}: {amount} wanted, has {known[name].value}"
        try:
            uses = consumption(capacities, wanted)
        except CapacityError as error:
            return error.message
        return "its request policy does not allow these amounts" if uses is None else ""

    return test


def _by_taints(request: Request) -> Test:
    def test(entry: Entry) -> str:
        taint = preventing(entry.pool.taints(entry.device), request)
        return "" if taint is None else f"taint {taint} is not tolerated"

    return test


def _by_usage(problem: Problem) -> Test:
    def test(entry: Entry) -> str:
        holds = problem.usage_of(entry.pool).exclusive.get(entry.device.name)
        return "" if holds is None else f"held by claim {_holders(holds)}"

    return test


def _by_capacity_left(request: Request, problem: Problem) -> Test:
    wanted = parsed(request.capacity)

    def test(entry: Entry) -> str:
        usage, name = problem.usage_of(entry.pool), entry.device.name
        if name not in usage.shared:
            return ""
        used = usage.consumed(name)
        for use in consumption(entry.device.facts.capacity, wanted) or ():
            taken = used.get(use.name, 0)
            if use.taken + taken > use.limit:
                return _too_little(use, taken, usage.shared[name])
        return ""

    return test


def _too_little(use: Use, taken: int, holds: tuple[Hold, ...]) -> str:
    kind = use.amount.format
    return (
        f"{use.name}: {use.amount} wanted, {shown(use.limit - taken, kind)} of "
        f"{shown(use.limit, kind)} left, the rest held by claim {_holders(holds)}"
    )


def _by_counters(problem: Problem) -> Test:
    def test(entry: Entry) -> str:
        device, counters = entry.device, entry.pool.counters
        usage = problem.usage_of(entry.pool)
        if not device.counters or counters is None:
            return ""
        if device.facts.multiple and device.name in usage.shared:
            return ""
        slack = usage.slack(counters)
        for counter, amount in device.counters:
            if slack.left[counter] < amount:
                held = _holders(tuple(_holds_of(counter, entry, problem)))
                return (
                    f"counter {counter[1]} of {counter[0]}: {shown(amount)} wanted, "
                    f"{shown(slack.left[counter])} left"
                    + (f", the rest held by claim {held}" if held else "")
                )
        worst = next((one for one, left in slack.left.items() if left < 0), None)
        if worst is None:
            return ""
        return f"counter {worst[1]} of {worst[0]} is overdrawn, which blocks all of the pool"

    return test


def _holds_of(counter: Counter, entry: Entry, problem: Problem) -> Iterator[Hold]:
    """The holds of devices that consume the counter."""
    usage, counters = problem.usage_of(entry.pool), entry.pool.counters
    for holds in (*usage.exclusive.values(), *usage.shared.values()):
        consumed = counters.consumers.get(holds[0].device, ()) if counters else ()
        if any(one == counter for one, _ in consumed):
            yield from holds


def _holders(holds: tuple[Hold, ...]) -> str:
    """The claims that hold something, each once; at most three by name."""
    claims = list(dict.fromkeys(hold.claim for hold in holds))
    more = f" and {len(claims) - 3} more" if len(claims) > 3 else ""
    return ", ".join(claims[:3]) + more
