"""The MIG state machine of a simulated card: what each change does, or what NVML refuses it with.

Pure: every function takes a state and returns the next one, or raises RefusedError. Facts are
NVML's (nvml.h, MIG user guide): instances lie only at the starts that the profile lists; memory
slices belong to one instance; media engines are few; Ampere changes its mode by a reset and keeps
it over reboots, Hopper and later change at once and forget it; no instance survives a reset.
"""

from collections.abc import Iterable
from dataclasses import replace

from dragoon.gpu.model import MigProfile, Placement
from dragoon.gpu.sim.codes import (
    IN_USE,
    INSUFFICIENT_RESOURCES,
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    SUCCESS,
)
from dragoon.gpu.sim.machine import Card
from dragoon.gpu.sim.occupants import ComputeInstanceState, GpuInstanceState, ProcessState
from dragoon.gpu.sim.state import CardState, State, changed
from dragoon.gpu.words import ARCHITECTURES, number_of

_HOPPER = 9  # NVML_DEVICE_ARCH_HOPPER
_FIRST_CAPABILITY = 3  # 1 and 2 are for the configuration and the monitoring of MIG


class RefusedError(Exception):
    """The change is refused with that NVML code, and nothing has changed."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def is_resetless(card: Card) -> bool:
    """The mode changes without a reset (NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED)."""
    return (number_of(card.architecture or "", ARCHITECTURES) or 0) >= _HOPPER


def with_mode(state: State, slot: int, *, wanted: bool) -> tuple[State, int]:
    """The state after nvmlDeviceSetMigMode, and its activation status.

    A change that cannot be made now stays pending until the next reset or boot.
    """
    card, now = state.machine.cards[slot], state.cards[slot]
    if not card.mig:
        raise RefusedError(NOT_SUPPORTED)
    if now.mig_enabled == wanted:
        return changed(state, slot, mig_pending=wanted), SUCCESS
    if now.instances:
        raise RefusedError(IN_USE)
    pending = changed(state, slot, mig_pending=wanted)
    if now.processes:
        return pending, IN_USE
    if is_resetless(card):
        return changed(pending, slot, mig_enabled=wanted), SUCCESS
    if now.reset_blocked:
        return pending, RESET_REQUIRED
    # The driver takes the card off and on again: it gets the next minor number that is free.
    used = [state.minor(other) for other in range(len(state.cards))]
    minor = max((number for number in used if number is not None), default=-1) + 1
    return changed(_reset(pending, slot), slot, minor=minor), SUCCESS


def reset(state: State, slot: int) -> State:
    """The state after `nvidia-smi --gpu-reset`: refused while anybody uses the card."""
    if changed(state, slot).cards[slot].processes:
        raise RefusedError(IN_USE)
    return _reset(state, slot)


def rebooted(state: State) -> State:
    """The state after a reboot: new boot id, no instances, processes or caps, other minors."""
    slots = range(len(state.cards))
    minors = [state.minor(slot) for slot in slots]
    turned = minors[1:] + minors[:1]
    for slot, minor in zip(slots, turned, strict=True):
        state = _reset(state, slot)
        kept = state.cards[slot].mig_enabled and not is_resetless(state.machine.cards[slot])
        state = changed(
            state, slot, minor=minor, processes=(), caps=(), mig_enabled=kept, mig_pending=kept
        )
    return replace(state, boot=state.boot + 1)


def with_gpu_instance(
    state: State, slot: int, profile_id: int, placement: Placement | None
) -> tuple[State, GpuInstanceState]:
    """The state with one more GPU instance: there, or at the first place that is free."""
    card, now = state.machine.cards[slot], state.cards[slot]
    profile = profile_with(card, profile_id)
    if not now.mig_enabled:
        raise RefusedError(NOT_SUPPORTED)
    allowed = profile.placements if placement is None else (placement,)
    if not set(allowed) <= set(profile.placements):
        raise RefusedError(INVALID_ARGUMENT)
    free = [place for place in allowed if has_room(card, now, profile, place)]
    if not free:
        raise RefusedError(INSUFFICIENT_RESOURCES)
    instance = GpuInstanceState(
        identity=_identity(card, now, profile),
        serial=state.next_serial,
        profile=profile.identity,
        start=free[0].start,
        size=free[0].size,
        minor=_next_minor(state),
    )
    instances = sorted((*now.instances, instance), key=lambda one: one.start)
    state = replace(state, next_serial=state.next_serial + 1)
    return changed(state, slot, instances=tuple(instances)), instance


def has_room(card: Card, now: CardState, profile: MigProfile, placement: Placement) -> bool:
    """Slices, the limit of the profile, and media engines allow one more instance there."""
    others = [profile_with(card, one.profile) for one in now.instances]
    return (
        not any(one.placement.overlaps(placement) for one in now.instances)
        and others.count(profile) < profile.instances
        and not any(_share_media_engines(profile, other) for other in others)
    )


def remaining(state: State, slot: int, profile_id: int) -> int:
    """How many more instances of the profile can be made (nvmlDeviceGetGpuInstanceRemaining...)."""
    count = 0
    while True:
        try:
            state, _ = with_gpu_instance(state, slot, profile_id, None)
        except RefusedError as refused:
            if refused.code == INSUFFICIENT_RESOURCES:
                return count
            raise
        count += 1


def with_compute_instance(
    state: State, slot: int, serial: int, slices: int, start: int | None = None
) -> tuple[State, ComputeInstanceState]:
    """The state with one more compute instance in a GPU instance."""
    parent = instance_with(state, slot, serial)
    whole = profile_with(state.machine.cards[slot], parent.profile).slices
    starts = range(whole - slices + 1) if start is None else (start,)
    wanted = [Placement(first, slices) for first in starts if first + slices <= whole]
    taken = [Placement(one.start, one.slices) for one in parent.compute]
    free = [place for place in wanted if not any(place.overlaps(other) for other in taken)]
    if not wanted:
        raise RefusedError(INVALID_ARGUMENT)
    if not free:
        raise RefusedError(INSUFFICIENT_RESOURCES)
    instance = ComputeInstanceState(
        identity=_lowest_free(one.identity for one in parent.compute),
        serial=state.next_serial,
        uuid=state.mig_uuid(state.next_serial),
        slices=slices,
        start=free[0].start,
        minor=_next_minor(state),
    )
    state = replace(state, next_serial=state.next_serial + 1)
    return _put(state, slot, replace(parent, compute=(*parent.compute, instance))), instance


def without_compute_instance(state: State, slot: int, serial: int) -> State:
    """The state without that compute instance; refused while a process uses it."""
    parent, gone = compute_instance_with(state, slot, serial)
    if processes_in(state, slot, parent.identity, gone.identity):
        raise RefusedError(IN_USE)
    rest = tuple(one for one in parent.compute if one is not gone)
    return _put(state, slot, replace(parent, compute=rest))


def without_gpu_instance(state: State, slot: int, serial: int) -> State:
    """The state without that GPU instance; refused while it has compute instances or processes."""
    gone = instance_with(state, slot, serial)
    if gone.compute or processes_in(state, slot, gone.identity):
        raise RefusedError(IN_USE)
    rest = tuple(one for one in state.cards[slot].instances if one is not gone)
    return changed(state, slot, instances=rest)


def with_process(state: State, slot: int, process: ProcessState) -> State:
    """The state with one more process, or with another size of it; refused on no such instance."""
    now = changed(state, slot).cards[slot]
    if now.mig_enabled and process.listed:
        devices = {(one.identity, ci.identity) for one in now.instances for ci in one.compute}
        if (process.gpu_instance, process.compute_instance) not in devices:
            raise RefusedError(INVALID_ARGUMENT)
    rest = tuple(other for other in now.processes if other.pid != process.pid)
    return changed(state, slot, processes=(*rest, process))


def processes_in(
    state: State, slot: int, gpu_instance: int, compute_instance: int | None = None
) -> tuple[ProcessState, ...]:
    """The processes of one GPU instance, or of one compute instance of it."""
    return tuple(
        process
        for process in state.cards[slot].processes
        if process.gpu_instance == gpu_instance
        and compute_instance in {None, process.compute_instance}
    )


def profile_with(card: Card, identity: int) -> MigProfile:
    """The profile with that id of the driver."""
    for profile in card.mig:
        if profile.identity == identity:
            return profile
    raise RefusedError(INVALID_ARGUMENT if card.mig else NOT_SUPPORTED)


def instance_with(state: State, slot: int, serial: int) -> GpuInstanceState:
    """The GPU instance with that serial number."""
    for instance in state.cards[slot].instances:
        if instance.serial == serial:
            return instance
    raise RefusedError(NOT_FOUND)


def compute_instance_with(
    state: State, slot: int, serial: int
) -> tuple[GpuInstanceState, ComputeInstanceState]:
    """The compute instance with that serial number, and the GPU instance around it."""
    for parent in state.cards[slot].instances:
        for one in parent.compute:
            if one.serial == serial:
                return parent, one
    raise RefusedError(NOT_FOUND)


def _reset(state: State, slot: int) -> State:
    now = state.cards[slot]
    condition = now.condition.after_reset()
    return changed(state, slot, instances=(), mig_enabled=now.mig_pending, condition=condition)


def _put(state: State, slot: int, instance: GpuInstanceState) -> State:
    instances = tuple(
        instance if one.serial == instance.serial else one for one in state.cards[slot].instances
    )
    return changed(state, slot, instances=instances)


def _identity(card: Card, now: CardState, profile: MigProfile) -> int:
    """Ids are counted from one start per size: 0 for all slices, 1 for halves, 3 for quarters."""
    width = max(place.start + place.size for one in card.mig for place in one.placements)
    first = width // profile.size - 1
    return _lowest_free((one.identity for one in now.instances), first)


def _lowest_free(taken: Iterable[int], number: int = 0) -> int:
    used = set(taken)
    while number in used:
        number += 1
    return number


def _next_minor(state: State) -> int:
    """Never the same one for two instances, so that nothing works that remembered one."""
    return _FIRST_CAPABILITY + state.next_serial


def _share_media_engines(one: MigProfile, other: MigProfile) -> bool:
    """Both want the engines of which a card has one, or one of them wants all.

    As the profiles are described: `+me` has the single JPEG decoder and optical flow engine,
    `+me.all` every media engine, `-me` none.
    """
    kinds = {_media(one), _media(other)}
    return kinds == {"+me"} or ("+me.all" in kinds and kinds != {"+me.all", "-me"})


def _media(profile: MigProfile) -> str:
    found = [suffix for suffix in ("+me.all", "+me", "-me") if profile.name.endswith(suffix)]
    return found[0] if found else ""
