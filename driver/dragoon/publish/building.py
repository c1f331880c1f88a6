"""One working card as devices: the forms chosen for it, and those that are on their way out. Pure.

A device that is not offered any more stays published, with a taint, as long as it is among `kept`
(`withdrawing` says how long): a device that somebody holds and that is gone from the slices takes
no counters, and its card would be given away again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dragoon.api import names
from dragoon.api.finding import Finding
from dragoon.api.forms import Form
from dragoon.gpu.mig import MigInstance
from dragoon.gpu.model import PciAddress
from dragoon.gpu.naming import mig_name, shared_name, whole_name
from dragoon.kube.port import Object
from dragoon.publish import attributes
from dragoon.publish.attributes import Facts
from dragoon.publish.card import Card, Division
from dragoon.publish.choosing import Wishes, choose, wanted_places
from dragoon.publish.counters import Ledger, Place, ledger
from dragoon.publish.device import CounterSet, Device, Taint
from dragoon.publish.forms import BUILDERS

_WITHDRAWN = Taint(names.TAINT_FORM_WITHDRAWN)


@dataclass(frozen=True, slots=True)
class CardDevices:
    """The devices of one card, whole first, then shared, then MIG; and the set they draw from."""

    devices: tuple[Device, ...]
    counter_set: CounterSet | None = None
    problems: tuple[str, ...] = ()
    left_out: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Extent:
    """Forms of a card, and the MIG placements among them."""

    forms: tuple[Form, ...]
    places: tuple[Place, ...] = ()

    def names(self, address: PciAddress) -> frozenset[str]:
        """The devices that it means."""
        plain = {Form.WHOLE: whole_name, Form.SHARED: shared_name}
        return frozenset(
            {name(address) for form, name in plain.items() if form in self.forms}
            | {mig_name(address, profile, place.start) for profile, place in self.places}
        )


def build_card(
    facts: Facts,
    division: Division | None = None,
    wishes: Wishes | None = None,
    *,
    taints: Sequence[Taint] = (),
    kept: Mapping[str, Object] | None = None,
) -> CardDevices:
    """The devices of a card.

    taints: of all of them. kept: raw devices of this card by name, as published until now; those
    that are not offered now stay, with a taint.
    """
    wishes, address = wishes or Wishes(), facts.gpu.address
    choice = choose(facts.gpu, division, wishes)
    has_mig = division is not None and Form.MIG in choice.forms
    foreign = division.foreign if division and has_mig else ()
    offered = _Extent(choice.forms, wanted_places(division, wishes) if division and has_mig else ())
    offered_names = offered.names(address) | _names(address, foreign)
    leaving = {name: raw for name, raw in (kept or {}).items() if name not in offered_names}
    extent = _with(offered, frozenset(leaving), address, division)
    book = _ledger(facts, division, extent)
    card = Card(
        facts=replace(facts, enforcement=wishes.enforcement),
        taints=(*taints, *([choice.taint] if choice.taint else [])),
        places=extent.places,
        foreign=foreign,
        ledger=book,
    )
    made = [BUILDERS[form](card) for form in extent.forms]
    built = [device for devices, _ in made for device in devices]
    built += _as_published(leaving, {device.name for device in built}, card)
    return CardDevices(
        tuple(
            device if device.name in offered_names else device.tainted(_WITHDRAWN)
            for device in built
            if device.name in offered_names or device.name in leaving
        ),
        book.total if book else None,
        choice.problems,
        tuple(finding for _, findings in made for finding in findings),
    )


def _names(address: PciAddress, instances: Sequence[MigInstance]) -> frozenset[str]:
    return frozenset(mig_name(address, one.profile, one.placement.start) for one in instances)


def _with(
    offered: _Extent, leaving: frozenset[str], address: PciAddress, division: Division | None
) -> _Extent:
    """What is offered, and what can still be said of the devices that are leaving."""
    everything = _Extent(tuple(Form), division.places if division else ())
    places = tuple(
        (profile, place)
        for profile, place in everything.places
        if (profile, place) in offered.places or mig_name(address, profile, place.start) in leaving
    )
    has = {
        Form.WHOLE: whole_name(address) in leaving,
        Form.SHARED: shared_name(address) in leaving,
        Form.MIG: len(places) > len(offered.places),
    }
    return _Extent(tuple(form for form in Form if form in offered.forms or has[form]), places)


def _ledger(facts: Facts, division: Division | None, extent: _Extent) -> Ledger | None:
    """The counters of a card of which devices exclude each other, else None."""
    plain = [form for form in extent.forms if form is not Form.MIG]
    if len(plain) + len(extent.places) < 2:
        return None
    return ledger(
        whole_name(facts.gpu.address),
        facts.gpu.memory_bytes,
        extent.places,
        width=division.width if division else 0,
        foreign=division.foreign if division else (),
    )


def _as_published(leaving: Mapping[str, Object], built: set[str], card: Card) -> Iterator[Device]:
    """Devices of which the card itself says nothing any more: as they were, with its taints.

    Without attributes that this version does not know: another version, or somebody else, may have
    written them, and a device that is left out takes no counters.
    """
    total = card.ledger.total if card.ledger else None
    for name, raw in leaving.items():
        if name not in built:
            device = Device.of(raw, total)
            known, _ = attributes.valid(device.attributes)
            yield replace(device, attributes=known, taints=card.taints)
