"""The entry of a claim whose own was damaged, from its allocation and what is on the node. Pure.

What a container was started with is told by the CDI spec: which devices, by their UUIDs. What was
done to cards is told by the record beside it. All other steps follow from the allocation, and are
verified before they count (`executing.Executor.restore`).
"""

from collections.abc import Mapping, Sequence

import msgspec

from dragoon.errors import CdiError, StateError
from dragoon.prepare import cdi
from dragoon.prepare.journal import Entry, State
from dragoon.prepare.mig_filling import with_parts
from dragoon.prepare.mig_steps import MakeInstance, SetMigMode, UseInstance
from dragoon.prepare.steps import CardChange, Step, with_record


def recalled(wanted: Entry, spec: bytes | None, changes: Sequence[CardChange]) -> Entry | None:
    """The entry as it was before it was damaged; None where nothing tells that it was answered.

    wanted is what the allocation comes to now, spec the bytes of its CDI spec, changes those of its
    record. Raises StateError, retryable, when it was answered with other devices: then containers
    may still have those.
    """
    given = _given(spec)
    if given is None:
        return None
    now = {held.device: held.uuid for held in wanted.devices if held.mig is None}
    if given.keys() != {held.device for held in wanted.devices} or not now.items() <= given.items():
        raise StateError(
            f"claim {wanted.claim}: its journal entry is damaged, and it was prepared with other "
            f"devices than it has now: {', '.join(given)}",
            hint="delete the pod: the claim is released when its containers have ended",
            retryable=True,
        )
    made = [
        one
        for one in changes
        if isinstance(one, SetMigMode | MakeInstance) and one.boot_id == wanted.boot_id
    ]
    steps = [step for one in wanted.steps for step in _step(one, given, made)]
    return with_parts(msgspec.structs.replace(wanted, state=State.PREPARED), with_record(steps))


def _step(step: Step, given: Mapping[str, str], made: Sequence[Step]) -> Sequence[Step]:
    match step:
        case SetMigMode():
            return [step] if step in made else []
        case MakeInstance():
            for one in made:
                if isinstance(one, MakeInstance) and one.device == step.device:
                    return [one]
            # Nobody says that we made it, so it is not ours to remove.
            part = msgspec.structs.replace(step.part, made=False, uuid=given[step.device])
            return [UseInstance(step.device, step.address, part)]
        case UseInstance():
            part = msgspec.structs.replace(step.part, uuid=given[step.device])
            return [msgspec.structs.replace(step, part=part)]
    return [step]


def _given(spec: bytes | None) -> Mapping[str, str] | None:
    try:
        return dict(cdi.devices_given(cdi.decode(spec))) if spec else None
    except CdiError:
        return None
