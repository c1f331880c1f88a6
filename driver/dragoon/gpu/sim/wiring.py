"""NVLinks of a topology file -> the wires of every card. Pure."""

from itertools import combinations

from dragoon.gpu.model import PciAddress
from dragoon.gpu.sim.machine import Wire
from dragoon.gpu.sim.schema import NvlinkEntry, TopologyFile, demand

_SWITCH_BUS = 0xF0
_SWITCHES = 4  # NVSwitches of a board; links go round them


def wires(topology: TopologyFile, origin: str) -> tuple[tuple[Wire, ...], ...]:
    """The wires of every card, by slot; empty where cards have no NVLink.

    Raises InvalidInputError when the pairs do not fit the links, or the matrix says otherwise.
    """
    nvlink = topology.nvlink or NvlinkEntry(via="none")
    links = _pairs(nvlink, topology.count, origin)
    _compare_with_matrix(topology, links, origin)
    if nvlink.via == "none":
        demand(not links, f"{origin}: nvlink.pairs", sorted(links), "none, as nvlink.via says")
        return ((),) * topology.count
    if nvlink.via.startswith("nvswitch"):
        return _to_switches(nvlink, topology.count, links, origin)
    return _direct(nvlink, topology.count, links, origin)


def _pairs(nvlink: NvlinkEntry, count: int, origin: str) -> dict[tuple[int, int], int]:
    links: dict[tuple[int, int], int] = {}
    every = nvlink.links_per_pair or nvlink.links_per_gpu
    for pair in combinations(sorted(nvlink.all_pairs_of), 2):
        links[pair] = every
    for entry in nvlink.pairs:
        a, b = sorted((entry.a, entry.b))
        where = f"{origin}: nvlink.pairs"
        demand(a != b and b < count, where, f"{entry.a}-{entry.b}", f"two GPUs below {count}")
        demand((a, b) not in links, where, f"{a}-{b} twice", "every pair once")
        links[a, b] = entry.links
    return links


def _compare_with_matrix(
    topology: TopologyFile, links: dict[tuple[int, int], int], origin: str
) -> None:
    if topology.matrix is None:
        return
    for a, b in combinations(range(topology.count), 2):
        cell = topology.matrix[a][b]
        said = int(cell[2:]) if cell.startswith("NV") else 0
        wired = links.get((a, b), 0)
        demand(said == wired, f"{origin}: matrix[{a}][{b}]", cell, f"{wired} links, as nvlink says")


def _to_switches(
    nvlink: NvlinkEntry, count: int, links: dict[tuple[int, int], int], origin: str
) -> tuple[tuple[Wire, ...], ...]:
    linked = {slot for pair in links for slot in pair} | set(nvlink.all_pairs_of)
    for pair in combinations(sorted(linked), 2):
        demand(
            links.get(pair) == nvlink.links_per_gpu,
            f"{origin}: nvlink.pairs {pair[0]}-{pair[1]}",
            links.get(pair, 0),
            f"{nvlink.links_per_gpu} links: a switch joins every linked GPU with every other",
        )
    inside = nvlink.via == "nvswitch"  # a rack's switches are on no PCI bus of this machine
    return tuple(
        tuple(
            Wire(
                to_switch=slot in linked,
                switch=PciAddress(0, _SWITCH_BUS + link % _SWITCHES, 0)
                if inside and slot in linked
                else None,
            )
            for link in range(nvlink.links_per_gpu)
        )
        for slot in range(count)
    )


def _direct(
    nvlink: NvlinkEntry, count: int, links: dict[tuple[int, int], int], origin: str
) -> tuple[tuple[Wire, ...], ...]:
    ends: list[list[Wire]] = [[] for _ in range(count)]
    for (a, b), times in sorted(links.items()):
        for _ in range(times):
            at_a, at_b = len(ends[a]), len(ends[b])
            ends[a].append(Wire(slot=b, peer_link=at_b))
            ends[b].append(Wire(slot=a, peer_link=at_a))
    total = nvlink.links_per_gpu
    for slot, used in enumerate(ends):
        allowed = f"at most {total}, as nvlink.linksPerGPU says"
        demand(len(used) <= total, f"{origin}: nvlink.pairs of GPU {slot}", len(used), allowed)
    return tuple((*used, *(Wire(),) * (total - len(used))) for used in ends)
