"""Runs the checks of some categories over what was gathered."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dragoon.diagnose.checking import api, gang, host, kubelet, runtime, state
from dragoon.diagnose.checking.evidence import Evidence, Problem, Rule
from dragoon.diagnose.codes import SEVERITIES, Check, Severity
from dragoon.diagnose.snapshot import NotReadError

CATEGORIES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "host": host.RULES,
    "runtime": runtime.RULES,
    "kubelet": kubelet.RULES,
    "api": api.RULES,
    "state": state.RULES,
    "gang": gang.RULES,
}
"""In this order: what comes earlier is often the cause of what comes later."""

OF_NODE: Final = ("host", "runtime", "kubelet", "state")
"""Those with checks that look at a node."""
OF_CLUSTER: Final = ("runtime", "api", "state", "gang")
"""Those with checks that look at what an API server told."""

CHECKS: Final = {rule.check.code: rule.check for rules in CATEGORIES.values() for rule in rules}


@dataclass(frozen=True, slots=True)
class Result:
    """One check. skipped: why it was not made, empty if it was."""

    category: str
    check: Check
    problems: tuple[Problem, ...] = ()
    skipped: str = ""

    @property
    def state(self) -> str:
        """`ok`, `not checked`, or how bad it is."""
        if self.skipped:
            return "not checked"
        return self.check.severity if self.problems else "ok"

    def is_as_bad_as(self, severity: Severity) -> bool:
        """Whether it found something, and that is at least so bad."""
        bad = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return bool(self.problems) and self.check.severity in bad

    def data(self) -> dict[str, Any]:
        """For JSON and YAML."""
        return {
            "code": self.check.code,
            "category": self.category,
            "title": self.check.title,
            "state": self.state,
            "severity": self.check.severity,
            "problems": [
                {"about": one.about, "found": one.found, "next": one.after} for one in self.problems
            ],
            "remedy": self.check.remedy,
            "notChecked": self.skipped,
            "docs": self.check.anchor,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All checks that were asked for, in order."""

    results: tuple[Result, ...]

    @property
    def found(self) -> tuple[Result, ...]:
        """Those that found something."""
        return tuple(one for one in self.results if one.problems)

    @property
    def is_fine(self) -> bool:
        """No error; warnings are fine."""
        return not any(one.is_as_bad_as("error") for one in self.results)

    @property
    def is_blind(self) -> bool:
        """Nothing at all could be checked, for want of rights or of answers."""
        return all(one.skipped or one.check.code == api.LACKS_A_RIGHT for one in self.results)


def run(
    evidence: Evidence, categories: Iterable[str] = tuple(CATEGORIES), *, before: bool = False
) -> Report:
    """Makes the checks of some categories; before: only those that make sense before an install."""
    return Report(
        tuple(_result(name, rule, evidence) for name, rule in rules(categories, before=before))
    )


def rules(categories: Iterable[str], *, before: bool = False) -> Iterator[tuple[str, Rule]]:
    """The checks of some categories, each with its category; before: as for `run`."""
    for name in categories:
        for rule in CATEGORIES[name]:
            if rule.before or not before:
                yield name, rule


def _result(category: str, rule: Rule, evidence: Evidence) -> Result:
    try:
        return Result(category, rule.check, tuple(rule.look(evidence)))
    except NotReadError as error:
        return Result(category, rule.check, skipped=error.why)
