"""Link domains of any wiring, against the definition."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from dragoon.gpu.model import Gpu, LinkRemote, NvLink, PciAddress
from dragoon.gpu.topology import nvlink_domains

MOST = 9
Edges = set[tuple[int, int]]


def wired(count: int, edges: Edges) -> list[Gpu]:
    def links(slot: int) -> tuple[NvLink, ...]:
        peers = [b if a == slot else a for a, b in sorted(edges) if slot in {a, b}]
        return tuple(
            NvLink(index, True, LinkRemote.GPU, PciAddress(0, peer, 0))
            for index, peer in enumerate(peers)
        )

    return [Gpu(PciAddress(0, n, 0), n, f"GPU-{n}", links=links(n)) for n in range(count)]


@st.composite
def machines(draw: st.DrawFn) -> tuple[int, Edges]:
    count = draw(st.integers(0, MOST))
    pairs = list(combinations(range(count), 2))
    return count, draw(st.sets(st.sampled_from(pairs))) if pairs else set()


def domains(gpus: list[Gpu]) -> list[tuple[int, ...]]:
    return [tuple(member.bus for member in domain) for domain in nvlink_domains(gpus)]


def linked(members: tuple[int, ...], edges: Edges) -> bool:
    return all(pair in edges for pair in combinations(sorted(members), 2))


def best(slots: set[int], edges: Edges) -> tuple[int, ...]:
    """By trying everything: the largest linked set, then the lowest addresses."""
    for size in range(len(slots), 0, -1):
        for members in combinations(sorted(slots), size):
            if linked(members, edges):
                return members
    return ()


@given(machines())
def test_each_domain_is_the_largest_linked_set_of_what_is_left(machine: tuple[int, Edges]) -> None:
    count, edges = machine
    left = set(range(count))
    for domain in domains(wired(count, edges)):
        assert len(domain) >= 2
        assert domain == best(left, edges)
        left -= set(domain)
    assert len(best(left, edges)) <= 1


@given(machines(), st.randoms(use_true_random=False))
def test_the_order_in_which_cards_are_listed_does_not_matter(
    machine: tuple[int, Edges], random: st.DataObject
) -> None:
    gpus = wired(*machine)
    shuffled = list(gpus)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert domains(gpus) == domains(shuffled)
