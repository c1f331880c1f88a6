"""MIG devices: which part of which card a device name means. Pure.

The journal says of each what it is: a profile at a placement, whether the instance was made for
the claim, and its UUID. GPU instance ids and minor numbers are never kept, for they are used again.
"""

import msgspec

from dragoon.api.claims import AllocatedDevice, ClaimRef
from dragoon.errors import UnknownDeviceError
from dragoon.gpu import naming
from dragoon.gpu.mig import MigCard
from dragoon.gpu.model import Gpu, Placement


class MigPart(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The memory slices of a card that one MIG instance takes, from `start` on.

    profile is the card's name of it. made: the instance is made for the claim, and goes with it;
    one that somebody else made is handed out as it is. uuid is of the MIG device, empty before it
    is there.
    """

    profile: str
    start: int
    size: int
    made: bool = True
    uuid: str = ""

    @property
    def placement(self) -> Placement:
        return Placement(self.start, self.size)

    def __str__(self) -> str:
        """For messages: `3g.20gb at 4:4`."""
        return f"{self.profile} at {self.placement}"


def part_of(ref: ClaimRef, result: AllocatedDevice, gpu: Gpu, card: MigCard | None) -> MigPart:
    """The part that a device name means. card: what the card says of itself, None without MIG.

    Raises UnknownDeviceError, listing what this card offers.
    """
    profiles = card.profiles if card else ()
    found = naming.find_mig(gpu.address, profiles, result.device)
    if found is None:
        offered = ", ".join(
            f"{one.name} at {'/'.join(map(str, one.starts))}" for one in profiles if one.starts
        )
        raise UnknownDeviceError(
            f"claim {ref}: request {result.request} got {result.device!r}, which GPU {gpu.address} "
            f"cannot be divided into; it has {offered or 'no MIG'}",
            hint="delete the pod and its claim: a new claim is allocated from what is here now",
        )
    profile, placement = found
    return MigPart(profile.name, placement.start, placement.size)
