"""What a container gets for CDI ids, worked out as a container runtime does it: pure.

Used by `dragoon demo` and `dragoon cdi inject` to show the inside of a container, and by tests.
Source: the behaviour of the CDI Go library that containerd and CRI-O share (cache and container
edits), as far as Dragoon's specs go.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoon.errors import CdiError
from dragoon.prepare import cdi
from dragoon.prepare.cdi import Device, DeviceNode, Edits, Hook, Mount, Spec
from dragoon.prepare.cdi_check import problems


@dataclass(frozen=True, slots=True)
class Injected:
    """What is added to a container, in order."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()


def inject(documents: Iterable[bytes], ids: Sequence[str]) -> Injected:
    """What a container gets that asks for `ids`, given the files of the CDI folder.

    Raises CdiError as `edits_for`.
    """
    return _merged(edits_for(documents, ids))


def edits_for(documents: Iterable[bytes], ids: Sequence[str]) -> tuple[Edits, ...]:
    """What is done to a container that asks for `ids`, in order.

    A file that is no valid spec is left out, as the runtime does. Raises CdiError with the
    runtime's words for ids that nothing offers, or that two files offer.
    """
    offered: dict[str, list[tuple[Spec, Device]]] = {}
    for spec in filter(None, map(_readable, documents)):
        for device in spec.devices:
            name = cdi.qualified(spec.kind, device.name)
            offered.setdefault(name, []).append((spec, device))
    missing = [one for one in ids if len(offered.get(one, ())) != 1]
    if missing:
        raise CdiError(f"unresolvable CDI devices {', '.join(missing)}")
    return tuple(_edits_in_order([offered[one][0] for one in ids]))


def _readable(document: bytes) -> Spec | None:
    try:
        spec = cdi.decode(document)
    except CdiError:
        return None
    return None if any(problems(spec)) else spec


def _edits_in_order(chosen: Sequence[tuple[Spec, Device]]) -> Iterable[Edits]:
    """The edits of a spec come once, before those of its first device."""
    seen: list[Spec] = []
    for spec, device in chosen:
        if spec not in seen:
            seen.append(spec)
            yield spec.container_edits
        yield device.container_edits


def _merged(edits: Iterable[Edits]) -> Injected:
    """Later edits replace earlier ones of the same variable, device file or mount point."""
    env: dict[str, str] = {}
    nodes: dict[str, DeviceNode] = {}
    mounts: dict[str, Mount] = {}
    hooks: list[Hook] = []
    for one in edits:
        env |= {entry.partition("=")[0]: entry for entry in one.env}
        nodes |= {node.path: node for node in one.device_nodes}
        mounts |= {mount.container_path: mount for mount in one.mounts}
        hooks += one.hooks
    return Injected(
        tuple(env.values()), tuple(nodes.values()), tuple(mounts.values()), tuple(hooks)
    )
