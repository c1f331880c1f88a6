"""What every step of a prepared claim is: data that can be applied, verified and undone."""

from dataclasses import dataclass

import msgspec

from dragoon.prepare.effects import Effects
from dragoon.prepare.paths import Paths


@dataclass(frozen=True, slots=True)
class Place:
    """Where a step is done: on this node, for the claim of that UID."""

    effects: Effects
    paths: Paths
    uid: str


class BaseStep(msgspec.Struct, frozen=True, tag_field="step"):
    """One effect. It stands in the journal before it is applied.

    What stands there is enough to apply it again, to see whether it holds, and to undo it; all
    three are idempotent and block. Each kind has a tag of its own and is named in `steps.Step`.
    """

    def check(self, place: Place) -> None:
        """Refuses what cannot work, before anything is journaled. Raises a DragoonError."""

    def shared(self) -> str:
        """Names what several claims make together; empty for what is the claim's own.

        Such a thing is undone only when no other claim needs it.
        """
        return ""

    def agrees(self, other: "BaseStep") -> bool:
        """Whether two steps of the same shared thing can stand together."""
        return self == other

    def about(self, place: Place) -> str:
        """What it is, for people."""
        raise NotImplementedError

    def holds(self, place: Place) -> bool:
        """Whether the effect is there exactly as it should be."""
        raise NotImplementedError

    def believed(self) -> bool:
        """Whether `holds` cannot really look, so that a prepare has to apply it again."""
        return False

    def apply(self, place: Place) -> None:
        """Makes the effect be there."""
        raise NotImplementedError

    def undo(self, place: Place) -> None:
        """Takes the effect away; one that is not there is a success."""
        raise NotImplementedError
