"""Whatever the cards and the wishes: slices are valid, and counters admit what can be together."""

from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.api.enforcement import NodeEnforcement, Tier
from dragoon.api.forms import Form
from dragoon.api.names import TAINT_LOST
from dragoon.api.slice_validation import check_pool, check_slice
from dragoon.gpu.mig import ComputeInstance, MigCard, MigInstance
from dragoon.gpu.model import Inventory, MigProfile, PciAddress
from dragoon.publish import slices
from dragoon.publish.card import Division
from dragoon.publish.choosing import Wishes
from dragoon.publish.counters import Place, beside, ledger
from dragoon.publish.devices import Devices, build
from dragoon.publish.slices import render
from tests.property.publish_strategies import inventories
from tests.unit.publish.divided import admitted, possible
from tests.unit.publish.test_deviceclasses import samples, takers

WIDTH = 8
NODE, DRIVER = "node-a", "gpu.dragoon.dev"
_SUFFIXES = ("", "", "+me", "+me.all", "-me", "+gfx")


@st.composite
def mig_profiles(draw: st.DrawFn) -> tuple[MigProfile, ...]:
    """Profiles of a card with 8 memory slices: any sizes, starts, suffixes and limits."""
    kinds = draw(
        st.lists(
            st.tuples(st.integers(1, WIDTH), st.sampled_from(_SUFFIXES)),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    found = []
    for number, (size, suffix) in enumerate(kinds):
        starts = draw(
            st.lists(st.integers(0, WIDTH - size), min_size=1, max_size=4, unique=True).map(sorted)
        )
        found.append(
            MigProfile(
                name=f"{size}g.{5 * size}gb{suffix}",
                number=number,
                identity=number + 20,
                slices=size,
                instances=draw(st.integers(1, 4)),
                memory_mib=draw(st.none() | st.integers(1, 5000)),
                multiprocessors=None,
                starts=tuple(starts),
                size=size,
            )
        )
    return tuple(found)


def placed(profiles: tuple[MigProfile, ...]) -> tuple[Place, ...]:
    return tuple((one, place) for one in profiles for place in one.placements)


@st.composite
def instances(
    draw: st.DrawFn, profiles: tuple[MigProfile, ...], address: PciAddress
) -> tuple[MigInstance, ...]:
    """Instances that the card could have made."""
    chosen: list[Place] = []
    for place in draw(st.lists(st.sampled_from(placed(profiles)), max_size=3)):
        if possible(profiles, (*chosen, place)):
            chosen.append(place)
    return tuple(
        MigInstance(
            parent=address,
            parent_uuid="GPU-x",
            parent_minor=0,
            profile=profile,
            placement=place,
            identity=number,
            compute=(ComputeInstance(0, f"MIG-{address}-{number}", profile.slices),)
            if draw(st.booleans())
            else (),
        )
        for number, (profile, place) in enumerate(chosen)
    )


@settings(max_examples=60, deadline=None)
@given(mig_profiles(), st.data())
def test_counters_admit_exactly_the_instances_that_a_card_makes(
    profiles: tuple[MigProfile, ...], data: st.DataObject
) -> None:
    foreign = data.draw(instances(profiles, PciAddress(0, 1, 0)))
    everything = placed(profiles)
    places = beside(everything, foreign)
    for place in everything:
        assert (place in places) is possible(profiles, [place], foreign)
    width = max(place.start + place.size for _, place in everything)
    book = ledger(
        "gpu", data.draw(st.none() | st.integers(1, 2**40)), places, width=width, foreign=foreign
    )
    for size in range(1, 5):
        for chosen in combinations(places, size):
            assert admitted(book, chosen) is possible(profiles, chosen, foreign)


everything_that_can_be_wanted = st.builds(
    Wishes,
    st.sets(st.sampled_from(Form), min_size=1).map(lambda fs: tuple(f for f in Form if f in fs)),
    st.sampled_from([frozenset[str](), frozenset({"all"})]),
    st.lists(st.sampled_from([Tier.CGROUP, Tier.HAMI, Tier.NONE]), unique=True).map(
        NodeEnforcement.of
    ),
)


@st.composite
def nodes(draw: st.DrawFn) -> tuple[Inventory, dict[PciAddress, Division], Wishes]:
    """A node, what its cards with MIG say, and what it wants published."""
    found = draw(inventories)
    known = {}
    for gpu in found.gpus:
        if gpu.mig is not None and draw(st.booleans()):
            profiles = draw(mig_profiles())
            foreign = draw(instances(profiles, gpu.address)) if gpu.mig.enabled else ()
            card = MigCard(gpu.address, gpu.uuid, gpu.mig, draw(st.booleans()), profiles)
            known[gpu.address] = Division(card, foreign)
    return found, known, draw(everything_that_can_be_wanted)


@settings(max_examples=120, deadline=None)
@given(nodes())
def test_slices_of_any_node_in_any_forms_are_valid(
    node: tuple[Inventory, dict[PciAddress, Division], Wishes],
) -> None:
    found, known, wishes = node
    slices = render(found, node=NODE, driver=DRIVER, wishes=wishes, divisions=known)
    assert [str(finding) for each in slices for finding in check_slice(each)] == []
    assert check_pool(slices) == ()


@settings(max_examples=120, deadline=None)
@given(nodes())
def test_the_forms_of_a_card_exclude_each_other(
    node: tuple[Inventory, dict[PciAddress, Division], Wishes],
) -> None:
    found, known, wishes = node
    built = build(found, wishes=wishes, divisions=known)
    total = {one.name: one.amounts for one in built.counter_sets}
    for name, group in _by_card(built, found).items():
        plain = [raw for raw in group if raw["attributes"]["type"]["string"] in {"gpu", "shared"}]
        made = [raw for raw in group if raw not in plain]
        exclusive = [raw for raw in group if "consumesCounters" in raw]
        for raw in plain:
            if len(plain) > 1 or any(one in exclusive for one in made):
                assert raw in exclusive
                taken = raw["consumesCounters"][0]["counters"]
                assert set(taken) == set(total[name])


@settings(max_examples=60, deadline=None)
@given(nodes(), everything_that_can_be_wanted, st.data())
def test_what_leaves_stays_valid_beside_what_comes(
    node: tuple[Inventory, dict[PciAddress, Division], Wishes],
    later: Wishes,
    data: st.DataObject,
) -> None:
    found, known, wishes = node
    first = build(found, wishes=wishes, divisions=known)
    working = [name for name in _by_card(first, found) if name not in _lost(found)]
    published = {device.name: device.raw() for device in first.devices}
    ours = sorted(name for name in published if _card_of(name) in working)
    kept = data.draw(st.sets(st.sampled_from(ours))) if ours else set()
    # MIG may have become unreadable meanwhile.
    known = known if data.draw(st.booleans()) else {}
    second = build(found, wishes=later, divisions=known, last_seen=published, kept=kept)
    made = _slices(second)
    assert [str(finding) for each in made for finding in check_slice(each)] == []
    assert check_pool(made) == ()
    names = {device.name for device in second.devices}
    offered = {d.name for d in build(found, wishes=later, divisions=known).devices}
    assert {name for name in names if _card_of(name) in working} == {
        name for name in offered | kept if _card_of(name) in working
    }
    assert all(device.taints for device in second.devices if device.name not in offered)


def _card_of(name: str) -> str:
    return name.partition("-mig-")[0].removesuffix("-shared")


def _lost(found: Inventory) -> set[str]:
    """Cards that answer nothing, or of which it is not sure which one is meant."""
    return {
        device.name
        for device in build(found).devices
        if any(taint.key == TAINT_LOST for taint in device.taints)
    }


@settings(max_examples=80, deadline=None)
@given(nodes())
def test_no_class_and_no_sample_fails_on_any_device(
    node: tuple[Inventory, dict[PciAddress, Division], Wishes],
) -> None:
    found, known, wishes = node
    for device in build(found, wishes=wishes, divisions=known).devices:
        raw = device.raw()
        assert len(takers(raw)) <= 1
        samples(raw)


def _slices(built: Devices) -> list[dict[str, Any]]:
    pool = slices.Pool(DRIVER, NODE)
    parts = slices.parts(built.devices, built.counter_sets)
    return [
        slices.new(pool, at, slices.spec(pool, part, count=len(parts), generation=1))
        for at, part in enumerate(parts)
    ]


def _by_card(built: Devices, found: Inventory) -> dict[str, list[dict[str, Any]]]:
    raw = [device.raw() for device in built.devices]
    names = {f"gpu-{gpu.address.slug}" for gpu in found.gpus}
    return {
        name: [one for one in raw if one["name"] == name or one["name"].startswith(f"{name}-")]
        for name in names
    }
