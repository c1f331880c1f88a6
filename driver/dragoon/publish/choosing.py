"""In which forms a card is published: the node's wishes, and what the card allows now. Pure.

| card | MIG mode | somebody else's instances | forms |
|---|---|---|---|
| without MIG | - | - | whole, shared |
| Hopper and later | on or off | none | whole, shared, MIG |
| Ampere (the mode needs a reset) | off | - | whole, shared |
| Ampere | on | whatever | MIG |
| any | on | some | MIG: those instances, and what fits beside them |

Of these, the ones that the node wants. Where `mig` is not wanted the mode is nobody's to change. A
card of which nothing remains is published whole with a taint, so that people see why.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from dragoon.api import names
from dragoon.api.enforcement import NodeEnforcement
from dragoon.api.forms import ALL_PROFILES, DEFAULT, Form
from dragoon.errors import InvalidInputError
from dragoon.gpu.mig_names import ProfileName
from dragoon.gpu.model import Gpu, MigProfile
from dragoon.publish.card import Division
from dragoon.publish.counters import Place, beside
from dragoon.publish.device import Taint
from dragoon.publish.forms.mig import main_profiles
from dragoon.publish.forms.shared import obstacle

_PLAIN: Final = (Form.WHOLE, Form.SHARED)
_MODE_IS_ON: Final = "its MIG mode is on, and this node does not list the form mig"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a node wants published of its cards.

    profiles: names of MIG profiles to be offered beside the main ones, or `all`. enforcement: what
    shares can be held by.
    """

    forms: tuple[Form, ...] = DEFAULT
    profiles: frozenset[str] = frozenset()
    enforcement: NodeEnforcement = field(default_factory=NodeEnforcement)


@dataclass(frozen=True, slots=True)
class Choice:
    """The forms of one card. taint: of all its forms; problems: why not more is published."""

    forms: tuple[Form, ...]
    taint: Taint | None = None
    problems: tuple[str, ...] = ()


def choose(gpu: Gpu, division: Division | None, wishes: Wishes) -> Choice:
    """The forms of a working card. division: None where it has no MIG or could not be asked."""
    wanted, problems = list(wishes.forms), []
    if Form.SHARED in wanted:
        reason = obstacle(gpu.memory_bytes, wishes.enforcement)
        if reason:
            wanted.remove(Form.SHARED)
        if reason and wishes.enforcement.probed:
            problems.append(f"no shares: {reason}")
    possible, why = _possible(gpu, division, wishes)
    if why:
        problems.append(why)
    found = tuple(form for form in wanted if form in possible)
    if found or not why:
        return Choice(found, None, tuple(problems))
    return Choice((Form.WHOLE,), Taint.because(names.TAINT_MIG_MODE, why), tuple(problems))


def wanted_places(division: Division, wishes: Wishes) -> tuple[Place, ...]:
    """The placements to be offered: of main profiles and of those named, where there is room."""
    profiles = _profiles(division.card.profiles, wishes)
    return beside([place for place in division.places if place[0] in profiles], division.foreign)


def unmatched(divisions: Iterable[Division], wishes: Wishes) -> tuple[str, ...]:
    """What is to be known of profiles that are named, and that no card of this node offers.

    On another node they may be right: only a text that can be no name is wrong everywhere. Of a
    node where no card with MIG could be asked nothing else is told.
    """
    if Form.MIG not in wishes.forms:
        return ()
    offered = dict.fromkeys(one.name for each in divisions for one in each.card.profiles)
    told = []
    for name in sorted(wishes.profiles - {ALL_PROFILES, *offered}):
        try:
            ProfileName.parse(name)
        except InvalidInputError as error:
            told.append(f"migProfiles: {error.message}")
        else:
            if offered:
                told.append(
                    f"migProfiles: {name}: no card of this node offers it; there are "
                    f"{', '.join(offered)}"
                )
    return tuple(told)


def _possible(gpu: Gpu, division: Division | None, wishes: Wishes) -> tuple[Sequence[Form], str]:
    """What the card can be now, and what people should know about the rest."""
    if gpu.mig is None:
        return _PLAIN, ""
    if division is not None:
        return _divisible(division, wishes)
    if Form.MIG in wishes.forms:
        return (), "its MIG state could not be read"
    return ((), _MODE_IS_ON) if gpu.mig.enabled else (_PLAIN, "")


def _divisible(division: Division, wishes: Wishes) -> tuple[Sequence[Form], str]:
    wants_mig = Form.MIG in wishes.forms
    if wants_mig and division.card.resetless and not division.foreign:
        return tuple(Form), ""
    if not division.card.mode.enabled:
        return (
            _PLAIN,
            "no MIG: its mode is off, and turning it on needs a reset" if wants_mig else "",
        )
    if wants_mig:
        return (Form.MIG,), _bound(division, wishes)
    return (), _MODE_IS_ON


def _bound(division: Division, wishes: Wishes) -> str:
    if set(wishes.forms) == {Form.MIG}:
        return ""
    if division.foreign:
        return f"only MIG: it has {len(division.foreign)} MIG instances of somebody else"
    return "only MIG: its mode is on, and turning it off needs a reset"


def _profiles(profiles: tuple[MigProfile, ...], wishes: Wishes) -> tuple[MigProfile, ...]:
    if ALL_PROFILES in wishes.profiles:
        return profiles
    main = main_profiles(profiles)
    return tuple(one for one in profiles if one in main or one.name in wishes.profiles)
