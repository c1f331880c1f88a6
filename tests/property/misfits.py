"""Pods that do not fit, as questions to `explain`, and its changes made on the raw objects.

A change is made again from what is told of it: nothing of the trial that came before is used.
"""

import copy
import re
from typing import Any

from dragoon.allocator import Allocated, allocate
from dragoon.diagnose.cluster import Cluster
from dragoon.diagnose.pods import PodClaims
from dragoon.diagnose.remedies import Remedy
from dragoon.diagnose.snapshot import ClusterSnapshot
from dragoon.errors import DragoonError
from tests.property.allocator_scenes import Scene

Raw = dict[str, Any]
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_CEL = ".cel.expression"


def snapshot(scene: Scene) -> ClusterSnapshot:
    """What `explain` reads of a cluster."""
    return ClusterSnapshot(
        classes=tuple(scene.classes),
        slices=tuple(scene.slices),
        claims=(*scene.held, *scene.claims),
        nodes=(scene.node,),
        taint_rules=tuple(scene.rules),
    )


def asked(scene: Scene) -> tuple[Cluster, PodClaims]:
    """The question to `remedies` and `place`."""
    return Cluster(snapshot(scene)), PodClaims(pending=tuple(scene.claims))


def changed(scene: Scene, remedy: Remedy) -> Scene:
    """The scene after somebody did what the remedy says."""
    after = copy.deepcopy(scene)
    if remedy.kind == "holder":
        gone = set(remedy.claim.split(", "))
        after.held = [one for one in after.held if name(one) not in gone]
        return after
    (claim,) = [one for one in after.claims if name(one) == remedy.claim]
    steps = [int(index) if index else key for index, key in _STEP.findall(remedy.path)]
    if remedy.path.endswith(_CEL) and not remedy.after:
        steps = steps[:-2]
    holder: Any = claim
    for step in steps[:-1]:
        holder = holder.setdefault(step, {}) if isinstance(step, str) else holder[step]
    last: Any = steps[-1]
    if remedy.kind == "toleration":
        holder.setdefault(last, []).append(toleration(remedy.after))
    elif remedy.kind == "count" and remedy.after.startswith("count: "):
        holder["allocationMode"] = "ExactCount"
        holder["count"] = int(remedy.after.removeprefix("count: "))
    elif remedy.kind == "count":
        holder[last] = int(remedy.after)
    elif remedy.after:
        holder[last] = remedy.after
    else:
        del holder[last]
    return after


def toleration(text: str) -> Raw:
    taint, _, effect = text.rpartition(":")
    key, equals, value = taint.partition("=")
    if equals:
        return {"key": key, "operator": "Equal", "value": value, "effect": effect}
    return {"key": key, "operator": "Exists", "effect": effect}


def name(claim: Raw) -> str:
    return f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"


def fits(scene: Scene) -> bool | None:
    """Whether the claims fit as they are, None where Dragoon does not say."""
    try:
        return isinstance(allocate(scene.claims, **scene.arguments()), Allocated)
    except DragoonError:
        return None
