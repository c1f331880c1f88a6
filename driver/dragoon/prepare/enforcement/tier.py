"""The interface of the tiers: what a share needs to be made real, and what each tier answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import Tier
from dragoon.api.opaque_config import Priority
from dragoon.gpu.model import Gpu, Inventory, PciAddress
from dragoon.prepare import cdi
from dragoon.prepare.enforcement.hami_steps import Library, Region
from dragoon.prepare.enforcement.memory_cap import MemoryCap
from dragoon.prepare.enforcement.time_slice import SetTimeSlice
from dragoon.prepare.shares import Amount

ShareStep = Library | Region | MemoryCap | SetTimeSlice
"""What a tier may have done on the node."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What one container may use of one card: the sum of its shares there. See `Amount`."""

    gpu: Gpu
    memory: int
    cores: int


@dataclass(frozen=True, slots=True)
class Container:
    """A container that sees GPUs of ours.

    limits: every GPU that it sees, by PCI address: number N is CUDA's ordinal N when
    CUDA_DEVICE_ORDER is PCI_BUS_ID (case C24). variables: the names of its environment.
    """

    name: str
    limits: tuple[Limit, ...]
    variables: frozenset[str] = frozenset()
    priority: Priority = Priority.LOW


@dataclass(frozen=True, slots=True)
class Pod:
    """The one pod that may use a claim. memory: the sum of its shares by card, bytes."""

    uid: str
    memory: Mapping[PciAddress, int] = field(default_factory=dict)
    containers: tuple[Container, ...] = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """One share that is to be made real.

    pod is None for tiers that need none; container where no container of the pod sees the share.
    """

    claim: ClaimRef
    request: str
    gpu: Gpu
    amount: Amount
    pod: Pod | None = None
    container: Container | None = None


@dataclass(frozen=True, slots=True)
class Measures:
    """What makes a share real: steps on the node, and what its containers get."""

    steps: tuple[ShareStep, ...] = ()
    edits: cdi.Edits = field(default_factory=cdi.Edits)


class EnforcementTier(Protocol):
    """One way to keep shares to their limits. Its steps apply, verify and undo what it planned."""

    @property
    def name(self) -> Tier:
        """Which tier this is."""
        ...

    @property
    def needs_pod(self) -> bool:
        """Whether it must know the pod and its containers, so that only one pod can be served."""
        ...

    def probe(self, inventory: Inventory) -> str:
        """Why this node cannot do it; empty where it can, proved as far as it can be. Blocks."""
        ...

    def plan(self, grant: Grant) -> Measures:
        """What a share needs. Pure. Raises UnenforceableError for what this tier cannot keep."""
        ...
