"""What verdicts lead to, as an administrator set it. Parsing raises ConfigError."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dragoon.errors import ConfigError
from dragoon.health.verdict import Effect, Kind

DEFAULT_EFFECTS: Final[Mapping[Kind, Effect]] = {
    Kind.LOST: Effect.NO_SCHEDULE,
    Kind.XID: Effect.NO_SCHEDULE,
    Kind.MEMORY: Effect.NO_SCHEDULE,
    Kind.MEMORY_PENDING: Effect.NO_SCHEDULE,
    Kind.RECOVERY: Effect.NO_SCHEDULE,
    # A card outside its fabric serves who asks for one card (case C10), and whoever wants several
    # asks for nvlinkDomain or fabricClique, which it does not have then.
    Kind.FABRIC: Effect.NONE,
    Kind.NVLINK: Effect.NONE,
    Kind.UNWATCHED: Effect.NONE,
}


@dataclass(frozen=True, slots=True)
class HealthSettings:
    """effects: by kind. harmless: XIDs to be ignored beside those that applications cause.

    trust_unknown: an XID that this version does not know is told, and leads to nothing.
    """

    effects: Mapping[Kind, Effect] = field(default_factory=lambda: DEFAULT_EFFECTS)
    harmless: frozenset[int] = frozenset()
    trust_unknown: bool = False


def parse_effects(text: str, where: str) -> Mapping[Kind, Effect]:
    """`xid=NoExecute,fabric=NoSchedule` over the defaults."""
    effects = dict(DEFAULT_EFFECTS)
    for item in filter(None, text.split(",")):
        name, _, wanted = item.partition("=")
        if name not in set(Kind):
            raise ConfigError(f"{where}: found {name!r}, allowed are {', '.join(Kind)}")
        if wanted not in set(Effect):
            raise ConfigError(f"{where}: {name}: found {wanted!r}, allowed are {', '.join(Effect)}")
        if (Kind(name), Effect(wanted)) == (Kind.LOST, Effect.NONE):
            raise ConfigError(
                f"{where}: lost: found 'None', allowed are NoSchedule, NoExecute",
                hint="a lost GPU without a taint would be given to the next claim",
            )
        effects[Kind(name)] = Effect(wanted)
    return effects


def parse_xids(text: str, where: str) -> frozenset[int]:
    """`92,121`."""
    found = [item for item in text.split(",") if item]
    for item in found:
        if not (item.isascii() and item.isdigit() and len(item) <= 5):
            raise ConfigError(f"{where}: found {item!r}, allowed are numbers of XIDs, with commas")
    return frozenset(map(int, found))
