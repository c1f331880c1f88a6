"""docs/checks.md: everything that lint, check and explain can find, made from their tables."""

from typing import Final

from dragoon.diagnose import codes
from dragoon.diagnose.checking import CATEGORIES
from dragoon.diagnose.linting import CHECKS as LINTS
from dragoon.diagnose.waiting import REASONS

_CHECKS: Final = """\
# Checks

Every code is stable: it never changes its meaning. Of the severities only an error makes a command
end with 1. This page is made from the code; a test compares them.

## What `dragoon check` finds

On a node it looks at the node and at the cluster, elsewhere at the cluster alone; what it cannot look
at is `not checked`, with the reason. `--pre` makes only the checks that make sense before anything
is installed, `--category api,state` only those of some categories, which is what a pod in the cluster
can do. `-o json` for programs. Exit code 3: nothing at all could be checked.
"""
_REASONS: Final = """\
## Why `dragoon explain` says that a claim waits

Of the node that comes nearest. The funnel says what each step left, with the values; what would help
is tried on a copy of the cluster before it is offered.
"""
_LINTS: Final = """\
## What `dragoon lint` finds

In manifests, without a cluster; `dragoon explain` and `dragoon simulate` say the same of what is
applied already.
"""


def checks() -> str:
    """The page."""
    parts = [_CHECKS]
    for name, rules in CATEGORIES.items():
        parts += [f"### Category {name}", "", *codes.overview(rule.check for rule in rules)]
    parts += [_REASONS, *codes.overview(REASONS.values())]
    parts += [_LINTS, *codes.overview(LINTS.values()), "## Each in detail", ""]
    for rules in CATEGORIES.values():
        parts += codes.sections(rule.check for rule in rules)
    parts += codes.sections((*REASONS.values(), *LINTS.values()))
    return "\n".join(parts)
