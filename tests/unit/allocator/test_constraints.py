"""matchAttribute: type and value, names with and without a domain, requests (cases C05, C07)."""

from typing import Any

import pytest

from tests.unit.allocator.attempts import attempt, chosen, refusal
from tests.unit.allocator.objects import DRIVER, claim, device, request, slice_of

DOMAIN = f"{DRIVER}/nvlinkDomain"
NUMA = "resource.kubernetes.io/numaNode"


def numbered(domains: str, numa: str = "") -> dict[str, Any]:
    """A slice with one device per letter; the letter is its domain, `-` is none."""
    devices = []
    for index, letter in enumerate(domains):
        attributes: dict[str, Any] = {}
        if letter != "-":
            attributes["nvlinkDomain"] = {"string": letter}
        if numa:
            attributes[NUMA] = {"int": int(numa[index])}
        devices.append(device(f"gpu-{index}", attributes=attributes))
    return slice_of(*devices)


def test_c05_eight_in_one_domain_of_seven_is_refused_and_says_seven() -> None:
    slices = [numbered("aa-aaaaa")]
    outcome = refusal(attempt(claim(request(count=8), same=DOMAIN), slices=slices))
    assert outcome.message == (
        "claim default/c needs 8 devices with the same gpu.dragoon.dev/nvlinkDomain, "
        "the largest group of the candidates has 7"
    )


def test_c05_four_in_one_domain_never_take_the_card_outside() -> None:
    assert chosen(attempt(claim(request(count=4), same=DOMAIN), slices=[numbered("aa-aaaaa")])) == [
        ["gpu-0", "gpu-1", "gpu-3", "gpu-4"]
    ]


def test_c05_the_card_outside_is_still_offered() -> None:
    assert len(chosen(attempt(claim(request(count=8)), slices=[numbered("aa-aaaaa")]))[0]) == 8


@pytest.mark.parametrize(("domains", "pair"), [("abba", [0, 3]), ("abab", [0, 2]), ("-bb", [1, 2])])
def test_c07_two_in_one_domain_are_a_linked_pair_and_not_neighbours(
    domains: str, pair: list[int]
) -> None:
    outcome = attempt(claim(request(count=2), same=DOMAIN), slices=[numbered(domains)])
    assert chosen(outcome) == [[f"gpu-{index}" for index in pair]]


def test_c07_same_domain_and_same_numa_node_cannot_both_hold_on_a_crossed_box() -> None:
    slices = [numbered("abab", numa="0011")]
    both = [{"matchAttribute": DOMAIN}, {"matchAttribute": NUMA}]
    outcome = refusal(attempt(claim(request(count=2), same=both), slices=slices))
    assert outcome.message == (
        "each request and each constraint can be met alone, but not all of them together"
    )
    assert chosen(attempt(claim(request(count=2), same=NUMA), slices=slices)) == [
        ["gpu-0", "gpu-1"]
    ]


def test_a_constraint_holds_across_requests_and_only_for_those_it_names() -> None:
    slices = [numbered("abba")]
    over_two = [{"matchAttribute": DOMAIN, "requests": ["x", "z"]}]
    wish = claim(request("x"), request("y"), request("z"), same=over_two)
    assert chosen(attempt(wish, slices=slices)) == [["gpu-0", "gpu-1", "gpu-3"]]


def test_a_constraint_is_of_one_claim() -> None:
    slices = [numbered("abba")]
    one, two = claim(request(count=2), same=DOMAIN), claim(request(count=2), name="d", same=DOMAIN)
    assert chosen(attempt(one, two, slices=slices)) == [["gpu-0", "gpu-3"], ["gpu-1", "gpu-2"]]


def test_type_and_value_must_both_agree() -> None:
    kinds = [{"string": "1"}, {"int": 1}, {"version": "1.0.0"}, {"string": "1.0.0"}, {"bool": True}]
    slices = [slice_of(*(device(f"d{i}", attributes={"a": kind}) for i, kind in enumerate(kinds)))]
    outcome = refusal(attempt(claim(request(count=2), same=f"{DRIVER}/a"), slices=slices))
    assert "the largest group" in outcome.message or "not all of them together" in outcome.message


def test_a_list_attribute_matches_nothing() -> None:
    slices = [slice_of(*(device(f"d{i}", attributes={"a": {"strings": ["x"]}}) for i in range(2)))]
    outcome = refusal(attempt(claim(request(count=2), same=f"{DRIVER}/a"), slices=slices))
    assert "largest group of the candidates has 0" in outcome.message


def test_the_domain_of_another_driver_does_not_find_an_unprefixed_name() -> None:
    slices = [slice_of(device("d0", a=1), device("d1", a=1))]
    outcome = refusal(attempt(claim(request(count=2), same="other.example/a"), slices=slices))
    assert "largest group of the candidates has 0" in outcome.message
