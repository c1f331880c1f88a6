"""The form in which claims get MIG instances: made for them, or made by an administrator.

An instance that can be made is one device for each profile and placement. An instance that
somebody else made is published as it is, under the name of its placement: it is there whether
claims use it or not, so it takes no counters, and the ledger of its card is smaller by it.
"""

from dataclasses import replace

from dragoon.api.finding import Finding
from dragoon.api.forms import Form
from dragoon.errors import InvalidInputError
from dragoon.gpu.mig import MigInstance
from dragoon.gpu.mig_names import ProfileName
from dragoon.gpu.model import MigProfile, Placement
from dragoon.gpu.naming import mig_name
from dragoon.publish import attributes
from dragoon.publish.card import Card, Made
from dragoon.publish.counters import Place
from dragoon.publish.device import CounterSet, Device


def mig(card: Card) -> Made:
    """The devices, in the order in which the allocator should try them."""
    made = [_made_for_claim(card, profile, place) for profile, place in in_order(card.places)]
    made += [_as_found(card, instance) for instance in card.foreign if instance.uuid]
    findings = (finding for _, left_out in made for finding in left_out)
    return tuple(device for device, _ in made), tuple(dict.fromkeys(findings))


def in_order(places: tuple[Place, ...]) -> tuple[Place, ...]:
    """Small instances first, each where it is least in the way of others.

    The allocator takes the first that fits. On an A100 the first 1g lies at 6 and the first 3g at
    4, so that a 4g, which can only lie at 0, stays possible longest.
    """

    def key(place: Place) -> tuple[int, int, str, int, int]:
        profile, placement = place
        conflicts = sum(placement.overlaps(other) for _, other in places)
        return placement.size, profile.slices, profile.name, conflicts, -placement.start

    return tuple(sorted(places, key=key))


def main_profiles(profiles: tuple[MigProfile, ...]) -> tuple[MigProfile, ...]:
    """Those published where none is asked for by name: of each number of compute slices one.

    Without suffix, and the one with the least memory: a 1g with double memory is by name only.
    """
    plain = [profile for profile in profiles if _is_plain(profile)]
    least = {
        slices: min(profile.size for profile in plain if profile.slices == slices)
        for slices in {profile.slices for profile in plain}
    }
    return tuple(profile for profile in plain if profile.size == least[profile.slices])


def _is_plain(profile: MigProfile) -> bool:
    try:
        return not ProfileName.parse(profile.name).parts
    except InvalidInputError:
        return False


def _made_for_claim(
    card: Card, profile: MigProfile, place: Placement
) -> tuple[Device, tuple[Finding, ...]]:
    consumes = card.ledger.of(profile, place) if card.ledger else None
    return _device(card, profile, place, consumes=consumes)


def _as_found(card: Card, instance: MigInstance) -> tuple[Device, tuple[Finding, ...]]:
    return _device(card, instance.profile, instance.placement, uuid=instance.uuid)


def _device(
    card: Card,
    profile: MigProfile,
    place: Placement,
    *,
    uuid: str | None = None,
    consumes: CounterSet | None = None,
) -> tuple[Device, tuple[Finding, ...]]:
    facts = replace(card.facts, form=Form.MIG, profile=profile, instance_uuid=uuid)
    said, left_out = attributes.describe(facts)
    name = mig_name(facts.gpu.address, profile, place.start)
    size = attributes.memory(profile.memory_bytes)
    return Device(name, said, size, card.taints, consumes=consumes), left_out
