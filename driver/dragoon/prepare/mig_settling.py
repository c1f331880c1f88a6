"""What the MIG steps of a claim come to on the card as it is now, before anything is journaled.

The caller holds the lock of the card. Refusals come from here, so that nothing is half done:
somebody else's instance in the way, a mode that must not or cannot be changed.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import msgspec

from dragoon.errors import UnknownDeviceError
from dragoon.gpu.faults import CardInUseError, FeatureMissingError, ResetRequiredError
from dragoon.gpu.mig import occupied_by
from dragoon.gpu.port import MigCards
from dragoon.prepare.journal import Entry
from dragoon.prepare.mig_filling import with_parts
from dragoon.prepare.mig_steps import (
    MakeInstance,
    MigStep,
    SetMigMode,
    UseInstance,
    blaming,
    standing,
    taken,
)
from dragoon.prepare.steps import Step, with_record

_GONE = "delete the pod and its claim: a new claim is allocated from what is here now"


def settled(
    wanted: Entry, own: Entry | None, others: Collection[Entry], mig: MigCards, *, may_divide: bool
) -> Entry:
    """The entry with the steps that are needed, and what each MIG device is.

    own is what the journal has of this claim, of whichever boot; others are the other claims of
    this boot. may_divide: this node may change modes and make instances. Raises what
    `gpu.port.MigCards` raises, and UnknownDeviceError for a device that cannot be had any more.
    """
    if not any(isinstance(step, MigStep) for step in wanted.steps):
        return wanted
    steps = tuple(_Settler(wanted, own, tuple(others), mig, may_divide).steps())
    return with_parts(wanted, with_record(steps))


def reopened(entry: Entry, mig: MigCards) -> Entry:
    """A prepared entry in which the UUIDs of instances that are lost are unknown again.

    So it must stand in the journal before they are made anew. Raises PlacementTakenError when
    somebody else took the place of one, and what `gpu.port.MigCards` raises.
    """
    steps = tuple(
        _reopened(step, mig) if isinstance(step, MakeInstance) else step for step in entry.steps
    )
    return entry if steps == entry.steps else with_parts(entry, steps)


def _reopened(step: MakeInstance, mig: MigCards) -> MakeInstance:
    instances = mig.instances(step.card)
    found = standing(instances, step.part)
    if not step.part.uuid or (found is not None and found.uuid == step.part.uuid):
        return step
    others = tuple(
        one
        for one in occupied_by(instances, step.part.placement)
        if one.compute or one is not found
    )
    if others:
        raise taken(step.address, step.part, others)
    return msgspec.structs.replace(step, part=msgspec.structs.replace(step.part, uuid=""))


@dataclass(frozen=True, slots=True)
class _Settler:
    wanted: Entry
    own: Entry | None
    others: tuple[Entry, ...]
    mig: MigCards
    may_divide: bool

    def steps(self) -> Iterator[Step]:
        for step in self.wanted.steps:
            match step:
                case SetMigMode():
                    with blaming(step):
                        needed = self._is_needed(step)
                    if needed:
                        yield step
                case MakeInstance() | UseInstance():
                    yield self._instance(step)
                case _:
                    yield step

    @property
    def _begun(self) -> tuple[Step, ...]:
        """The steps of this boot that this claim has begun."""
        same_boot = self.own is not None and self.own.boot_id == self.wanted.boot_id
        return self.own.steps if self.own is not None and same_boot else ()

    def _is_needed(self, step: SetMigMode) -> bool:
        address = step.card
        card = self.mig.card(address)
        is_on = card is not None and card.mode.enabled
        if is_on == step.enabled:
            # Where claims of ours switched it on, the last of them switches it off.
            begun = (self._begun, *(one.steps for one in self.others))
            return step.enabled and any(step in steps for steps in begun)
        where = f"GPU {address}: its MIG mode is {'on' if is_on else 'off'}"
        if card is None:
            raise FeatureMissingError(f"GPU {address}: the card has no MIG")
        if step.enabled:
            self._demand_permission(where)
        if not card.resetless:
            raise ResetRequiredError(f"{where}, and changing it takes a reset of this card")
        left = () if step.enabled else self.mig.instances(address)
        if left:
            raise CardInUseError(
                f"{where}, and it still has {', '.join(map(str, left))}",
                hint="remove these instances with `nvidia-smi mig`, or leave this GPU to their owner",
            )
        return True

    def _instance(self, step: MakeInstance | UseInstance) -> Step:
        if isinstance(step, MakeInstance) and step in self._begun:
            return step
        instances = self.mig.instances(step.card)
        found = standing(instances, step.part)
        if found is not None and found.uuid is not None:
            part = msgspec.structs.replace(step.part, made=False, uuid=found.uuid)
            return UseInstance(step.device, step.address, part)
        left = [
            one
            for one in self._begun
            if isinstance(one, MakeInstance) and one.address == step.address
        ]
        foreign = tuple(
            one
            for one in occupied_by(instances, step.part.placement)
            if not any(standing((one,), mine.part) for mine in left)
        )
        if foreign:
            raise taken(step.address, step.part, foreign)
        if isinstance(step, UseInstance) or self._before(step.device) is False:
            raise UnknownDeviceError(
                f"claim {self.wanted.claim}: there is no MIG instance {step.part} on GPU "
                f"{step.address}, and this claim may only use one that is there",
                hint=_GONE,
            )
        self._demand_permission(f"GPU {step.address}: there is no MIG instance {step.part}")
        return step

    def _before(self, device: str) -> bool | None:
        """Whether the instance was made for this claim before; None where it never had it."""
        for held in self.own.devices if self.own else ():
            if held.device == device and held.mig is not None:
                return held.mig.made
        return None

    def _demand_permission(self, where: str) -> None:
        """What was made for a claim may be made for it again, whatever the setting is by now."""
        made = any(self._before(held.device) for held in self.wanted.devices)
        if not self.may_divide and not made:
            raise FeatureMissingError(
                f"{where}, and this node does not list the form mig",
                hint="add mig to the forms of this node",
                retryable=True,
            )
