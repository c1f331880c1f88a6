"""Tables of damages: what is found, and how it comes about."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from dragoon.diagnose.checking import CHECKS, Report

World = TypeVar("World")
Damage = Callable[[World], Awaitable[None]]


class Damages(Generic[World]):
    """Rows of a code, what is said with it, and the damage to a world."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, Damage[World]]] = []

    def row(self, code: str, said: str) -> Callable[[Damage[World]], Damage[World]]:
        """Puts the damage that follows into the table."""

        def keep(damage: Damage[World]) -> Damage[World]:
            self.rows.append((code, said, damage))
            return damage

        return keep

    @property
    def names(self) -> list[str]:
        return [damage.__name__ for *_, damage in self.rows]


def codes(report: Report) -> set[str]:
    return {one.check.code for one in report.found}


def assert_told(report: Report, code: str, about: str) -> None:
    """There is the finding, about that, with all that a person needs to know."""
    found = {one.check.code: one for one in report.found}
    assert code in found
    problem = next(one for one in found[code].problems if one.about.startswith(about))
    assert problem.found
    assert problem.after
    assert CHECKS[code].remedy
