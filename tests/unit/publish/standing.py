"""Slices as they stand in an API server, and what becomes of them by a plan: no server needed."""

import copy
from collections.abc import Sequence
from itertools import count
from typing import Any

from dragoon.publish.reconciling import Plan, Target
from dragoon.publish.slices import Pool
from tests.unit.publish.nodes import DRIVER, NODE, NODE_UID

Object = dict[str, Any]

POOL = Pool(DRIVER, NODE, NODE_UID)
TAINT = {"key": "dragoon.dev/lost", "effect": "NoSchedule"}
_numbers = count(1)


def device(number: int, **fields: Any) -> Object:
    return {"name": f"gpu-{number}", "attributes": {"type": {"string": "gpu"}}, **fields}


def target(*parts: Sequence[Object]) -> Target:
    return Target(POOL, tuple({"devices": list(part)} for part in parts))


def stored(body: Object) -> Object:
    """What the server would make of a create or update."""
    number = next(_numbers)
    body = copy.deepcopy(body)
    meta = body["metadata"]
    meta.setdefault("name", f"{meta.get('generateName')}{number:05d}")
    meta.setdefault("uid", f"uid-{number}")
    meta["resourceVersion"] = str(number)
    for each in body["spec"].get("devices", ()):
        for taint in each.get("taints", ()):
            taint.setdefault("timeAdded", "2026-11-29T10:00:00Z")
    return body


def standing(wanted: Target, generation: int = 1) -> list[Object]:
    return [stored(wanted.slice_(index, generation)) for index in range(len(wanted.parts))]


def applied(observed: Sequence[Object], plan: Plan) -> list[Object]:
    """The slices after a plan was carried out."""
    gone = {each.uid for each in plan.deletes}
    gone |= {each.body["metadata"].get("uid") for each in plan.writes}
    left = [each for each in observed if each["metadata"]["uid"] not in gone]
    return [*left, *(stored(each.body) for each in plan.writes)]
