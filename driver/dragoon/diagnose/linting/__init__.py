"""Lints: what people get wrong in manifests, and what to write instead.

`checks` is the table of all checks; one module per family of rules. `claims` and `reading` are
the views they share: requests wherever they stand, and what an expression reads of a device.

Invariants: a finding names object, path, what was found and what to write instead; no rule needs a
cluster, those that can use one say so; a text that is offered instead of a selector compiles.
"""

from dragoon.diagnose.codes import Check, Severity
from dragoon.diagnose.linting.checks import CHECKS
from dragoon.diagnose.linting.finding import Context, Finding
from dragoon.diagnose.linting.run import lint

__all__ = ["CHECKS", "Check", "Context", "Finding", "Severity", "lint"]
