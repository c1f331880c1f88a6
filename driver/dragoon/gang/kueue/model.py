"""Kueue's Workloads and AdmissionChecks as far as they are decided on. Frozen."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from dragoon.gang.protocol.model import Ref
from dragoon.kube.mirror import Key

Raw = Mapping[str, Any]


class State(enum.StrEnum):
    """Of a check of a Workload (kueue.x-k8s.io CheckState)."""

    PENDING = "Pending"
    READY = "Ready"
    RETRY = "Retry"
    """Kueue takes the quota back and tries again after requeueAfterSeconds."""
    REJECTED = "Rejected"
    """Kueue deactivates the Workload; a person has to activate it again."""


@dataclass(frozen=True, slots=True)
class CheckState:
    """One entry of status.admissionChecks. since: of the state.

    retries: how often it was Retry. asks_to_wait: whether it set a time for the next try.
    """

    name: str
    state: State
    since: datetime
    message: str = ""
    retries: int = 0
    asks_to_wait: bool = False
    raw: Raw = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of one template. count: as admitted. flavors: the ResourceFlavors that it was given.

    node_selector, tolerations: what other checks add to its pods. has_topology: Kueue has chosen
    where they go itself.
    """

    name: str
    count: int
    template: Raw = field(compare=False)
    flavors: tuple[str, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Raw, ...] = ()
    has_topology: bool = False

    @property
    def claims(self) -> tuple[Raw, ...]:
        """spec.resourceClaims of the pods."""
        return tuple((self.template.get("spec") or {}).get("resourceClaims") or ())


ADMISSION_CHECK: Final = "AdmissionCheck"
"""Reason of an eviction by a check."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A Workload. owners: the kinds of its owners. reserved: it has quota. evicted: why, if it is.

    requeue_at: before that Kueue does not try it again.
    """

    ref: Ref
    created: str
    priority: int
    owners: tuple[str, ...]
    podsets: tuple[PodSet, ...]
    checks: tuple[CheckState, ...] = ()
    reserved: bool = False
    admitted: bool = False
    finished: bool = False
    active: bool = True
    deleting: bool = False
    evicted: str = ""
    requeue_at: datetime | None = None

    @property
    def key(self) -> Key:
        return Key(self.ref.namespace, self.ref.name)

    @property
    def may_start(self) -> bool:
        """Whether it has quota, and checks that are all ready."""
        return (
            self.reserved
            and bool(self.checks)
            and all(one.state is State.READY for one in self.checks)
        )

    @property
    def is_over(self) -> bool:
        return self.finished or self.deleting or not self.active

    @property
    def members(self) -> int:
        """Pods that use claims."""
        return sum(one.count for one in self.podsets if one.claims)

    @property
    def pod_priority(self) -> int:
        """The priority of its pods: that of the Workload, where their class decides about it."""
        specs = (one.template.get("spec") or {} for one in self.podsets)
        return self.priority if any(one.get("priorityClassName") for one in specs) else 0

    @property
    def waits(self) -> bool:
        """Whether a check has sent it back and it has not been tried again yet."""
        if self.is_over:
            return False
        if self.reserved:
            return any(one.state is State.RETRY for one in self.checks)
        return self.evicted == ADMISSION_CHECK

    def __str__(self) -> str:
        return f"{self.ref.namespace}/{self.ref.name}"


@dataclass(frozen=True, slots=True)
class Check:
    """An AdmissionCheck. parameters: what it refers to, empty where it does not."""

    ref: Ref
    controller: str
    parameters: str = ""
    generation: int = 0
    conditions: tuple[Raw, ...] = field(default=(), compare=False)
