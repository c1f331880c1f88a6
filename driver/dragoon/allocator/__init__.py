"""Which devices a claim gets: what kube-scheduler's structured allocator allows, in pure Python.

May import dragoon.cel, dragoon.errors, dragoon.quantity, dragoon.semver. Pure: raw objects in,
results out; no I/O, no clock. Share IDs are the only thing that is random, and are injected.

Invariants: a result is what kube-scheduler 1.37 with default gates would write, or none is given;
what is not done exactly (derived attributes) is refused with UnsupportedError, naming the field;
nothing that is passed in is changed; a snapshot never changes; `ClusterState` after any events is
what it would be if made anew from the objects; `verifier` shares no logic with the search.

Parts, in the order data flow: slices and claims (raw to records), interning, pools, usage;
cluster_state and snapshot hold them; selection, candidates, constraints, taints, trial, problem and
search, result; findings, losing, funnel and explanation for the reasons. `gang` places the pods of
a gang together, on top of all of these; nothing here imports it.
"""

from dragoon.allocator.allocate import (
    Allocated,
    Answer,
    Kind,
    Unsatisfiable,
    allocate,
    allocate_anywhere,
    allocate_on,
    allocate_over,
    snapshot,
)
from dragoon.allocator.cluster_state import ClusterState
from dragoon.allocator.explanation import lines, reason
from dragoon.allocator.findings import (
    Explanation,
    Funnel,
    Group,
    GroupFinding,
    Loser,
    PoolNote,
    Step,
)
from dragoon.allocator.model import DeviceId
from dragoon.allocator.snapshot import Snapshot
from dragoon.allocator.verifier import verify

__all__ = [
    "Allocated",
    "Answer",
    "ClusterState",
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
    "allocate_anywhere",
    "allocate_on",
    "allocate_over",
    "lines",
    "reason",
    "snapshot",
    "verify",
]
