"""What a map consists of: nodes with their cards, claims that hold them, gangs, what waits."""

import enum
from dataclasses import dataclass, field
from typing import Final

NO_MEMORY: Final = 0


class State(enum.StrEnum):
    """How a card is used now. The forms exclude each other on one card."""

    FREE = "free"
    WHOLE = "whole"
    SHARED = "shared"
    MIG = "mig"
    UNUSABLE = "unusable"
    """Nobody holds it, and every device of it has a taint that keeps claims off."""


@dataclass(frozen=True, slots=True)
class Hold:
    """One device of a card that a claim has. memory: bytes, NO_MEMORY where it is not told."""

    claim: str
    device: str
    memory: int = NO_MEMORY


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU. memory: bytes, NO_MEMORY where it is not told. fill: how much is held, per cent.

    domain: its NVLink domain, empty without. forms: in which it is published. taints: those of its
    devices, `key=value:effect`.
    """

    address: str
    product: str
    memory: int
    domain: str
    state: State
    fill: int
    forms: tuple[str, ...]
    holds: tuple[Hold, ...] = ()
    taints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """One node. places: under which values it is grouped: zone, rack, clique, state and so on.

    fences: DeviceTaintRules that keep claims off its pool, in words.
    """

    name: str
    cards: tuple[Card, ...]
    places: tuple[tuple[str, str], ...] = ()
    fences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim that holds cards: the pods that use it, and their gang, empty without."""

    name: str
    pods: tuple[str, ...]
    gang: str = ""


@dataclass(frozen=True, slots=True)
class GangLine:
    """A gang. lines: why it waits; change: what would help: as `dragoon explain` says it."""

    name: str
    phase: str
    ready: int
    size: int
    message: str = ""
    lines: tuple[str, ...] = ()
    change: str = ""


@dataclass(frozen=True, slots=True)
class ClusterMap:
    """The map. waiting: pods outside of gangs with claims that have no devices."""

    source: str
    driver: str
    nodes: tuple[Node, ...] = ()
    claims: tuple[Holder, ...] = ()
    gangs: tuple[GangLine, ...] = ()
    waiting: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    counts: dict[State, int] = field(default_factory=dict)
    """How many cards are in each state."""
