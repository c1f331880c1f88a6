"""From what a claim got and the hardware to what is to be done: pure, and final in its refusals.

The result is a journal entry: the devices, the hardware that they are, the steps that make them
usable and the answer all follow from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import msgspec

from dragoon.api.claims import AllocatedDevice, ClaimRef
from dragoon.api.enforcement import Tier
from dragoon.api.forms import Form
from dragoon.api.opaque_config import GpuConfig, TimeSlice
from dragoon.errors import ClaimError
from dragoon.gpu.model import Gpu, Inventory
from dragoon.prepare import cdi, cdi_check, exposing, shares
from dragoon.prepare.containers import Seating, seating
from dragoon.prepare.dividing import Divisible
from dragoon.prepare.enforcement.choosing import Enforcement
from dragoon.prepare.enforcement.errors import UnenforceableError
from dragoon.prepare.enforcement.tier import Grant, Measures
from dragoon.prepare.enforcement.time_slice import time_slice
from dragoon.prepare.given import Given, form_of
from dragoon.prepare.guard import fits, holder_of
from dragoon.prepare.journal import Entry, HeldDevice, State
from dragoon.prepare.locating import locate
from dragoon.prepare.mig import MigPart, part_of
from dragoon.prepare.mig_steps import MakeInstance, MigStep, SetMigMode, UseInstance
from dragoon.prepare.paths import check_device, check_uid
from dragoon.prepare.pods import PodLook
from dragoon.prepare.settings import PrepareSettings
from dragoon.prepare.shares import Share
from dragoon.prepare.steps import CdiFile, Step, with_record


@dataclass(frozen=True, slots=True)
class _Part:
    """What one device of the claim comes to."""

    held: HeldDevice
    node: cdi.Device
    steps: tuple[Step, ...] = ()


def needs_pod(given: Given, enforcement: Enforcement) -> bool:
    """Whether the pod of the claim must be read.

    Raises TierUnavailableError, UnenforceableError.
    """
    return any(
        enforcement.choose(given.ref, one.request, given.share_config(one)).needs_pod
        for one in given.shares
    )


def plan(
    given: Given,
    inventory: Inventory,
    settings: PrepareSettings,
    *,
    boot_id: str,
    common: cdi.Edits,
    enforcement: Enforcement | None = None,
    pod: PodLook | None = None,
    divisible: Divisible | None = None,
) -> Entry:
    """What to do for a claim.

    common is what every container with a real GPU needs; enforcement are the tiers for shares, and
    pod is read where `needs_pod` says so. What MIG devices come to is settled and filled in later
    (`mig_settling`, `mig_filling`). Raises UnknownDeviceError, DeviceLostError,
    HardwareError, ClaimError or InvalidInputError; a CdiError would be our bug.
    """
    check_uid(given.ref.uid)
    _check_once(given.ref, given.devices)
    seats = seating(pod, inventory, settings) if pod else None
    planner = _Planner(
        given,
        inventory,
        settings,
        boot_id,
        enforcement or Enforcement(),
        seats,
        divisible or Divisible(),
    )
    parts = [planner.part(result) for result in given.devices]
    steps = list(dict.fromkeys(step for part in parts for step in part.steps))
    # What a card is divided into is undone last.
    steps.sort(key=lambda step: not isinstance(step, MigStep))
    if parts:
        nodes = [part.node for part in parts]
        spec = cdi.claim_spec(settings.kind, nodes, cdi.Edits() if inventory.simulated else common)
        cdi_check.check(spec)
        steps.append(CdiFile(spec))
    entry = Entry(
        namespace=given.ref.namespace,
        name=given.ref.name,
        uid=given.ref.uid,
        boot_id=boot_id,
        state=State.PREPARING,
        devices=tuple(part.held for part in parts),
        steps=with_record(steps),
        pod_uid=seats.pod.uid if seats else "",
    )
    _check_together(entry)
    return entry


@dataclass(frozen=True, slots=True)
class _Planner:
    given: Given
    inventory: Inventory
    settings: PrepareSettings
    boot_id: str
    enforcement: Enforcement
    seats: Seating | None
    divisible: Divisible

    def part(self, result: AllocatedDevice) -> _Part:
        gpu = locate(self.given.ref, result, self.inventory, self.settings)
        uid = self.given.ref.uid
        name = cdi.device_name(uid, result.request, result.device, result.share_id)
        share, mig, measures = None, None, Measures()
        steps = list(self._card_steps(result, gpu))
        if result in self.given.shares:
            share, measures = self._share(result, gpu)
        elif form_of(result.device) is Form.MIG:
            mig = part_of(self.given.ref, result, gpu, self.divisible.cards.get(gpu.address))
            steps += self._mig_steps(result, gpu, mig)
        nodes: tuple[cdi.DeviceNode, ...] = ()
        mounts: tuple[cdi.Mount, ...] = ()
        if self.inventory.simulated:
            mounts = (exposing.simulated_mount(uid, result.device, self.settings),)
            steps.insert(0, exposing.marker(result.device, gpu.uuid))
        elif mig is None:
            nodes = (exposing.gpu_node(result.device, gpu.minor, self.settings),)
        variable = cdi.device_variable(result.device, "" if mig else gpu.uuid)
        edits = cdi.Edits(
            env=(variable, *measures.edits.env),
            device_nodes=nodes,
            mounts=(*mounts, *measures.edits.mounts),
            hooks=measures.edits.hooks,
        )
        held = _held(result, gpu, share, mig, cdi.qualified(self.settings.kind, name))
        return _Part(held, cdi.Device(name, edits), (*steps, *measures.steps))

    def _share(self, result: AllocatedDevice, gpu: Gpu) -> tuple[Share, Measures]:
        ref = self.given.ref
        amount = shares.amount(ref, result, gpu, self.settings.driver)
        config = self.given.share_config(result)
        tier = self.enforcement.choose(ref, result.request, config)
        if not amount.memory and tier.name is not Tier.NONE:
            raise UnenforceableError(
                f"claim {ref}: {result.device} does not say how much memory it has, so a share of "
                f"it cannot be limited by the tier {tier.name}",
                hint="ask for the whole GPU",
            )
        container = self.seats.container(self.given, result) if self.seats else None
        grant = Grant(
            ref, result.request, gpu, amount, self.seats.pod if self.seats else None, container
        )
        share = Share(
            memory=amount.memory,
            cores=amount.cores,
            card_memory=gpu.memory_bytes or 0,
            tier=tier.name,
            container=container.name if container else "",
        )
        return share, tier.plan(grant)

    def _card_steps(self, result: AllocatedDevice, gpu: Gpu) -> Iterator[Step]:
        """What is set on a card for as long as a claim has it, whole or a share of it."""
        if result.admin_access:
            return
        has_mig = gpu.mig is not None and self.divisible.allowed
        if has_mig and form_of(result.device) is not Form.MIG:
            yield SetMigMode(str(gpu.address), enabled=False, boot_id=self.boot_id)
        config = self.given.config(result)
        if isinstance(config, GpuConfig):
            interval = config.time_slice or TimeSlice.DEFAULT
            if interval is not TimeSlice.DEFAULT:
                yield time_slice(gpu, interval)

    def _mig_steps(self, result: AllocatedDevice, gpu: Gpu, part: MigPart) -> Iterator[Step]:
        """Admin access looks at what is there, and makes nothing."""
        address = str(gpu.address)
        if result.admin_access:
            found = msgspec.structs.replace(part, made=False)
            yield UseInstance(result.device, address, found)
        else:
            yield SetMigMode(address, enabled=True, boot_id=self.boot_id)
            yield MakeInstance(result.device, address, part, self.boot_id)


def _check_once(ref: ClaimRef, results: tuple[AllocatedDevice, ...]) -> None:
    seen: set[tuple[str, str, str | None]] = set()
    for result in results:
        named = (result.request, result.device, result.share_id)
        if named in seen:
            raise _given_twice(ref, result.device)
        seen.add(named)


def _check_together(entry: Entry) -> None:
    """Two requests of one claim would each believe that the GPU, or its rest, is theirs."""
    held = [one for one in entry.devices if not one.admin_access]
    marks = holder_of(entry).footprints
    for one, other in combinations(range(len(held)), 2):
        if marks[one].same_card(marks[other]) and marks[one].excludes(marks[other]):
            raise _given_twice(entry.claim, held[one].device)
    for number, mark in enumerate(marks):
        if not fits([mark, *(one for one in marks[number + 1 :] if one.same_card(mark))]):
            raise ClaimError(
                f"claim {entry.claim}: its shares of {held[number].device} are more than the GPU "
                "has together",
                hint="delete the pod and its claim; whoever allocated it made a mistake",
            )


def _given_twice(ref: ClaimRef, device: str) -> ClaimError:
    return ClaimError(
        f"claim {ref}: the allocation gives {device} twice to one claim",
        hint="delete the pod and its claim; whoever allocated it made a mistake",
    )


def _held(
    result: AllocatedDevice, gpu: Gpu, share: Share | None, mig: MigPart | None, cdi_id: str
) -> HeldDevice:
    return HeldDevice(
        request=result.request,
        pool=result.pool,
        device=check_device(result.device),
        address=str(gpu.address),
        uuid=gpu.uuid,
        cdi_id=cdi_id,
        share_id=result.share_id,
        admin_access=result.admin_access,
        share=share,
        mig=mig,
    )
