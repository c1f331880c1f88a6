"""How well a node can hold the shares of one GPU apart.

`prepare` probes which tiers work and applies one of them to a share; `publish` says in attributes
what was found, so that classes and claims can demand it. A tier that was not found is never used.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self


class Tier(enum.StrEnum):
    """The ways to make a part of a GPU real."""

    MIG = "mig"
    CGROUP = "cgroup"
    HAMI = "hami"
    NONE = "none"


class Memory(enum.StrEnum):
    """How a limit on memory is kept; as published in `memoryEnforcement`."""

    HARD = "hard"
    INTERCEPTED = "intercepted"
    NONE = "none"


class Compute(enum.StrEnum):
    """How a limit on compute is kept; as published in `computeEnforcement`."""

    HARD = "hard"
    BEST_EFFORT = "best-effort"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Strength:
    """What a tier does about each limit."""

    memory: Memory
    compute: Compute


STRENGTHS: Final[Mapping[Tier, Strength]] = {
    Tier.MIG: Strength(Memory.HARD, Compute.HARD),
    Tier.CGROUP: Strength(Memory.HARD, Compute.NONE),
    Tier.HAMI: Strength(Memory.INTERCEPTED, Compute.BEST_EFFORT),
    Tier.NONE: Strength(Memory.NONE, Compute.NONE),
}


@dataclass(frozen=True, slots=True)
class NodeEnforcement:
    """The tiers that a node can apply to shares, the one used by default first.

    `none` is among them only where the administrator chose it. unavailable: why each of the others
    is not. Nothing found means that GPUs of this node cannot be shared.
    """

    tiers: tuple[Tier, ...] = ()
    unavailable: Mapping[Tier, str] = field(default_factory=dict)

    @classmethod
    def of(cls, tiers: Iterable[Tier], unavailable: Mapping[Tier, str] | None = None) -> Self:
        """The tiers in the order given, each once. `mig` makes no shares and is not among them."""
        usable = dict.fromkeys(tier for tier in tiers if tier is not Tier.MIG)
        return cls(tuple(usable), unavailable or {})

    @property
    def probed(self) -> bool:
        """Whether anything was found out yet: a tier that does not work has its reason here."""
        return bool(self.tiers or self.unavailable)

    @property
    def default(self) -> Tier | None:
        """The tier of a share whose claim asks for none; None where GPUs cannot be shared."""
        return self.tiers[0] if self.tiers else None

    @property
    def strength(self) -> Strength | None:
        """What the default tier does; None where GPUs cannot be shared."""
        return None if self.default is None else STRENGTHS[self.default]
