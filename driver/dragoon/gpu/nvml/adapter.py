"""The GPUs of this node, through NVML."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pynvml

from dragoon.errors import HardwareError
from dragoon.gpu.mig import MigInstance
from dragoon.gpu.model import Gpu, Inventory, LostGpu, MigProfile, PciAddress
from dragoon.gpu.nvml.asking import Asking, CardSilentError
from dragoon.gpu.nvml.card import look_at
from dragoon.gpu.nvml.condition import NvmlConditions
from dragoon.gpu.nvml.events import NvmlEvents
from dragoon.gpu.nvml.library import Library
from dragoon.gpu.nvml.links import with_known_ends
from dragoon.gpu.nvml.lost import locate, told_apart
from dragoon.gpu.nvml.mig import NvmlMigCards
from dragoon.gpu.nvml.survey import read_memory_node, read_mig_profiles, read_symbols
from dragoon.gpu.nvml.usage import NvmlMemoryLimits, NvmlProcesses
from dragoon.gpu.nvml.walking import Patience, Walk
from dragoon.gpu.pci import BusCard, Roots, bus_cards, listed_uuid


@dataclass(frozen=True, slots=True)
class Survey:
    """An inventory with MIG profiles, instances and GPU memory nodes by address, and symbols."""

    inventory: Inventory
    mig_profiles: Mapping[PciAddress, tuple[MigProfile, ...]]
    mig_instances: Mapping[PciAddress, tuple[MigInstance, ...]]
    memory_nodes: Mapping[PciAddress, int | None]
    symbols: Mapping[str, bool]


class NvmlGpus:
    """Implements the ports of `gpu.port` with the driver library. Thread-safe; calls block.

    Itself it is the port `Gpus`; `mig`, `processes`, `limits`, `conditions` and `events` are the
    others. A look never waits for a change of a card, nor the other way round.

    `stand_in` is a library to use in place of the installed one; then `simulated` is true. folders:
    where the installed one is looked for before the system's own folders. The
    library lists cards as they were when it was opened, so it is opened again after a look that
    missed a card, and when the cards on the bus are not those it was opened with; while a call hangs
    in it, it stays open. patience: with one card, in a look and when it is asked how it is.
    `on_close` is called once, when the library has been released.
    """

    def __init__(
        self,
        roots: Roots | None = None,
        *,
        stand_in: object | None = None,
        folders: Sequence[Path] = (),
        patience: Patience | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self.roots = roots or Roots()
        self.simulated = stand_in is not None
        self._library = Library(stand_in, folders=folders)
        self._seen: dict[PciAddress, Gpu] = {}
        self._opened_with: frozenset[PciAddress] | None = None
        self._on_close = on_close
        self._looking = threading.RLock()
        patience = patience or Patience()
        self._walk: Walk[Gpu | LostGpu] = Walk(
            self._library, partial(look_at, roots=self.roots), _place_of_working, patience
        )
        self.processes = NvmlProcesses(self.session, self.roots)
        self.mig = NvmlMigCards(self.session, self.roots, self._forget_opening)
        self.limits = NvmlMemoryLimits(self.session)
        self.conditions = NvmlConditions(self._library, self.session, patience)
        self.events = NvmlEvents(self._library, self.session, patience)

    @contextmanager
    def session(self) -> Iterator[tuple[BusCard, ...]]:
        """The library, open and behind pynvml, and the cards that the kernel lists."""
        with self._library.held():
            bus = bus_cards(self.roots)
            self._open(bus)
            yield bus

    def inventory(self) -> Inventory:
        """See `gpu.port.Gpus`."""
        with self._looking, self.session() as bus:
            try:
                return self._look(bus)
            except HardwareError:
                self._forget_opening()
                raise

    def survey(self) -> Survey:
        """One look, and what a report about a machine wants to know besides. Changes nothing."""
        with self._looking, self.session():
            inventory = self.inventory()
            profiles, nodes, instances = {}, {}, {}
            for gpu in inventory.gpus:
                asking = Asking()
                with suppress(CardSilentError):
                    handle = asking.must(
                        "handle", partial(pynvml.nvmlDeviceGetHandleByIndex, gpu.index)
                    )
                    profiles[gpu.address] = read_mig_profiles(handle, asking)
                    nodes[gpu.address] = read_memory_node(handle, asking)
                with suppress(HardwareError):
                    instances[gpu.address] = self.mig.instances(gpu.address)
            return Survey(inventory, profiles, instances, nodes, read_symbols())

    def close(self) -> None:
        """See `gpu.port.Gpus`."""
        self._library.close()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()

    def _open(self, bus: tuple[BusCard, ...]) -> None:
        addresses = frozenset(card.address for card in bus)
        if addresses == self._opened_with or self._library.shut_when_alone():
            self._opened_with = addresses  # else a later call sees to it
        self._library.open()

    def _forget_opening(self) -> None:
        self._opened_with = None

    def _look(self, bus: tuple[BusCard, ...]) -> Inventory:
        walked = self._walk(self._library.count())
        why = self._walk.why_silent
        hanging = (LostGpu(address, why, hangs=True) for address in walked.silent)
        gpus, silent = told_apart([*walked.answers, *hanging])
        gpus = tuple(self._with_known_ends(gpu) for gpu in gpus)
        known = {address: gpu.uuid for address, gpu in self._seen.items()}
        lost = tuple(self._with_listed_uuid(card) for card in locate(gpus, silent, bus, known))
        self._remember(gpus, bus)
        if lost:
            self._forget_opening()
        return Inventory(
            gpus=gpus,
            lost=lost,
            driver_version=_driver_version(),
            cuda_version=_cuda_version(),
            simulated=self.simulated,
        )

    def _with_known_ends(self, gpu: Gpu) -> Gpu:
        before = self._seen.get(gpu.address)
        if before is None or before.uuid != gpu.uuid:
            return gpu
        return replace(gpu, links=with_known_ends(gpu.links, before.links))

    def _with_listed_uuid(self, card: LostGpu) -> LostGpu:
        """Nobody reads the listing of a card that hangs: the kernel module would ask the card."""
        if card.uuid or card.hangs or card.address is None:
            return card
        return replace(card, uuid=listed_uuid(self.roots, card.address))

    def _remember(self, gpus: tuple[Gpu, ...], bus: tuple[BusCard, ...]) -> None:
        self._seen.update({gpu.address: gpu for gpu in gpus})
        for card in bus:
            if card.foreign:
                self._seen.pop(card.address, None)


def _place_of_working(card: Gpu | LostGpu) -> PciAddress | None:
    return card.address if isinstance(card, Gpu) else None


def _driver_version() -> str | None:
    try:
        return str(pynvml.nvmlSystemGetDriverVersion())
    except (pynvml.NVMLError, ValueError):
        return None


def _cuda_version() -> tuple[int, int] | None:
    try:
        number = int(pynvml.nvmlSystemGetCudaDriverVersion_v2())
    except pynvml.NVMLError:
        return None
    return number // 1000, number % 1000 // 10  # NVML says 13000 for 13.0
