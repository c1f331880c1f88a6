"""The answers as plain data for JSON and YAML: versioned, as programs read them."""

from typing import Any

from dragoon.allocator import Explanation
from dragoon.diagnose.codes import API_VERSION, Check
from dragoon.diagnose.explaining import Explained, Given
from dragoon.diagnose.gangs import GangAnswer
from dragoon.diagnose.placing import Placement
from dragoon.diagnose.remedies import Remedies
from dragoon.diagnose.simulating import Simulated, Simulation

Data = dict[str, Any]


def explained(answer: Explained) -> Data:
    """What `dragoon explain` answers."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Explanation",
        "about": {"kind": answer.kind, "name": answer.name},
        "state": answer.state,
        "message": answer.message,
        "cause": None if answer.cause is None else _cause(answer.cause),
        "allocated": [_given(one) for one in answer.given],
        "pending": list(answer.pending),
        "placement": None if answer.placement is None else placement(answer.placement),
        "remedies": None if answer.remedies is None else _remedies(answer.remedies),
        "gang": None if answer.gang is None else gang(answer.gang),
        "findings": [one.data() for one in answer.findings],
        "notes": list(answer.notes),
    }


def simulated(answer: Simulation) -> Data:
    """What `dragoon simulate` answers."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Simulation",
        "items": [_group(group) for group in answer.groups],
        "notes": list(answer.notes),
    }


def placement(found: Placement) -> Data:
    """A placement with its funnel."""
    return {
        "verdict": found.verdict.value,
        "message": found.message,
        "node": found.node,
        "nodes": {"looked": found.looked, "fitting": found.fitting},
        "refusedNodes": [{"reason": reason, "nodes": count} for reason, count in found.refused],
        "otherNodes": [{"reason": reason, "nodes": count} for reason, count in found.others],
        "funnel": None if found.explanation is None else funnel(found.explanation),
    }


def gang(found: GangAnswer) -> Data:
    """What the planner says of a gang."""
    return {
        "name": found.name,
        "verdict": found.verdict.value,
        "message": found.message,
        "reasons": list(found.reasons),
        "change": found.change,
        "instead": found.instead,
        "notes": list(found.notes),
        "members": [
            {"pod": str(one.pod), "node": one.node}
            for one in (found.plan.placements if found.plan else ())
        ],
    }


def funnel(explanation: Explanation) -> Data:
    """The allocator's explanation: per request each step with its losers."""
    return {
        "node": explanation.node,
        "requests": [
            {
                "claim": one.claim,
                "request": one.request,
                "class": one.class_name,
                "needed": one.needed,
                "devices": one.total,
                "steps": [
                    {
                        "name": step.name,
                        "left": step.left,
                        "lost": step.lost,
                        "losers": [
                            {"device": str(loser.device), "reason": loser.reason}
                            for loser in step.losers
                        ],
                    }
                    for step in one.steps
                ],
                "chosen": [str(device) for device in one.chosen],
            }
            for one in explanation.funnels
        ],
        "constraints": [
            {
                "claim": one.claim,
                "attribute": one.attribute,
                "needed": one.needed,
                "groups": [
                    {"value": group.value, "devices": [str(device) for device in group.devices]}
                    for group in one.groups
                ],
                "without": [str(device) for device in one.without],
            }
            for one in explanation.groups
        ],
        "pools": [{"pool": one.pool, "problem": one.problem} for one in explanation.pools],
    }


def _cause(check: Check) -> Data:
    return {
        "code": check.code,
        "title": check.title,
        "remedy": check.remedy,
        "docs": check.anchor,
    }


def _given(one: Given) -> Data:
    return {
        "claim": one.claim,
        "nodes": list(one.nodes),
        "devices": [device.data() for device in one.devices],
        "reservedFor": list(one.users),
        "why": list(one.why),
    }


def _remedies(found: Remedies) -> Data:
    return {
        "offered": [one.data() for one in found.offered],
        "tried": found.tried,
        "complete": found.complete,
    }


def _group(group: Simulated) -> Data:
    return {
        "object": group.object,
        "role": group.role,
        "verdict": group.verdict.value,
        "pods": group.wanted,
        "placed": [
            {
                "name": one.name,
                "node": one.node,
                "devices": [device.data() for device in one.devices],
            }
            for one in group.placed
        ],
        "placement": None if group.placement is None else placement(group.placement),
        "remedies": None if group.remedies is None else _remedies(group.remedies),
        "gang": None if group.gang is None else gang(group.gang),
    }
