"""Every kind of step.

Claims of whole GPUs need files; the steps of shares stand beside their tiers.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import HardwareError, StateError
from dragoon.prepare import cdi
from dragoon.prepare.effects import Effects
from dragoon.prepare.enforcement.memory_cap import MemoryCap
from dragoon.prepare.enforcement.tier import ShareStep
from dragoon.prepare.enforcement.time_slice import SetTimeSlice
from dragoon.prepare.mig_steps import MakeInstance, MigStep, SetMigMode
from dragoon.prepare.paths import Paths
from dragoon.prepare.step import BaseStep, Place
from dragoon.prepare.storing import replace_file

# Container runtimes read both as root; a marker is read inside containers by whatever user.
_MODE = 0o644
_FOLDER_MODE = 0o755


class _File(BaseStep, frozen=True):
    """A file of the claim's own."""

    def path(self, paths: Paths, uid: str) -> Path:
        raise NotImplementedError

    def data(self) -> bytes:
        raise NotImplementedError

    def about(self, place: Place) -> str:
        return str(self._at(place))

    def holds(self, place: Place) -> bool:
        return place.effects.read(self._at(place)) == self.data()

    def apply(self, place: Place) -> None:
        """Not durable: the journal is, and knows the step.

        The folder may have gone with all that was in it: the runtime's one often lives in memory.
        """
        path, data = self._at(place), self.data()
        try:
            replace_file(place.effects, path, data, _MODE)
        except StateError:
            if place.effects.exists(path.parent):
                raise
            place.effects.make_folder(path.parent, _FOLDER_MODE)
            replace_file(place.effects, path, data, _MODE)

    def undo(self, place: Place) -> None:
        place.effects.remove(self._at(place))

    def _at(self, place: Place) -> Path:
        return self.path(place.paths, place.uid)


class Marker(_File, frozen=True, tag="marker"):
    """The file that stands for a simulated GPU inside the container."""

    device: str
    content: str

    def path(self, paths: Paths, uid: str) -> Path:
        return paths.marker(uid, self.device)

    def data(self) -> bytes:
        return self.content.encode()


class CdiFile(_File, frozen=True, tag="cdi"):
    """The CDI spec of the claim."""

    spec: cdi.Spec

    def check(self, place: Place) -> None:
        """The device files of the GPUs: without one the runtime fails to start the container.

        One whose numbers are given is made by the runtime.
        """
        for device in self.spec.devices:
            for node in device.container_edits.device_nodes:
                path = Path(node.host_path or node.path)
                if node.major is None and not place.effects.exists(path):
                    raise HardwareError(
                        f"device file {path} does not exist",
                        hint="make it with nvidia-modprobe, or start nvidia-persistenced",
                        retryable=True,
                    )

    def path(self, paths: Paths, uid: str) -> Path:
        return paths.spec(uid)

    def data(self) -> bytes:
        return cdi.encode(self.spec)


CardChange = SetMigMode | MakeInstance | MemoryCap | SetTimeSlice
"""What stays on a card until somebody takes it away."""


class CardRecord(_File, frozen=True, tag="cardRecord"):
    """What was changed on cards for a claim, told a second time outside the journal.

    What is set on a card does not say for whom, and an instance not who made it. If the journal
    entry is damaged or lost, this tells what has to go with the claim, and what is an
    administrator's.
    """

    changes: tuple[CardChange, ...]

    def path(self, paths: Paths, uid: str) -> Path:
        return paths.card_record(uid)

    def data(self) -> bytes:
        return msgspec.json.encode(self) + b"\n"


def with_record(steps: Sequence["Step"]) -> tuple["Step", ...]:
    """The steps and a record of those that change a card: it comes first, to be undone last."""
    others = without_record(steps)
    changes = tuple(step for step in others if isinstance(step, CardChange) and _lasts(step))
    return (CardRecord(changes), *others) if changes else others


def without_record(steps: Sequence["Step"]) -> tuple["Step", ...]:
    """The steps as older versions have them."""
    return tuple(step for step in steps if not isinstance(step, CardRecord))


def recorded(effects: Effects, paths: Paths, uid: str) -> tuple[CardChange, ...]:
    """The changes that the record of a claim tells of; none without a record that can be read."""
    data = effects.read(paths.card_record(uid))
    try:
        return msgspec.json.decode(data, type=CardRecord).changes if data else ()
    except UNDECODABLE:
        return ()


def _lasts(step: CardChange) -> bool:
    """A mode that is switched off for a claim stays off."""
    return not isinstance(step, SetMigMode) or step.enabled


Step = Marker | CdiFile | ShareStep | CardRecord | MigStep
