"""Which devices a claim gets: what kube-scheduler's structured allocator allows, in pure Python.

May import dragoon.cel, dragoon.errors, dragoon.quantity, dragoon.semver. Pure: raw objects in,
results out; no I/O, no clock, no random numbers.

Invariants: a result is what kube-scheduler 1.37 with default gates would write, or none is given;
what is not done exactly is refused with UnsupportedError, naming the field; nothing that is passed
in is changed; `verifier` shares no logic with the search.

Done so far: exact counts, selectors, matchAttribute, taints, node selection. Refused: All,
firstAvailable, adminAccess, distinctAttribute, capacity requests, derived attributes, and devices
with counters or shares.

Parts, in the order data flow: slices and claims (raw to views), pools, usage, selection, taints,
constraints, search, result; funnel and explanation for the reasons.
"""

from dragoon.allocator.allocate import (
    Allocated,
    Kind,
    Snapshot,
    Unsatisfiable,
    allocate,
    allocate_on,
    snapshot,
)
from dragoon.allocator.explanation import lines, reason
from dragoon.allocator.funnel import Explanation, Funnel, Group, GroupFinding, Loser, PoolNote, Step
from dragoon.allocator.model import DeviceId
from dragoon.allocator.verifier import verify

__all__ = [
    "Allocated",
    "DeviceId",
    "Explanation",
    "Funnel",
    "Group",
    "GroupFinding",
    "Kind",
    "Loser",
    "PoolNote",
    "Snapshot",
    "Step",
    "Unsatisfiable",
    "allocate",
    "allocate_on",
    "lines",
    "reason",
    "snapshot",
    "verify",
]
