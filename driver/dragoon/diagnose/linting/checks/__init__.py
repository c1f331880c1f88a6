"""The table of what `dragoon lint` finds: stable codes, why it matters, what to do."""

from typing import Final

from dragoon.diagnose.linting.checks import gangs, objects, wishes

CHECKS: Final = {check.code: check for check in (*objects.CHECKS, *wishes.CHECKS, *gangs.CHECKS)}
