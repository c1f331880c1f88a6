"""What is near what: link domains, bandwidth, switch and NUMA groups, relations. Pure.

Domains answer "which GPUs can talk over NVLink, each with each"; relations are the words of
`nvidia-smi topo -m`, as far as NVLink and sysfs tell.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dragoon.gpu.model import Gpu, LinkRemote, NvLink, PciAddress

_ABOVE_A_SWITCH = 2  # bridges: root complex and root port
_FROM_SWITCH_TO_CARD = 1  # bridges: the switch's own port
_MOST_STEPS = 4_000  # of the search for one domain; then the largest set found so far is taken


def nvlink_domains(gpus: Sequence[Gpu]) -> tuple[tuple[PciAddress, ...], ...]:
    """Sets of GPUs in which every pair is linked, largest first; a GPU is in one set only.

    A link counts when it is up, or down only because a card at one of its ends is in MIG mode.
    GPUs that are fully linked to NVSwitches are linked with each other. Ties go to the lowest PCI
    addresses; a GPU without a linked partner is in no set. Each set is ordered by address.
    """
    by_address = sorted(gpus, key=lambda gpu: gpu.address)
    near = _linked(by_address)
    left = [gpu.address for gpu in by_address]
    domains: list[tuple[PciAddress, ...]] = []
    while True:
        domain = _largest_clique(left, near)
        if len(domain) < 2:
            return tuple(domains)
        domains.append(domain)
        left = [address for address in left if address not in domain]


def link_bandwidth(gpu: Gpu) -> int | None:
    """GB/s (10^9 bytes) per direction over all links that are up; None when none is, or unknown."""
    speeds = [link.mb_per_second for link in gpu.links if link.active]
    if not speeds or None in speeds:
        return None
    return sum(speed for speed in speeds if speed is not None) // 1000


def pcie_switch_groups(gpus: Sequence[Gpu]) -> tuple[tuple[PciAddress, ...], ...]:
    """Sets of two or more GPUs behind one PCIe switch, by address."""
    groups: dict[tuple[str, ...], list[PciAddress]] = {}
    for gpu in gpus:
        if len(gpu.pci_path) > _ABOVE_A_SWITCH:
            # The last bridge is the port that leads to the card: the switch is above it.
            groups.setdefault(gpu.pci_path[:-1], []).append(gpu.address)
    return tuple(sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1))


def numa_groups(gpus: Sequence[Gpu]) -> dict[int, tuple[PciAddress, ...]]:
    """GPUs by the NUMA node of their CPUs; those where it is unknown are left out."""
    nodes = sorted({gpu.numa_node for gpu in gpus if gpu.numa_node is not None})
    return {node: tuple(sorted(g.address for g in gpus if g.numa_node == node)) for node in nodes}


def relation(a: Gpu, b: Gpu, gpus: Sequence[Gpu]) -> str | None:
    """How two GPUs are connected: `NV<links>` where NVLink is up, else what PCIe says.

    PIX: one PCIe switch; PXB: several; PHB: one root complex; NODE: one NUMA node; SYS: across
    NUMA nodes; None where sysfs does not tell.
    """
    links = links_between(a, b, gpus)
    return f"NV{links}" if links else _pcie_relation(a, b)


def links_between(a: Gpu, b: Gpu, gpus: Sequence[Gpu]) -> int:
    """Links that are up between two GPUs; behind switches, those of the card that has fewer."""
    direct = max(_active_to(a, b), _active_to(b, a))
    if direct:
        return direct
    full = on_switches(gpus)
    if a.address in full and b.address in full:
        return min(_to_switches(a.links), _to_switches(b.links))
    return 0


def on_switches(gpus: Sequence[Gpu], in_mig_mode: Collection[PciAddress] = ()) -> set[PciAddress]:
    """GPUs with all their links to switches: as many as the best card of the same product.

    Boards exist on which some links are never wired, so "all" is what an equal card has. Links of
    cards named in_mig_mode count although they are down.
    """
    counts = {
        gpu.address: _to_switches(gpu.links, even_down=gpu.address in in_mig_mode) for gpu in gpus
    }
    best: dict[str | None, int] = {}
    for gpu in gpus:
        best[gpu.product] = max(best.get(gpu.product, 1), counts[gpu.address])
    return {gpu.address for gpu in gpus if counts[gpu.address] == best[gpu.product]}


def _pcie_relation(a: Gpu, b: Gpu) -> str | None:
    if a.pcie_root is not None and a.pcie_root == b.pcie_root:
        shared = _shared_length(a.pci_path, b.pci_path)
        if shared == 1:
            return "PHB"
        below = max(len(a.pci_path), len(b.pci_path)) - shared
        return "PIX" if below <= _FROM_SWITCH_TO_CARD else "PXB"
    if a.numa_node is None or b.numa_node is None:
        return None
    return "NODE" if a.numa_node == b.numa_node else "SYS"


def _shared_length(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    for position, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return position
    return min(len(a), len(b))


def _active_to(a: Gpu, b: Gpu) -> int:
    return sum(link.active and _leads_to(link, b.address) for link in a.links)


def _leads_to(link: NvLink, address: PciAddress) -> bool:
    return link.remote is LinkRemote.GPU and link.peer == address


def _linked(gpus: Sequence[Gpu]) -> dict[PciAddress, set[PciAddress]]:
    """Who is linked with whom, both ways."""
    in_mig_mode = {gpu.address for gpu in gpus if gpu.mig is not None and gpu.mig.enabled}
    present = {gpu.address for gpu in gpus}
    near: dict[PciAddress, set[PciAddress]] = {address: set() for address in present}
    for gpu in gpus:
        for link in gpu.links:
            if link.remote is LinkRemote.GPU and link.peer in present - {gpu.address}:
                usable = link.active or not in_mig_mode.isdisjoint({gpu.address, link.peer})
                if usable:
                    near[gpu.address].add(link.peer)
                    near[link.peer].add(gpu.address)
    switched = on_switches(gpus, in_mig_mode)
    for address in switched:
        near[address] |= switched - {address}
    return near


def _to_switches(links: Iterable[NvLink], *, even_down: bool = False) -> int:
    return sum(link.remote is LinkRemote.SWITCH and (link.active or even_down) for link in links)


@dataclass(slots=True)
class _Search:
    """Branch and bound for the largest clique; the first one found in order of address wins."""

    near: Mapping[PciAddress, set[PciAddress]]
    best: tuple[PciAddress, ...] = ()
    steps: int = 0

    def extend(self, clique: tuple[PciAddress, ...], candidates: list[PciAddress]) -> None:
        if len(clique) > len(self.best):
            self.best = clique
        while candidates and len(clique) + self._colours(candidates) > len(self.best):
            self.steps += 1
            if self.steps > _MOST_STEPS:
                return
            first, *candidates = candidates
            self.extend((*clique, first), [c for c in candidates if c in self.near[first]])

    def _colours(self, candidates: list[PciAddress]) -> int:
        """An upper bound: members of one colour class are not linked, so at most one is taken."""
        classes: list[list[PciAddress]] = []
        for candidate in candidates:
            for members in classes:
                if self.near[candidate].isdisjoint(members):
                    members.append(candidate)
                    break
            else:
                classes.append([candidate])
        return len(classes)


def _largest_clique(
    addresses: list[PciAddress], near: Mapping[PciAddress, set[PciAddress]]
) -> tuple[PciAddress, ...]:
    search = _Search(near)
    search.extend((), addresses)
    return search.best
