"""NVML's C functions for MIG: modes, GPU and compute instances, MIG devices.

As in `answers`: a function gets the caller's arguments, writes into the caller's memory and
returns an NVML code. Those that change something do it in one step of the state file.
"""

from collections.abc import Callable, Sequence
from typing import Any

from dragoon.gpu.model import MigProfile, Placement
from dragoon.gpu.sim.codes import (
    ARGUMENT_VERSION_MISMATCH,
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    number,
    put_handle,
    put_member,
    put_number,
    target,
)
from dragoon.gpu.sim.handles import Handles, Kind, Thing
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.occupants import ComputeInstanceState, GpuInstanceState
from dragoon.gpu.sim.partitioning import (
    compute_instance_with,
    instance_with,
    profile_with,
    remaining,
    with_compute_instance,
    with_gpu_instance,
    with_mode,
    without_compute_instance,
    without_gpu_instance,
)
from dragoon.gpu.sim.state import State

_COMPUTE_PROFILE_V2 = 0x02000088
# NVML_COMPUTE_INSTANCE_PROFILE_* by compute slices; the simulated ids are the same numbers.
_COMPUTE_PROFILES = {0: 1, 1: 2, 2: 3, 3: 4, 4: 7, 5: 8, 6: 6}
_MOST_COMPUTE_PROFILES = 9
_MODES = (0, 1)


