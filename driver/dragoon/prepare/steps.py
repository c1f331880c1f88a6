"""The effects of a prepared claim, each idempotent and with an undo.

A step is data: it stands in the journal before it is applied, and what stands there is enough to
apply it again, to see whether it holds, and to undo it. For whole GPUs every step is one file.
"""

from pathlib import Path

import msgspec

from dragoon.prepare import cdi
from dragoon.prepare.effects import Effects
from dragoon.prepare.paths import Paths
from dragoon.prepare.storing import replace_file

# Container runtimes read both as root; a marker is read inside containers by whatever user.
_MODE = 0o644
_FOLDER_MODE = 0o755


class Marker(msgspec.Struct, frozen=True, tag="marker", tag_field="step"):
    """The file that stands for a simulated GPU inside the container."""

    device: str
    content: str

    def needs(self) -> tuple[Path, ...]:
        return ()

    def path(self, paths: Paths, uid: str) -> Path:
        return paths.marker(uid, self.device)

    def data(self) -> bytes:
        return self.content.encode()


class CdiFile(msgspec.Struct, frozen=True, tag="cdi", tag_field="step"):
    """The CDI spec of the claim."""

    spec: cdi.Spec

    def needs(self) -> tuple[Path, ...]:
        """The device files of the GPUs: without one the runtime fails to start the container."""
        return tuple(
            Path(node.host_path or node.path)
            for device in self.spec.devices
            for node in device.container_edits.device_nodes
        )

    def path(self, paths: Paths, uid: str) -> Path:
        return paths.spec(uid)

    def data(self) -> bytes:
        return cdi.encode(self.spec)


Step = Marker | CdiFile


def holds(effects: Effects, paths: Paths, uid: str, step: Step) -> bool:
    """Whether the effect of a step is there exactly as it should be."""
    return effects.read(step.path(paths, uid)) == step.data()


def apply(effects: Effects, paths: Paths, uid: str, step: Step) -> None:
    """Makes the effect of a step be there. Not durable: the journal is, and knows the step.

    The folder may have gone with all that was in it: the runtime's one often lives in memory.
    """
    path = step.path(paths, uid)
    if not effects.exists(path.parent):
        effects.make_folder(path.parent, _FOLDER_MODE)
    replace_file(effects, path, step.data(), _MODE)


def undo(effects: Effects, paths: Paths, uid: str, step: Step) -> None:
    """Takes the effect of a step away; one that is not there is a success."""
    effects.remove(step.path(paths, uid))
