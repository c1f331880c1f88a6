"""What the claims of this node use of what they have, for a command.

Shares are told by their regions and caps; whole GPUs and MIG devices by the driver, which is asked
for that alone: without one the rest is still told.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import Tier
from dragoon.api.forms import MIB
from dragoon.app import hardware, node_claims
from dragoon.app.config import PluginConfig
from dragoon.errors import DragoonError
from dragoon.gpu.model import PciAddress
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.port import MemoryLimits
from dragoon.prepare.audit.looking import User, users
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.enforcement.usage import ShareUsage, usage
from dragoon.prepare.journal import Contents, Entry, HeldDevice


@dataclass(frozen=True, slots=True)
class Line:
    """What one container uses of one card, or a pod with a cap, or a claim with all of a device.

    gpu: PCI address. kind: how the claims have it: the tier of a share, `mig` or `whole`. Sizes are
    bytes, cores per cent, None where there is none or it cannot be told; problem says why.
    """

    claims: tuple[ClaimRef, ...]
    gpu: str
    kind: str
    pod_uid: str = ""
    container: str = ""
    used: int | None = None
    limit: int | None = None
    cores: int | None = None
    processes: int | None = None
    problem: str = ""

    @property
    def per_cent(self) -> int | None:
        """Of the limit, rounded down."""
        return None if self.used is None or not self.limit else self.used * 100 // self.limit


@dataclass(frozen=True, slots=True)
class Driver:
    """What the driver says. users: of each card; memory: bytes by UUID of a card or MIG device."""

    users: Mapping[str, tuple[User, ...]] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

    def line(self, entry: Entry, held: HeldDevice) -> Line:
        """All of a device, or a share that nobody limits."""
        if held.share is not None:
            return Line(
                (entry.claim,),
                held.address,
                Tier.NONE,
                limit=held.share.memory,
                cores=held.share.cores or None,
            )
        uuid = held.mig.uuid if held.mig else None
        mine = [one for one, where in self.users.get(held.address, ()) if where == uuid]
        told = not self.problem
        return Line(
            (entry.claim,),
            held.address,
            "mig" if held.mig else "whole",
            entry.pod_uid,
            used=sum(one.used_bytes or 0 for one in mine) if told else None,
            limit=self.memory.get(uuid or held.uuid),
            processes=len(mine) if told else None,
            problem=self.problem,
        )


@dataclass(frozen=True, slots=True)
class Used:
    """Every line, and what of the journal could not be read."""

    lines: tuple[Line, ...]
    problems: tuple[str, ...] = ()


def look_at_usage(config: PluginConfig, claim: str | None = None, silent: str = "") -> Used:
    """Looks once; `claim` as in `node_claims.chosen`. Blocks.

    silent: why the driver is not asked, empty where it is.
    Raises ClaimGoneError for a claim that is not here, StateError without a journal.
    """
    journal = node_claims.contents(config)
    entries = node_claims.chosen(journal, claim)

    def used(driver: Driver, limits: MemoryLimits | None) -> Used:
        lines = _lines(entries, journal, config, driver, limits)
        return Used(lines, node_claims.problems(journal))

    if silent:
        return used(Driver(problem=silent), None)
    try:
        gpus = hardware.gpus_of(config, beside_driver=True)
    except DragoonError as error:
        return used(Driver(problem=error.message), None)
    try:
        return used(_ask(gpus, entries), gpus.limits)
    finally:
        gpus.close()


def _ask(gpus: NvmlGpus, entries: Sequence[Entry]) -> Driver:
    whole = {h.address for e in entries for h in e.devices if h.share is None}
    if not whole:
        return Driver()
    cards = [PciAddress.parse(one) for one in sorted(whole)]
    try:
        memory = {
            gpu.uuid: gpu.memory_bytes
            for gpu in gpus.inventory().gpus
            if gpu.memory_bytes is not None
        }
        for card in cards:
            for instance in gpus.mig.instances(card):
                size = instance.profile.memory_mib
                if instance.uuid is not None and size is not None:
                    memory[instance.uuid] = size * MIB
        found = {str(card): users(card, gpus.processes, gpus.mig) for card in cards}
    except DragoonError as error:
        return Driver(problem=error.message)
    return Driver(found, memory)


def _lines(
    entries: Sequence[Entry],
    journal: Contents,
    config: PluginConfig,
    driver: Driver,
    limits: MemoryLimits | None,
) -> tuple[Line, ...]:
    paths = node_claims.paths_of(config)
    effects = HostEffects(Path(config.proc_root))
    wanted = {entry.claim for entry in entries}
    found: list[Line] = []
    # Of all claims: a region and a cap are for every claim of their container or pod.
    for one in usage(journal.entries, effects, paths, limits):
        if wanted & set(one.claims):
            found += _of_share(one, entries)
    for entry in entries:
        for held in entry.devices:
            if not held.admin_access and (held.share is None or held.share.tier is Tier.NONE):
                found.append(driver.line(entry, held))
    return tuple(sorted(found, key=_place))


def _of_share(one: ShareUsage, entries: Sequence[Entry]) -> Iterator[Line]:
    kind = Tier.HAMI if one.container else Tier.CGROUP
    mine = [held for entry in entries if entry.claim in one.claims for held in entry.devices]
    if not one.cards:
        for address in sorted({held.address for held in mine}):
            yield Line(one.claims, address, kind, one.pod_uid, one.container, problem=one.problem)
    addresses = {held.uuid: held.address for held in mine}
    for card in one.cards:
        yield Line(
            one.claims,
            addresses.get(card.card, card.card),
            kind,
            one.pod_uid,
            one.container,
            card.used,
            card.limit,
            card.cores if one.container else None,
            None if card.pids is None else len(card.pids),
            "the region says what cannot be" if card.suspicious else "",
        )


def _place(one: Line) -> tuple[str, str, str]:
    return (", ".join(map(str, one.claims)), one.container, one.gpu)
