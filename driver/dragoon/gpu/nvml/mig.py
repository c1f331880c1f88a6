"""Dividing a card, through NVML: the port `gpu.port.MigCards`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from ctypes import byref
from typing import Any

import pynvml

from dragoon.errors import HardwareError, InvalidInputError
from dragoon.gpu.faults import (
    CardInUseError,
    FeatureMissingError,
    InstanceChangedError,
    PlacementTakenError,
)
from dragoon.gpu.mig import GpuProcess, MigCard, MigInstance, occupied_by
from dragoon.gpu.model import MigMode, MigProfile, PciAddress, Placement
from dragoon.gpu.nvml.handles import Session, card_handle
from dragoon.gpu.nvml.mig_reading import (
    Found,
    compute_profiles,
    read_card,
    read_instances,
    read_mode,
)
from dragoon.gpu.nvml.refusals import refusal, refusals
from dragoon.gpu.nvml.usage import read_processes
from dragoon.gpu.pci import Roots


class NvmlMigCards:
    """Implements `gpu.port.MigCards`. on_new_mode is called when handles may have changed."""

    def __init__(self, session: Session, roots: Roots, on_new_mode: Callable[[], None]) -> None:
        self._session = session
        self._roots = roots
        self._on_new_mode = on_new_mode

    def card(self, address: PciAddress) -> MigCard | None:
        """See `gpu.port.MigCards`."""
        with self._asking(address, f"GPU {address}: read MIG profiles") as handle:
            return read_card(handle, address)

    def instances(self, address: PciAddress) -> tuple[MigInstance, ...]:
        """See `gpu.port.MigCards`."""
        with self._asking(address, f"GPU {address}: read MIG instances") as handle:
            card = read_card(handle, address)
            found = read_instances(handle, card, self._roots) if card else ()
            return tuple(one.instance for one in found)

    def set_mode(self, address: PciAddress, *, enabled: bool) -> MigMode:
        """See `gpu.port.MigCards`."""
        what = f"GPU {address}: turn MIG mode {'on' if enabled else 'off'}"
        with self._asking(address, what) as handle:
            card = _demand_mig(read_card(handle, address), what)
            wanted = MigMode(enabled=enabled, pending=enabled)
            if card.mode == wanted:
                return wanted
            left = read_instances(handle, card, self._roots)
            if left and not enabled:
                names = ", ".join(str(one.instance) for one in left)
                raise CardInUseError(
                    f"{what}: it still has {names}", hint="remove these instances first"
                )
            self._change_mode(handle, card, what, enabled=enabled)
        # The change may have taken the card off the bus and on again: everything is asked anew.
        self._on_new_mode()
        with self._asking(address, what) as handle:
            mode = read_mode(handle)
            if mode != wanted:
                raise HardwareError(f"{what}: it reads back as {mode}", retryable=True)
            return wanted

    def create(self, address: PciAddress, profile: str, placement: Placement) -> MigInstance:
        """See `gpu.port.MigCards`."""
        what = f"GPU {address}: make {profile} at {placement}"
        with self._asking(address, what) as handle:
            card = _demand_mig(read_card(handle, address), what)
            wanted = card.profile(profile)
            _demand_placement(wanted, placement, what)
            if not card.mode.enabled:
                raise FeatureMissingError(
                    f"{what}: the card is not in MIG mode", hint="turn MIG mode on first"
                )
            with ExitStack() as undo:
                made = self._place(handle, card, wanted, placement, what)
                undo.callback(_take_back, pynvml.nvmlGpuInstanceDestroy, made)
                undo.callback(_take_back, pynvml.nvmlComputeInstanceDestroy, _fill(made, wanted))
                seen = self._seen(handle, card, made)
                if seen.placement != placement or not seen.is_whole:
                    raise HardwareError(f"{what}: the driver shows {seen}")
                undo.pop_all()
                return seen

    def destroy(self, address: PciAddress, identity: int, uuid: str | None) -> None:
        """See `gpu.port.MigCards`."""
        what = f"GPU {address}: remove GPU instance {identity}"
        with self._asking(address, what) as handle:
            card = read_card(handle, address)
            listed = read_instances(handle, card, self._roots) if card else ()
            for found in listed:
                if found.instance.identity == identity:
                    _demand_meant(found.instance, uuid, what)
                    self._remove(handle, found, what)
                    self._demand_gone(handle, card, found.instance, what)

    @contextmanager
    def _asking(self, address: PciAddress, what: str) -> Iterator[Any]:
        with self._session():
            handle = card_handle(address)
            with refusals(what, lambda: read_processes(handle, self._roots)):
                yield handle

    def _change_mode(self, handle: Any, card: MigCard, what: str, *, enabled: bool) -> None:
        activation = pynvml.nvmlDeviceSetMigMode(handle, int(enabled))
        if activation != pynvml.NVML_SUCCESS:
            # What could not be done now would come as a surprise at the next reset.
            with suppress(pynvml.NVMLError):
                pynvml.nvmlDeviceSetMigMode(handle, int(card.mode.enabled))
            raise refusal(what, activation, lambda: read_processes(handle, self._roots))

    def _place(
        self, handle: Any, card: MigCard, profile: MigProfile, placement: Placement, what: str
    ) -> Any:
        place = pynvml.c_nvmlGpuInstancePlacement_t(placement.start, placement.size)
        try:
            return pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(
                handle, profile.identity, byref(place)
            )
        except pynvml.NVMLError_InsufficientResources as error:
            others = tuple(one.instance for one in read_instances(handle, card, self._roots))
            raise _taken(others, profile, placement, what) from error

    def _seen(self, handle: Any, card: MigCard, made: Any) -> MigInstance:
        identity = pynvml.nvmlGpuInstanceGetInfo(made).id
        for found in read_instances(handle, card, self._roots):
            if found.instance.identity == identity:
                return found.instance
        raise HardwareError(
            f"GPU {card.address}: the driver made GPU instance {identity}, and does not list it"
        )

    def _remove(self, handle: Any, found: Found, what: str) -> None:
        def users() -> tuple[GpuProcess, ...]:
            inside = found.instance.identity
            every = read_processes(handle, self._roots)
            return tuple(process for process in every if process.gpu_instance == inside)

        with refusals(what, users):
            for compute in found.compute:
                _gone(pynvml.nvmlComputeInstanceDestroy, compute)
            _gone(pynvml.nvmlGpuInstanceDestroy, found.handle)

    def _demand_gone(
        self, handle: Any, card: MigCard | None, removed: MigInstance, what: str
    ) -> None:
        """Success is said only after the instance is not seen any more."""
        left = read_instances(handle, card, self._roots) if card else ()
        if any(one.instance.identity == removed.identity for one in left):
            raise HardwareError(f"{what}: the driver still shows it", retryable=True)


def _fill(instance: Any, profile: MigProfile) -> Any:
    for kind in compute_profiles(instance):
        if kind.slices == profile.slices:
            return pynvml.nvmlGpuInstanceCreateComputeInstance(instance, kind.identity)
    raise HardwareError(f"the driver has no compute instance profile that fills {profile.name}")


def _take_back(remove: Callable[[Any], int], handle: Any) -> None:
    # If this fails too, the walk over GPU instances still shows what is left.
    with suppress(pynvml.NVMLError):
        remove(handle)


def _gone(remove: Callable[[Any], int], handle: Any) -> None:
    with suppress(pynvml.NVMLError_NotFound):
        remove(handle)


def _demand_mig(card: MigCard | None, what: str) -> MigCard:
    if card is None:
        raise FeatureMissingError(f"{what}: the card has no MIG")
    return card


def _demand_placement(profile: MigProfile, placement: Placement, what: str) -> None:
    if placement not in profile.placements:
        allowed = ", ".join(map(str, profile.placements))
        raise InvalidInputError(f"{what}: placement: found {placement}, allowed: {allowed}")


def _demand_meant(found: MigInstance, uuid: str | None, what: str) -> None:
    is_meant = not found.compute if uuid is None else found.uuid == uuid
    if not is_meant:
        meant = "one without a compute instance" if uuid is None else uuid
        raise InstanceChangedError(f"{what}: found {found}, meant was {meant}")


def _taken(
    others: tuple[MigInstance, ...], profile: MigProfile, placement: Placement, what: str
) -> PlacementTakenError:
    holders = occupied_by(others, placement)
    if not holders and len([o for o in others if o.profile == profile]) >= profile.instances:
        holders = tuple(one for one in others if one.profile == profile)
    if not holders:
        return PlacementTakenError(
            f"{what}: the card has not enough left for it, such as media engines, beside "
            f"{', '.join(map(str, others)) or 'nothing'}",
            retryable=not others,
        )
    return PlacementTakenError(f"{what}: in the way is {', '.join(map(str, holders))}")
