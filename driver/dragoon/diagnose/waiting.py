"""Why claims wait, as one stable code: what `dragoon explain` begins its answer with. Pure.

The code is of the node that comes nearest. The funnel says it of every step, with values.
"""

from collections.abc import Collection, Iterator
from typing import Final

from dragoon.allocator import Explanation
from dragoon.allocator.explanation import deciding_step, too_short
from dragoon.diagnose.codes import Check
from dragoon.diagnose.manifests import Raw, text
from dragoon.diagnose.placing import Placement, Verdict
from dragoon.diagnose.pods import PodClaims
from dragoon.diagnose.remedies.change import requests

_TABLE: Final = (
    Check(
        "WAIT001",
        "error",
        "The DeviceClass is not there",
        "A claim of a class that does not exist is never allocated.",
        "Write a class that `kubectl get deviceclasses` lists, or apply the files in "
        "`deviceclasses/`.",
    ),
    Check(
        "WAIT002",
        "error",
        "Too few devices are of the class",
        "The class selects others, such as another form of a GPU.",
        "Ask for another class, or let the node publish that form (docs/publishing.md).",
    ),
    Check(
        "WAIT003",
        "error",
        "Too few devices match the selectors of the request",
        "The funnel quotes the expression with the values that made it false.",
        "Correct the selector; `dragoon lint` finds what no device has.",
    ),
    Check(
        "WAIT004",
        "error",
        "Too few devices are large enough",
        "The capacity that is asked for is more than a device has, or not one that it has.",
        "Ask for less, or for a larger model.",
    ),
    Check(
        "WAIT005",
        "error",
        "Too many devices have a taint",
        "A taint keeps claims off a device that is not well, or that is for others.",
        "Wait until it is removed, or tolerate it in the request (docs/health.md).",
    ),
    Check(
        "WAIT006",
        "error",
        "Too many devices are in use",
        "Other claims have them.",
        "Wait, or take away one of the claims that the answer names.",
    ),
    Check(
        "WAIT007",
        "error",
        "Too little is left of the devices that are shared",
        "Other claims have the rest of their memory or cores.",
        "Ask for less, or take away one of the claims that the answer names.",
    ),
    Check(
        "WAIT008",
        "error",
        "The GPU is in use in another form",
        "Its counters are used up: it is whole, shared or divided for somebody else.",
        "Wait, or take away one of the claims that the answer names.",
    ),
    Check(
        "WAIT009",
        "error",
        "A constraint cannot be met",
        "No group of devices that agree (or all differ) in the attribute is large enough.",
        "Ask for fewer devices, or drop the constraint.",
    ),
    Check(
        "WAIT010",
        "error",
        "Each request can be met alone, but not all together",
        "They compete for the same devices.",
        "Ask for less in one of them, or split the pod.",
    ),
    Check(
        "WAIT011",
        "error",
        "No node has enough devices",
        "Even if nothing else ran, no node publishes as many.",
        "Ask for fewer, or split the work into a gang of pods (docs/gangs.md).",
    ),
    Check(
        "WAIT012",
        "error",
        "The pod may not run on any node",
        "Its node selector, affinity or tolerations exclude all of them, or claims that it has "
        "already are on another node.",
        "Correct them; the answer counts the nodes by reason.",
    ),
    Check(
        "WAIT013",
        "error",
        "A claim or template that the pod names is not there",
        "The pod waits until somebody creates it.",
        "Create it in the namespace of the pod.",
    ),
    Check(
        "WAIT014",
        "error",
        "The claim is wrong",
        "The API server or the scheduler refuses it.",
        "The message names the field and what to write.",
    ),
    Check(
        "WAIT015",
        "error",
        "The slices of the pools are being updated, or wrong",
        "Devices of such a pool are not allocated.",
        "Wait some seconds; then `dragoon check --category api` (API011).",
    ),
    Check(
        "WAIT016",
        "warning",
        "Not known",
        "The search was given up, or the claim uses something that Dragoon does not evaluate.",
        "The message says which.",
    ),
    Check(
        "WAIT017",
        "error",
        "Nobody allocates for the pod",
        "It was bound past kube-scheduler, by `spec.nodeName` or by a scheduler that knows nothing "
        "of claims, and is in no gang.",
        "Make it anew without a node of its own, or as a gang of one (docs/other-schedulers.md).",
    ),
    Check(
        "WAIT018",
        "error",
        "Members of the gang are missing",
        "None of them gets anything before the minimum is there, with all its claims.",
        "Create the missing pods or claims, or make the gang smaller (docs/gangs.md).",
    ),
    Check(
        "WAIT019",
        "error",
        "The gang has no room now",
        "It fits when others let go; until then none of its members holds anything.",
        "Wait, or do what the answer says would help.",
    ),
    Check(
        "WAIT020",
        "error",
        "The gang does not fit, even if nothing else ran",
        "There are too few devices of that kind, or its rules exclude each other.",
        "Do what the answer says would help, or add nodes.",
    ),
)

REASONS: Final = {one.code: one for one in _TABLE}

STRANDED: Final = REASONS["WAIT017"]
"""Of pods, whatever the placement of their claims."""

_GANGS: Final = {
    Verdict.WAIT: "WAIT019",
    Verdict.NEVER: "WAIT020",
    Verdict.UNKNOWN: "WAIT016",
}
_STEPS: Final = {
    "selectors of the request": "WAIT003",
    "usable on the node": "WAIT012",
    "capacity": "WAIT004",
    "taints": "WAIT005",
    "not in use": "WAIT006",
    "capacity left": "WAIT007",
    "counters left": "WAIT008",
}


def reason(placement: Placement, claims: PodClaims, classes: Collection[str]) -> Check | None:
    """Why the claims of a placement wait; None where they do not. classes: names of those there."""
    if placement.verdict is Verdict.PLACE:
        return None
    return REASONS[_code(placement, claims, classes)]


def gang_reason(verdict: Verdict, *, complete: bool) -> Check | None:
    """Why a gang waits; None where it would be placed. complete: its minimum is there."""
    if not complete:
        return REASONS["WAIT018"]
    code = _GANGS.get(verdict)
    return None if code is None else REASONS[code]


def _code(placement: Placement, claims: PodClaims, classes: Collection[str]) -> str:
    if claims.wrong:
        return "WAIT014"
    if claims.missing:
        return "WAIT013"
    if placement.explanation is not None:
        return _of_funnel(placement.explanation, classes)
    if placement.verdict is Verdict.UNKNOWN:
        return "WAIT016"
    if not placement.failed:
        return "WAIT012"
    asked = {name for claim in claims.pending for name in _classes(claim)}
    return "WAIT014" if asked <= set(classes) else "WAIT001"


def _classes(claim: Raw) -> Iterator[str]:
    return (text(one.raw.get("deviceClassName")) for one in requests(claim))


def _of_funnel(explanation: Explanation, classes: Collection[str]) -> str:
    """By the step that takes out too many; of alternatives the last, which asks for least."""
    short = too_short(explanation)
    if not short:
        return "WAIT009" if any(one.is_short for one in explanation.groups) else "WAIT010"
    if short[-1].class_name not in classes:
        return "WAIT001"
    step = deciding_step(short[-1])
    if step is None:
        return "WAIT015" if explanation.pools else "WAIT011"
    return _STEPS.get(step.name, "WAIT002")
