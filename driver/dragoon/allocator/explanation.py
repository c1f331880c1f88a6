"""A funnel as plain lines of text."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from dragoon.allocator.findings import Explanation, Funnel, GroupFinding, Loser, Step
from dragoon.allocator.model import DeviceId


def reason(explanation: Explanation) -> str:
    """One sentence: why there is no solution."""
    alternatives = too_short(explanation)
    if len(alternatives) == 1:
        return _short(alternatives[0])
    if alternatives:
        return "none of the alternatives fits: " + "; ".join(map(_short, alternatives))
    for group in explanation.groups:
        if group.is_short:
            return _split(group)
    return "each request and each constraint can be met alone, but not all of them together"


def too_short(explanation: Explanation) -> Sequence[Funnel]:
    """The first request of which no alternative finds enough devices; empty where each has one."""
    for alternatives in _by_request(explanation.funnels):
        if all(funnel.is_short for funnel in alternatives):
            return alternatives
    return ()


def deciding_step(funnel: Funnel) -> Step | None:
    """The first step after which too few are left; None where too few were there before any."""
    if funnel.total < funnel.needed:
        return None
    return next((step for step in funnel.steps if step.left < funnel.needed), None)


def lines(explanation: Explanation) -> list[str]:
    """The whole funnel: per request each step with the devices left and the first losers."""
    return [line for part in _parts(explanation) for line in part]


def _by_request(funnels: Sequence[Funnel]) -> Iterator[list[Funnel]]:
    """The funnels of each request: one, or one for each of its alternatives."""
    for _, same in groupby(funnels, lambda one: (one.claim, one.alternative_of or one.request)):
        yield list(same)


def _parts(explanation: Explanation) -> Iterator[Iterator[str]]:
    for note in explanation.pools:
        yield iter((f"pool {note.pool} is not used: {note.problem}",))
    for funnel in explanation.funnels:
        yield _funnel(funnel, explanation.node)
        yield from (
            _group(group)
            for group in explanation.groups
            if group.claim == funnel.claim and group.requests[-1:] == (funnel.request,)
        )


def _funnel(funnel: Funnel, node: str) -> Iterator[str]:
    wanted = "all devices" if funnel.everything else _devices(funnel.needed)
    kind = "alternative" if funnel.alternative_of else "request"
    yield f"claim {funnel.claim}, {kind} {funnel.request}: {wanted} of class {funnel.class_name}"
    yield f"  {_devices(funnel.total)} on node {node}"
    for step in funnel.steps:
        if step.lost or step.name.startswith("class "):
            yield f"  {step.name}: {step.left} left" + (f", {step.lost} out" if step.lost else "")
            yield from _losers(step.losers, step.lost)
    if funnel.chosen:
        yield f"  chosen, first fit in the order of names: {_names(funnel.chosen)}"
        yield from (f"    before them: {_loser(loser)}" for loser in funnel.passed_over)


def _losers(losers: tuple[Loser, ...], lost: int) -> Iterator[str]:
    for text, same in groupby(losers, lambda loser: loser.reason):
        yield f"    {_names(tuple(loser.device for loser in same))}: {text}"
    if lost > len(losers):
        yield f"    and {lost - len(losers)} more"


def _group(group: GroupFinding) -> Iterator[str]:
    wanted = "different" if group.distinct else "same"
    yield f"  {wanted} {group.attribute} for {_devices(group.needed)}:"
    for one in group.groups:
        yield f"    {one.value}: {_devices(len(one.devices))} ({_names(one.devices)})"
    if group.without:
        yield f"    without it: {_devices(len(group.without))} ({_names(group.without)})"


def _short(funnel: Funnel) -> str:
    wanted = f"all {_devices(funnel.needed)}" if funnel.everything else _devices(funnel.needed)
    text = f"request {funnel.request} of claim {funnel.claim} needs {wanted}"
    if funnel.total < funnel.needed:
        return f"{text}, there are {funnel.total} in the pools of the node"
    step = deciding_step(funnel)
    if step is None:
        return text
    example = f"; for example {_loser(step.losers[0])}" if step.losers else ""
    before = step.left + step.lost
    return f"{text}, {before} are there before '{step.name}' and {step.left} after{example}"


def _split(group: GroupFinding) -> str:
    text = f"claim {group.claim} needs {_devices(group.needed)} with"
    if group.distinct:
        return (
            f"{text} different {group.attribute}, the candidates have {len(group.groups)} "
            "different values"
        )
    return (
        f"{text} the same {group.attribute}, the largest group of the candidates has "
        f"{group.largest}"
    )


def _loser(loser: Loser) -> str:
    return f"{loser.device.device}: {loser.reason}"


def _names(devices: tuple[DeviceId, ...]) -> str:
    return ", ".join(device.device for device in devices)


def _devices(count: int) -> str:
    return f"{count} device" if count == 1 else f"{count} devices"
