"""What programs can rely on: the version of answers, and stable codes, as in docs/checks.md.

A code never changes its meaning: it stands in output that programs read, and is an anchor of the
page.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

API_VERSION: Final = "diagnose.dragoon.dev/v1"
"""Of everything that the commands print as data."""

Severity = Literal["error", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
"""The worst first."""

PAGE: Final = "docs/checks.md"


@dataclass(frozen=True, slots=True)
class Check:
    """One check. title: what is found. why: what happens because of it. remedy: what to do."""

    code: str
    severity: Severity
    title: str
    why: str
    remedy: str

    @property
    def anchor(self) -> str:
        """Where the documentation says more."""
        return f"{PAGE}#{self.code.lower()}"

    def data(self) -> dict[str, Any]:
        """For JSON and YAML: the check itself, not what it found."""
        return {
            "code": self.code,
            "severity": self.severity,
            "title": self.title,
            "why": self.why,
            "remedy": self.remedy,
            "docs": self.anchor,
        }


def overview(checks: Iterable[Check]) -> Iterator[str]:
    """The checks as a Markdown table."""
    yield from ("| code | severity | finds |", "|---|---|---|")
    yield from (
        f"| [{one.code}](#{one.code.lower()}) | {one.severity} | {one.title} |" for one in checks
    )
    yield ""


def sections(checks: Iterable[Check]) -> Iterator[str]:
    """A section for each check, under its anchor."""
    for one in checks:
        yield from (f"### {one.code}", "", f"{one.title} ({one.severity}).", "")
        yield from (one.why, "", one.remedy, "")
