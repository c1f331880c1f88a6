"""What the loops remember of a Workload, and whom they tell."""

from dataclasses import dataclass
from typing import Protocol

from dragoon.gang.protocol.model import Ref


class Reporter(Protocol):
    """Who is told of verdicts: metrics and events are behind it."""

    def checked(self, workload: Ref, state: str, message: str) -> None:
        """A state was written."""
        ...

    def promises(self, count: int) -> None:
        """So many Workloads are promised devices now."""
        ...

    def kueue(self, state: str) -> None:
        """Whether Kueue is there: `absent`, `Half`, `Version`, or the version that is spoken."""
        ...


@dataclass(slots=True)
class Memory:
    """What this process remembers of a Workload; all of it can be lost."""

    never_since: float | None = None
    not_before: float = 0.0
    known: str = ""
    reminded: float = 0.0
    rebuilt: bool = False
    rested: float = 0.0

    def never_for(self, tick: float, *, never: bool) -> float:
        """Seconds for which the answer has been NEVER, by whether the one of this tick is."""
        if not never:
            self.never_since = None
            return 0.0
        if self.never_since is None:
            self.never_since = tick
        return tick - self.never_since
