"""What became of a claim on this node, as far as its status tells it."""

from dataclasses import dataclass
from typing import Self

from dragoon.api.claims import ClaimRef
from dragoon.api.device_status import REPORT
from dragoon.errors import ApiError, ClaimGoneError, ClaimNotAllocatedError, DragoonError
from dragoon.gpu.model import PciAddress
from dragoon.prepare.journal import Entry

_NOBODY_TO_TELL = (ApiError, ClaimGoneError, ClaimNotAllocatedError)
_MESSAGE_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class Prepared:
    """Its devices can be used, as the journal says."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Refused:
    """The kubelet was answered with an error.

    on_refusal: see `device_status.DATA_ON_REFUSAL`; empty where the same call may succeed later.
    unenforceable: it is a limit that cannot be kept.
    """

    code: str
    message: str
    on_refusal: str = ""
    unenforceable: bool = False

    @classmethod
    def by(cls, error: DragoonError, *, on_refusal: str = REPORT) -> Self | None:
        """What to tell about an error; None where the claim cannot be read or has no devices."""
        if isinstance(error, _NOBODY_TO_TELL):
            return None
        return cls(
            error.code,
            _shortened(error),
            "" if error.retryable else on_refusal,
            error.code in {"EnforcementUnavailable", "Unenforceable"},
        )


@dataclass(frozen=True, slots=True)
class Released:
    """It was taken back: nothing of it is on this node any more."""


Outcome = Prepared | Refused | Released


@dataclass(frozen=True, slots=True)
class Mark:
    """A condition beside those of prepare, or in place of its condition of the same type.

    card: of devices of that card alone; None: of all.
    """

    type: str
    is_true: bool
    reason: str
    message: str
    card: PciAddress | None = None


@dataclass(frozen=True, slots=True)
class Marked:
    """All marks of one type that a claim has from now on, in place of those that it had."""

    claim: ClaimRef
    type: str
    marks: tuple[Mark, ...]


def _shortened(error: DragoonError) -> str:
    """Message and hint; of a message that is too long the end is cut, never the hint."""
    hint = f" ({error.hint})" if error.hint else ""
    room = max(_MESSAGE_LIMIT - len(hint), 0)
    message = error.message if len(error.message) <= room else f"{error.message[: room - 3]}..."
    return f"{message}{hint}"[:_MESSAGE_LIMIT]
