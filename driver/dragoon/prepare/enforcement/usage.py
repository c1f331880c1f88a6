"""What shares use of what they may: read from regions and from the driver's caps, changing nothing.

For `dragoon usage`, metrics and the audit. Blocks; one container that cannot be read costs no
other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dragoon.api.claims import ClaimRef
from dragoon.errors import DragoonError
from dragoon.gpu.model import PciAddress
from dragoon.gpu.port import MemoryLimits
from dragoon.prepare.effects import Effects
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.hami_steps import Region, region_file
from dragoon.prepare.enforcement.memory_cap import MemoryCap
from dragoon.prepare.journal import Entry
from dragoon.prepare.paths import Paths


@dataclass(frozen=True, slots=True)
class CardUsage:
    """One card. card is its UUID (regions) or its PCI address (caps); sizes are bytes.

    cores: the ceiling in per cent, 100 without one. pids: of the processes that are counted, as
    their container numbers them; None where they are not told apart. suspicious: the region says
    what cannot be.
    """

    card: str
    limit: int
    used: int
    cores: int = 100
    pids: frozenset[int] | None = None
    suspicious: bool = False


@dataclass(frozen=True, slots=True)
class ShareUsage:
    """What one container, or with a cap one pod (container ""), uses of its claims.

    problem: why it cannot be told; then there are no cards.
    """

    claims: tuple[ClaimRef, ...]
    pod_uid: str
    container: str
    cards: tuple[CardUsage, ...] = ()
    problem: str = ""


def usage(
    entries: Iterable[Entry], effects: Effects, paths: Paths, limits: MemoryLimits | None = None
) -> tuple[ShareUsage, ...]:
    """The usage of every container and pod that these journal entries limit, each once.

    limits: the driver's caps, which tell the use of pods that have one.
    """
    found: dict[Region | MemoryCap, list[ClaimRef]] = {}
    for entry in entries:
        for step in entry.steps:
            if isinstance(step, Region | MemoryCap):
                found.setdefault(step, []).append(entry.claim)
    return tuple(
        _of_region(step, tuple(claims), effects, paths)
        if isinstance(step, Region)
        else _of_cap(step, tuple(claims), effects, paths, limits)
        for step, claims in found.items()
    )


def _of_region(
    step: Region, claims: tuple[ClaimRef, ...], effects: Effects, paths: Paths
) -> ShareUsage:
    file = region_file(paths, step.pod_uid, step.container)
    try:
        data = effects.peek(file, region.BYTES)
        cards = tuple(_cards(data)) if data is not None else ()
        problem = "" if data is not None else f"{file} is not there"
    except DragoonError as error:
        cards, problem = (), str(error)
    return ShareUsage(claims, step.pod_uid, step.container, cards, problem)


def _cards(data: bytes) -> Iterator[CardUsage]:
    for one in region.read(data):
        yield CardUsage(one.uuid, one.limit, one.used, one.cores, one.pids, one.suspicious)


def _of_cap(
    step: MemoryCap,
    claims: tuple[ClaimRef, ...],
    effects: Effects,
    paths: Paths,
    limits: MemoryLimits | None,
) -> ShareUsage:
    cgroup = step.cgroup(effects, paths)
    cards: tuple[CardUsage, ...] = ()
    problem = ""
    if limits is None:
        problem = "this driver does not tell the memory of a cgroup"
    elif cgroup is None:
        problem = "the pod has no cgroup any more"
    else:
        try:
            found = limits.get(PciAddress.parse(step.address), cgroup)
            cards = (CardUsage(step.address, found.hard or 0, found.used),)
        except DragoonError as error:
            problem = str(error)
    return ShareUsage(claims, step.pod_uid, "", cards, problem)