class MigAnswers:
    """The functions of one process. `table` names them by C symbol."""

    def __init__(self, hardware: Hardware, handles: Handles) -> None:
        self._hardware = hardware
        self._handles = handles

    def table(self) -> dict[str, Callable[..., int]]:
        """Every function takes the state before the call, the thing of its handle, and the rest."""
        return {
            "nvmlDeviceSetMigMode": self._set_mode,
            "nvmlDeviceCreateGpuInstance": self._create,
            "nvmlDeviceCreateGpuInstanceWithPlacement": self._create_there,
            "nvmlDeviceGetGpuInstances": self._instances,
            "nvmlDeviceGetGpuInstanceById": self._instance_by_id,
            "nvmlDeviceGetGpuInstanceRemainingCapacity": self._remaining,
            "nvmlDeviceGetMigDeviceHandleByIndex": self._mig_device,
            "nvmlGpuInstanceDestroy": self._destroy,
            "nvmlGpuInstanceGetInfo": self._info,
            "nvmlGpuInstanceGetComputeInstanceProfileInfo": self._compute_profile,
            "nvmlGpuInstanceGetComputeInstanceProfileInfoV": self._compute_profile_v,
            "nvmlGpuInstanceCreateComputeInstance": self._create_compute,
            "nvmlGpuInstanceGetComputeInstances": self._compute_instances,
            "nvmlGpuInstanceGetComputeInstanceById": self._compute_by_id,
            "nvmlComputeInstanceDestroy": self._destroy_compute,
            "nvmlComputeInstanceGetInfo_v2": self._compute_info,
        }

    def _set_mode(self, _state: State, card: Thing, mode: Any, status: Any) -> int:
        if number(mode) not in _MODES:
            return INVALID_ARGUMENT
        activation = SUCCESS

        def decide(state: State) -> State:
            nonlocal activation
            state, activation = with_mode(state, card.slot, wanted=bool(number(mode)))
            return state

        self._hardware.change(decide)
        target(status).value = activation
        return SUCCESS

    def _create(self, _state: State, card: Thing, profile: Any, reference: Any) -> int:
        return self._make(card, number(profile), None, reference)

    def _create_there(
        self, _state: State, card: Thing, profile: Any, placement: Any, reference: Any
    ) -> int:
        place = Placement(target(placement).start, target(placement).size)
        return self._make(card, number(profile), place, reference)

    def _make(self, card: Thing, profile: int, placement: Placement | None, reference: Any) -> int:
        made: list[GpuInstanceState] = []

        def decide(state: State) -> State:
            state, instance = with_gpu_instance(state, card.slot, profile, placement)
            made.append(instance)
            return state

        self._hardware.change(decide)
        return self._put(reference, Kind.GPU_INSTANCE, card, made[0].serial)

    def _instances(self, state: State, card: Thing, profile: Any, array: Any, count: Any) -> int:
        now = state.cards[card.slot]
        profile_with(state.machine.cards[card.slot], number(profile))
        if not now.mig_enabled:
            return NOT_SUPPORTED
        found = [one.serial for one in now.instances if one.profile == number(profile)]
        return self._put_all(array, count, Kind.GPU_INSTANCE, card, found)

    def _instance_by_id(self, state: State, card: Thing, identity: Any, reference: Any) -> int:
        for one in state.cards[card.slot].instances:
            if one.identity == number(identity):
                return self._put(reference, Kind.GPU_INSTANCE, card, one.serial)
        return NOT_FOUND

    def _remaining(self, state: State, card: Thing, profile: Any, reference: Any) -> int:
        return put_number(reference, remaining(state, card.slot, number(profile)))

    def _mig_device(self, state: State, card: Thing, index: Any, reference: Any) -> int:
        if not state.cards[card.slot].mig_enabled:
            return NOT_SUPPORTED
        devices = [one.serial for gi in state.cards[card.slot].instances for one in gi.compute]
        if not 0 <= number(index) < len(devices):
            return NOT_FOUND
        return self._put(reference, Kind.MIG_DEVICE, card, devices[number(index)])

    def _destroy(self, _state: State, instance: Thing) -> int:
        self._hardware.change(
            lambda state: without_gpu_instance(state, instance.slot, instance.serial)
        )
        return SUCCESS

    def _info(self, state: State, instance: Thing, reference: Any) -> int:
        found = instance_with(state, instance.slot, instance.serial)
        info = target(reference)
        info.id, info.profileId = found.identity, found.profile
        info.placement.start, info.placement.size = found.start, found.size
        put_member(info, "device", self._handles.address(Thing(Kind.DEVICE, instance.slot)))
        return SUCCESS

    def _compute_profile_v(
        self, state: State, instance: Thing, profile: Any, engines: Any, reference: Any
    ) -> int:
        info = target(reference)
        if info.version != _COMPUTE_PROFILE_V2:
            return ARGUMENT_VERSION_MISMATCH
        code = self._compute_profile(state, instance, profile, engines, reference)
        if code == SUCCESS:
            whole = self._profile(state, instance)
            part = "" if info.sliceCount == whole.slices else f"{info.sliceCount}c."
            info.name = f"MIG {part}{whole.name}".encode()
        return code

    def _compute_profile(
        self, state: State, instance: Thing, profile: Any, engines: Any, reference: Any
    ) -> int:
        if number(engines) != 0 or not 0 <= number(profile) < _MOST_COMPUTE_PROFILES:
            return INVALID_ARGUMENT
        whole = self._profile(state, instance)
        slices = _COMPUTE_PROFILES.get(number(profile))
        if slices is None or slices > whole.slices:
            return NOT_SUPPORTED
        info = target(reference)
        info.id, info.sliceCount, info.instanceCount = (
            number(profile),
            slices,
            whole.slices // slices,
        )
        info.multiprocessorCount = (whole.multiprocessors or 0) * slices // whole.slices
        return SUCCESS

    def _create_compute(self, _state: State, instance: Thing, profile: Any, reference: Any) -> int:
        slices = _COMPUTE_PROFILES.get(number(profile))
        if slices is None:
            return INVALID_ARGUMENT
        made: list[ComputeInstanceState] = []

        def decide(state: State) -> State:
            state, one = with_compute_instance(state, instance.slot, instance.serial, slices)
            made.append(one)
            return state

        self._hardware.change(decide)
        return self._put(reference, Kind.COMPUTE_INSTANCE, instance, made[0].serial)

    def _compute_instances(
        self, state: State, instance: Thing, profile: Any, array: Any, count: Any
    ) -> int:
        slices = _COMPUTE_PROFILES.get(number(profile))
        if slices is None:
            return INVALID_ARGUMENT
        parent = instance_with(state, instance.slot, instance.serial)
        found = [one.serial for one in parent.compute if one.slices == slices]
        return self._put_all(array, count, Kind.COMPUTE_INSTANCE, instance, found)

    def _compute_by_id(self, state: State, instance: Thing, identity: Any, reference: Any) -> int:
        for one in instance_with(state, instance.slot, instance.serial).compute:
            if one.identity == number(identity):
                return self._put(reference, Kind.COMPUTE_INSTANCE, instance, one.serial)
        return NOT_FOUND

    def _destroy_compute(self, _state: State, compute: Thing) -> int:
        self._hardware.change(
            lambda state: without_compute_instance(state, compute.slot, compute.serial)
        )
        return SUCCESS

    def _compute_info(self, state: State, compute: Thing, reference: Any) -> int:
        parent, found = compute_instance_with(state, compute.slot, compute.serial)
        info = target(reference)
        info.id, info.placement.start, info.placement.size = (
            found.identity,
            found.start,
            found.slices,
        )
        info.profileId = next(
            p for p, slices in _COMPUTE_PROFILES.items() if slices == found.slices
        )
        around = Thing(Kind.GPU_INSTANCE, compute.slot, parent.serial)
        put_member(info, "gpuInstance", self._handles.address(around))
        device = Thing(Kind.MIG_DEVICE, compute.slot, compute.serial)
        put_member(info, "device", self._handles.address(device))
        return SUCCESS

    def _profile(self, state: State, instance: Thing) -> MigProfile:
        found = instance_with(state, instance.slot, instance.serial)
        return profile_with(state.machine.cards[instance.slot], found.profile)

    def _put(self, reference: Any, kind: Kind, beside: Thing, serial: int) -> int:
        return self._handles.put(reference, Thing(kind, beside.slot, serial))

    def _put_all(
        self, array: Any, count: Any, kind: Kind, beside: Thing, serials: Sequence[int]
    ) -> int:
        # As in the real library, what the caller wrote into `count` says nothing.
        if array is None or len(array) < len(serials):
            return INVALID_ARGUMENT
        target(count).value = len(serials)
        for position, serial in enumerate(serials):
            put_handle(array, self._handles.address(Thing(kind, beside.slot, serial)), position)
        return SUCCESS
