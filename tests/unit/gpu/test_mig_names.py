import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoon.errors import InvalidInputError
from dragoon.gpu.mig_names import ProfileName
from dragoon.gpu.model import MigProfile, PciAddress, Placement
from dragoon.gpu.naming import find_mig, mig_name
from dragoon.gpu.sim.profiles import find_machine, shipped

# The names of case C17, and every name of the machines that ship.
REPORTED = [
    "1g.24gb+gfx",
    "1g.24gb-me",
    "1g.24gb+me.all",
    "1g.23gb",
    "1g.24gb",
    "4g.90gb",
    "1g.5gb",
    "1g.5gb+me",
    "7g.141gb",
]
KNOWN = {p.name for name in shipped() for card in find_machine(name).cards for p in card.mig}
ADDRESS = PciAddress(0, 0x65, 0)
part = st.builds(
    lambda sign, words: sign + ".".join(words),
    st.sampled_from("+-"),
    st.lists(st.from_regex(r"[a-z0-9]{1,5}", fullmatch=True), min_size=1, max_size=3),
)
names = st.builds(
    lambda compute, memory, parts: f"{compute}g.{memory}gb{''.join(parts)}",
    st.integers(1, 99),
    st.integers(1, 9999),
    st.lists(part, max_size=3),
)


def profile(name: str, number: int = 0) -> MigProfile:
    return MigProfile(name, number, 19, 1, 7, 1024, 14, (0, 2), 2)


@pytest.mark.parametrize("name", sorted({*REPORTED, *KNOWN}))
def test_c17_names_parse_and_print_back_the_same(name: str) -> None:
    assert str(ProfileName.parse(name)) == name


def test_c17_a_name_has_compute_memory_and_suffixes() -> None:
    assert ProfileName.parse("1g.24gb+me.all-x") == ProfileName(1, 24, ("+me.all", "-x"))


@given(names)
def test_c17_any_name_of_the_grammar_prints_back_the_same(name: str) -> None:
    assert str(ProfileName.parse(name)) == name


NO_NAMES = (
    *("", "1g", "1g.5GB", "1g.5gb+", "1g.5gb+.me", "1g.5gb+me..all", "01g.5gb", "1g.05gb"),
    *("MIG 1g.5gb", "1c.2g.10gb", "1g.5gb ", "1g.5gb\n", "0g.5gb", "1g.5gb+Me", "1g.5gbme"),
)


@pytest.mark.parametrize("text", NO_NAMES)
def test_c17_what_is_no_name_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"found .*allowed: names such as 1g\.5gb"):
        ProfileName.parse(text)


@given(names, names)
def test_c17_two_names_never_share_a_device_name(one: str, other: str) -> None:
    slugs = {ProfileName.parse(one).slug, ProfileName.parse(other).slug}
    assert len(slugs) == len({one, other})


@pytest.mark.parametrize("name", sorted({*REPORTED, *KNOWN}))
def test_c17_device_names_are_dns_labels(name: str) -> None:
    device = mig_name(ADDRESS, profile(name), 0)
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", device)


def test_device_names_tell_parent_profile_and_start() -> None:
    assert mig_name(ADDRESS, profile("3g.20gb"), 4) == "gpu-0000-65-00-0-mig-3g20gb-4"
    assert mig_name(ADDRESS, profile("1g.24gb+me.all"), 2) == (
        "gpu-0000-65-00-0-mig-1g24gb-with-me--all-2"
    )
    assert mig_name(ADDRESS, profile("1g.24gb-me"), 0) == (
        "gpu-0000-65-00-0-mig-1g24gb-without-me-0"
    )


def test_a_name_that_a_driver_invents_still_makes_a_device_name() -> None:
    assert mig_name(ADDRESS, profile("Tiny!", 17), 0) == "gpu-0000-65-00-0-mig-profile-17-0"


@pytest.mark.parametrize("machine", ["dgx-h100", "a30-2way", "rtx-pro-6000-2way"])
def test_a_device_name_is_found_again_among_the_profiles_of_its_card(machine: str) -> None:
    card = find_machine(machine).cards[0]
    pairs = [(p, place) for p in card.mig for place in p.placements]
    devices = [mig_name(card.address, p, place.start) for p, place in pairs]
    assert len(set(devices)) == len(devices)
    assert [find_mig(card.address, card.mig, device) for device in devices] == pairs
    assert find_mig(card.address, card.mig, f"{devices[0]}0") is None
    assert find_mig(ADDRESS, card.mig, devices[0]) is None


def test_placements_overlap_where_they_share_a_slice() -> None:
    assert Placement(0, 4).overlaps(Placement(3, 1))
    assert not Placement(0, 4).overlaps(Placement(4, 4))
    assert not Placement(6, 1).overlaps(Placement(4, 2))
    assert Placement(0, 8).overlaps(Placement(5, 1))
