"""What a container gets of its MIG instances: known only once they are there. Pure.

A process needs the device file of the card, and those that give access to the GPU instance and to
the compute instance in it (nvidia-capabilities). Their numbers change at every boot and with every
instance; so they stand in the CDI spec alone, and are looked up again whenever that is written.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dragoon.errors import HardwareError
from dragoon.gpu.mig import CapabilityNode, MigInstance
from dragoon.gpu.model import PciAddress
from dragoon.gpu.port import MigCards
from dragoon.prepare import cdi, cdi_check, exposing
from dragoon.prepare.journal import Entry, HeldDevice
from dragoon.prepare.mig import MigPart
from dragoon.prepare.mig_steps import MakeInstance, UseInstance, standing
from dragoon.prepare.settings import PrepareSettings
from dragoon.prepare.steps import CardRecord, CdiFile, Marker, Step, with_record

_Found = Mapping[str, MigInstance]


def filled(entry: Entry, mig: MigCards, settings: PrepareSettings) -> Entry:
    """The entry with the UUIDs and device files of its MIG instances, all of which are there.

    Raises HardwareError for one that is not, or that the driver gives no access to.
    """
    found = {held.device: _find(held, held.mig, mig) for held in entry.devices if held.mig}
    if not found:
        return entry
    simulated = any(isinstance(step, Marker) for step in entry.steps)
    nodes = {
        held.cdi_id.partition("=")[2]: _edits(
            found[held.device], held.device, settings, simulated=simulated
        )
        for held in entry.devices
        if held.device in found
    }
    return with_parts(entry, [_step(step, found, nodes) for step in entry.steps])


def with_parts(entry: Entry, steps: Sequence[Step]) -> Entry:
    """The entry with other steps; its MIG devices, and its record if it has one, say the same."""
    if any(isinstance(step, CardRecord) for step in steps):
        steps = with_record(steps)
    parts = {s.device: s.part for s in steps if isinstance(s, MakeInstance | UseInstance)}
    devices = tuple(
        msgspec.structs.replace(held, mig=parts.get(held.device)) for held in entry.devices
    )
    return msgspec.structs.replace(entry, steps=tuple(steps), devices=devices)


def _find(held: HeldDevice, part: MigPart, mig: MigCards) -> MigInstance:
    found = standing(mig.instances(PciAddress.parse(held.address)), part)
    if found is None or found.uuid is None:
        raise HardwareError(
            f"{held.device}: the MIG instance {part} has gone again", retryable=True
        )
    return found


def _step(step: Step, found: _Found, edits: Mapping[str, cdi.Edits]) -> Step:
    match step:
        case MakeInstance() | UseInstance():
            part = msgspec.structs.replace(step.part, uuid=found[step.device].uuid)
            return msgspec.structs.replace(step, part=part)
        case Marker() if step.device in found:
            return exposing.marker(step.device, found[step.device].uuid or "")
        case CdiFile():
            return CdiFile(_spec(step.spec, edits))
    return step


def _spec(spec: cdi.Spec, edits: Mapping[str, cdi.Edits]) -> cdi.Spec:
    """Mounts stay as they are: those of simulated cards do not depend on the instance."""
    devices = tuple(
        msgspec.structs.replace(
            device,
            container_edits=msgspec.structs.replace(
                edits[device.name], mounts=device.container_edits.mounts
            ),
        )
        if device.name in edits
        else device
        for device in spec.devices
    )
    done = msgspec.structs.replace(spec, devices=devices)
    cdi_check.check(done)
    return done


def _edits(
    instance: MigInstance, device: str, settings: PrepareSettings, *, simulated: bool
) -> cdi.Edits:
    variable = cdi.device_variable(device, instance.uuid or "")
    if simulated:
        return cdi.Edits(env=(variable,))
    card = exposing.gpu_node(device, instance.parent_minor, settings)
    return cdi.Edits(
        env=(variable,), device_nodes=(card, *_capabilities(instance, device, settings))
    )


def _capabilities(
    instance: MigInstance, device: str, settings: PrepareSettings
) -> Iterator[cdi.DeviceNode]:
    for node in (instance.node, *(one.node for one in instance.compute)):
        if node is None:
            raise HardwareError(
                f"{device}: the driver lists no capability of {instance}",
                hint="mount the node's /proc/driver/nvidia/capabilities into the plugin's container",
                retryable=True,
            )
        yield _capability(node, settings)


def _capability(node: CapabilityNode, settings: PrepareSettings) -> cdi.DeviceNode:
    """With its numbers, where they are known, the runtime needs no file on the host."""
    if node.major is None:
        return cdi.DeviceNode(node.path, exposing.host_path(node.path, settings))
    return cdi.DeviceNode(node.path, type="c", major=node.major, minor=node.minor)
