"""What is done about Workloads and AdmissionChecks. Frozen."""

from dataclasses import dataclass

from dragoon.gang.kueue.model import Raw, State
from dragoon.gang.protocol.model import Ref


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the planner. hold: promise what it gives to the Workload."""

    hold: bool


@dataclass(frozen=True, slots=True)
class Drop:
    """The promise to a Workload is over. why: for the log."""

    why: str


@dataclass(frozen=True, slots=True)
class Again:
    """Look at the Workload again at this tick."""

    tick: float


@dataclass(frozen=True, slots=True)
class Say:
    """Write the states of checks: all entries as they are to be, ours and those of others.

    state: the new one of ours, None where only their message is another. at_once: Kueue is not to
    wait for the time of the next try.
    """

    workload: Ref
    state: State | None
    message: str
    checks: tuple[Raw, ...]
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Wake:
    """Let Kueue try a Workload again now, though its time has not come."""

    workload: Ref


@dataclass(frozen=True, slots=True)
class SetConditions:
    """Write the conditions of an AdmissionCheck, all of them."""

    check: Ref
    conditions: tuple[Raw, ...]


Action = Ask | Drop | Again | Say | Wake
