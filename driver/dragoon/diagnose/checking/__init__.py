"""Checks of an installation: what is wrong with a node or a cluster, why, and what to do.

`evidence` is what was found, gathered by `dragoon.app.evidence`; one module per category has the
checks, each with its stable code and its texts beside the function that looks; `run` runs them.

Invariants: everything here is pure; a check says what is wrong, never that something may be; one
whose evidence could not be gathered is not checked and says why; the undamaged world has no
finding.
"""

from dragoon.diagnose.checking.evidence import Evidence, Unread
from dragoon.diagnose.checking.run import (
    CATEGORIES,
    CHECKS,
    OF_CLUSTER,
    OF_NODE,
    Report,
    Result,
    rules,
    run,
)

__all__ = [
    "CATEGORIES",
    "CHECKS",
    "OF_CLUSTER",
    "OF_NODE",
    "Evidence",
    "Report",
    "Result",
    "Unread",
    "rules",
    "run",
]
