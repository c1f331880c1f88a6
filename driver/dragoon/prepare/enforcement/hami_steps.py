"""The steps of the tier `hami`: the library that was meant, and the region of each container."""

import hashlib
from pathlib import Path
from typing import Final

from dragoon.errors import StateError
from dragoon.prepare.effects import Effects
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.hooks import LIBRARY
from dragoon.prepare.enforcement.region import Slot
from dragoon.prepare.paths import Paths, temporary
from dragoon.prepare.step import BaseStep, Place
from dragoon.prepare.storing import replace_file

_REGION_NAME: Final = "usage"
# Any user of the container writes the file; nobody but root may replace it.
_FOLDER_MODE, _REGION_MODE, _DATA_MODE = 0o1777, 0o666, 0o644
_PRELOAD_LINE: Final = f"{LIBRARY}\n".encode()


class Library(BaseStep, frozen=True, tag="library"):
    """The library on the node is the one that the administrator meant.

    Nothing is done about it: where it is another one, no container may start with it.
    """

    path: str
    sha256: str

    def check(self, place: Place) -> None:
        """Raises StateError when it is another one by now."""
        if not self.holds(place):
            raise StateError(
                f"{self.path} is gone or was replaced while claims use it: its checksum is not "
                f"{self.sha256}",
                hint="put the library back, or drain the node before changing it and its checksum",
            )

    def about(self, place: Place) -> str:  # noqa: ARG002 - it is where the administrator put it
        return self.path

    def holds(self, place: Place) -> bool:
        """Whether its checksum is still right."""
        data = place.effects.read(Path(self.path))
        return data is not None and checksum(data) == self.sha256

    def apply(self, place: Place) -> None:
        """Nothing can be done about another library. Raises StateError."""
        self.check(place)

    def undo(self, place: Place) -> None:
        """Leaves it: it is the administrator's."""


class Region(BaseStep, frozen=True, tag="region"):
    """The limits of one container, in a folder of its own, and the file that preloads the library.

    Claims whose shares meet in the container plan the same region.
    """

    pod_uid: str
    container: str
    slots: tuple[Slot, ...]
    priority: int

    def check(self, place: Place) -> None:  # noqa: ARG002 - the limits alone decide
        """Raises StateError for limits that the library would not keep."""
        region.check(self.slots)

    def shared(self) -> str:
        return shared_name(f"{self.pod_uid}_{self.container}")

    def about(self, place: Place) -> str:
        return str(self._file(place.paths))

    def holds(self, place: Place) -> bool:
        """Whether a container would find these limits; what it has used stands beside them."""
        file = self._file(place.paths)
        head = place.effects.peek(file, region.HEADER_BYTES)
        return (
            head is not None
            and region.has_limits(head, self.slots)
            and place.effects.mode(file.parent) == _FOLDER_MODE
            and place.effects.read(self._preload(place.paths)) == _PRELOAD_LINE
        )

    def apply(self, place: Place) -> None:
        """A region that is right is left alone, for processes may have it mapped.

        One with other limits was changed from inside: the limits are put back where they stand.
        The draft is written outside: in its own folder a container may have put anything there.
        """
        effects, file = place.effects, self._file(place.paths)
        replace_file(effects, self._preload(place.paths), _PRELOAD_LINE, _DATA_MODE)
        effects.make_folder(file.parent, _FOLDER_MODE)
        effects.set_mode(file.parent, _FOLDER_MODE)
        head = effects.peek(file, region.HEADER_BYTES)
        if head is not None and region.is_region(head):
            if not region.has_limits(head, self.slots):
                effects.patch(file, region.LIMITS_AT, region.limits(self.slots))
            return
        draft = temporary(file.parent)
        effects.write(draft, region.build(self.slots, priority=self.priority), _REGION_MODE)
        effects.rename(draft, file)

    def undo(self, place: Place) -> None:
        """Removes all of it; a process that still has the file mapped is not disturbed."""
        remove_region(place.effects, place.paths, self._file(place.paths).parent.name)

    def _file(self, paths: Paths) -> Path:
        return region_file(paths, self.pod_uid, self.container)

    def _preload(self, paths: Paths) -> Path:
        return paths.preload(self.pod_uid, self.container)


def shared_name(name: str) -> str:
    """What the claims of one container share: its region, by the name `<pod UID>_<container>`."""
    return f"region/{name}"


def remove_region(effects: Effects, paths: Paths, name: str) -> None:
    """Removes what is there of the region `<pod UID>_<container>`, drafts included."""
    for found in effects.names(paths.region_folder):
        path = paths.region_folder / found
        if paths.region_of(path) == name:
            (effects.remove_tree if found == name else effects.remove)(path)


def region_file(paths: Paths, pod_uid: str, container: str) -> Path:
    """Where the limits and the usage of a container stand on the node."""
    return paths.region(pod_uid, container) / _REGION_NAME


def checksum(library: bytes) -> str:
    """The SHA-256 of a library, in hexadecimal."""
    return hashlib.sha256(library).hexdigest()
