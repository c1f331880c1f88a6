"""What the kubelet's gRPC services ask of the engine."""

from dataclasses import dataclass
from typing import Protocol

from dragoon.api.claims import ClaimRef


@dataclass(frozen=True, slots=True)
class PreparedDevice:
    """One device of the answer to NodePrepareResources.

    requests are base names (`g`, not `g/ok`); cdi_ids are `<vendor>/<class>=<name>`.
    """

    requests: tuple[str, ...]
    pool: str
    device: str
    cdi_ids: tuple[str, ...]
    share_id: str | None = None


class Preparer(Protocol):
    """Prepares and unprepares claims; both are idempotent and may be called concurrently."""

    async def prepare(self, claim: ClaimRef) -> tuple[PreparedDevice, ...]:
        """Makes the claim's devices usable on this node.

        Answers within the kubelet's 45 s. Results of other drivers are ignored; none of ours is
        an empty answer. Raises a DragoonError for this claim alone.
        """
        ...

    async def unprepare(self, claim: ClaimRef) -> None:
        """Takes everything back; a claim never prepared here is a success. Raises DragoonError."""
        ...
