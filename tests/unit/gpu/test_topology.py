from dataclasses import replace

import pytest

from dragoon.gpu.model import Gpu, LinkRemote, MigMode, NvLink, PciAddress
from dragoon.gpu.topology import (
    link_bandwidth,
    numa_groups,
    nvlink_domains,
    pcie_switch_groups,
    relation,
)


def address(number: int) -> PciAddress:
    return PciAddress(0, number, 0)


def gpu(number: int, *links: NvLink, mig: bool | None = None, product: str = "X") -> Gpu:
    return Gpu(
        address=address(number),
        index=number,
        uuid=f"GPU-{number}",
        product=product,
        links=links,
        mig=None if mig is None else MigMode(enabled=mig, pending=mig),
    )


def to(peer: int, *, up: bool = True, index: int = 0) -> NvLink:
    return NvLink(index, up, LinkRemote.GPU, address(peer), mb_per_second=25000)


def switched(count: int, up: int | None = None) -> tuple[NvLink, ...]:
    up = count if up is None else up
    return tuple(NvLink(i, i < up, LinkRemote.SWITCH, mb_per_second=26562) for i in range(count))


def domains(*gpus: Gpu) -> list[list[int]]:
    return [[member.bus for member in domain] for domain in nvlink_domains(gpus)]


def test_gpus_with_all_links_to_switches_are_one_domain() -> None:
    assert domains(*(gpu(n, *switched(18)) for n in range(8))) == [list(range(8))]


def test_a_gpu_with_one_of_its_switch_links_down_is_out() -> None:
    assert domains(gpu(0, *switched(4)), gpu(1, *switched(4, up=3)), gpu(2, *switched(4))) == [
        [0, 2]
    ]


def test_links_that_no_equal_card_has_wired_do_not_count() -> None:
    assert domains(gpu(0, *switched(12, up=8)), gpu(1, *switched(12, up=8))) == [[0, 1]]


def test_cards_of_other_products_on_the_switches_may_have_other_link_counts() -> None:
    assert domains(gpu(0, *switched(18)), gpu(1, *switched(12), product="Y")) == [[0, 1]]


def test_a_link_reported_by_one_end_links_both() -> None:
    assert domains(gpu(0, to(1)), gpu(1)) == [[0, 1]]


def test_a_gpu_alone_is_in_no_domain() -> None:
    assert domains(gpu(0, *switched(18))) == []
    assert domains(gpu(0, to(1, up=False)), gpu(1, to(0, up=False))) == []
    assert domains() == []


def test_a_link_to_a_card_that_does_not_answer_links_nothing() -> None:
    assert domains(gpu(0, to(7)), gpu(1)) == []


def test_in_a_ring_only_neighbours_are_domains_and_ties_go_to_low_addresses() -> None:
    ring = [gpu(n, to((n + 1) % 4), to((n - 1) % 4, index=1)) for n in range(4)]
    assert domains(*ring) == [[0, 1], [2, 3]]


def test_the_largest_set_comes_first_and_a_gpu_is_in_one_set_only() -> None:
    pair = [gpu(0, to(1)), gpu(1, to(0), to(2, index=1))]
    triangle = [gpu(2, to(3), to(4, index=1)), gpu(3, to(4)), gpu(4)]
    assert domains(*pair, *triangle) == [[2, 3, 4], [0, 1]]


def test_links_that_are_down_for_mig_mode_alone_still_count() -> None:
    down = to(1, up=False), to(0, up=False)
    assert domains(gpu(0, down[0], mig=True), gpu(1, down[1], mig=False)) == [[0, 1]]
    assert domains(gpu(0, down[0], mig=False), gpu(1, down[1], mig=False)) == []
    assert domains(gpu(0, *switched(4, up=0), mig=True), gpu(1, *switched(4))) == [[0, 1]]


def test_the_order_of_the_gpus_does_not_matter() -> None:
    ring = [gpu(n, to((n + 1) % 6), to((n - 1) % 6, index=1)) for n in range(6)]
    assert domains(*ring) == domains(*reversed(ring))


@pytest.mark.timeout(60)
def test_64_gpus_with_many_overlapping_sets_do_not_explode() -> None:
    # Linked unless the distance is 1: nearly complete, with a huge number of maximal sets.
    many = [
        gpu(n, *(to(m, index=m) for m in range(64) if abs(n - m) not in {0, 1, 7, 19}))
        for n in range(64)
    ]
    found = domains(*many)
    members = [member for domain in found for member in domain]
    assert len(members) == len(set(members))
    for domain in found:
        assert all(abs(a - b) not in {1, 7, 19} for a in domain for b in domain)
    assert len(found[0]) >= 16


def test_bandwidth_is_the_sum_of_the_links_that_are_up() -> None:
    assert link_bandwidth(gpu(0, *switched(18))) == 478
    assert link_bandwidth(gpu(0, *switched(18, up=9))) == 239
    assert link_bandwidth(gpu(0)) is None
    assert link_bandwidth(gpu(0, *switched(18, up=0))) is None


def test_bandwidth_is_unknown_where_one_speed_is() -> None:
    assert link_bandwidth(gpu(0, to(1), NvLink(1, active=True))) is None


ROOT = ("pci0000:00", "0000:00:01.0")
SWITCH = (*ROOT, "0000:01:00.0")


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((*SWITCH, "0000:02:00.0"), (*SWITCH, "0000:02:01.0"), "PIX"),
        ((*SWITCH, "0000:02:00.0"), (*SWITCH, "0000:02:01.0", "0000:04:00.0", "x"), "PXB"),
        (ROOT, ("pci0000:00", "0000:00:02.0"), "PHB"),
    ],
)
def test_relations_under_one_root_come_from_the_bridges(
    a: tuple[str, ...], b: tuple[str, ...], expected: str
) -> None:
    one = replace(gpu(0), pci_path=a, pcie_root=a[0])
    two = replace(gpu(1), pci_path=b, pcie_root=b[0])
    assert relation(one, two, [one, two]) == relation(two, one, [one, two]) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"), [(0, 0, "NODE"), (0, 1, "SYS"), (0, None, None), (None, None, None)]
)
def test_relations_between_roots_come_from_numa_nodes(
    a: int | None, b: int | None, expected: str | None
) -> None:
    one = replace(gpu(0), numa_node=a, pcie_root="pci0000:00", pci_path=("pci0000:00",))
    two = replace(gpu(1), numa_node=b, pcie_root="pci0000:40", pci_path=("pci0000:40",))
    assert relation(one, two, [one, two]) == expected


def test_nvlink_hides_the_pcie_relation() -> None:
    one, two = gpu(0, to(1), to(1, index=1)), gpu(1, to(0), to(0, index=1))
    assert relation(one, two, [one, two]) == "NV2"
    three, four = gpu(0, *switched(6)), gpu(1, *switched(6))
    assert relation(three, four, [three, four]) == "NV6"


def test_groups_leave_out_what_is_unknown_or_alone() -> None:
    pair = [replace(gpu(n), pci_path=(*SWITCH, f"0000:02:{n:02x}.0"), numa_node=3) for n in (0, 1)]
    single = replace(gpu(2), pci_path=ROOT)
    assert pcie_switch_groups([*pair, single]) == ((address(0), address(1)),)
    assert numa_groups([*pair, single]) == {3: (address(0), address(1))}
