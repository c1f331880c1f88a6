"""The journal of a gang's plan, `status.plan`: enough to go on, or to undo, after a crash.

The allocations are packed (JSON, deflated, base64), for 512 members with 8 GPUs each are 700 KB as
text, and an object may have 1.5 MiB: `pack` and `unpack`. The members are readable in small plans;
those of large ones are packed too, for an API server takes 0.15 s to check and copy 512 of them at
each write (0.01 s packed): `folded` and `unfolded`. A plan of a version that is not known is never
touched.
"""

import base64
import binascii
import enum
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec

from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import InvalidInputError

_Packed = TypeVar("_Packed")

PLAN_VERSION: Final = 1
UNREADABLE: Final = 0
"""The version of a plan that cannot be read at all."""
_LARGEST: Final = 64 * 2**20
"""Bytes of an unpacked text; more is no plan of ours."""
_READABLE: Final = 32
"""Members of a plan that stand in it as they are."""
_FOLD: Final = "."
"""Between allocations and members: no letter of base64."""


class Step(enum.StrEnum):
    """How far a plan has come. A step is written before its first effect."""

    FENCE = "Fence"
    """Rules are written on every planned pool."""
    WAIT = "Wait"
    """The decisions that kube-scheduler has in flight are waited for."""
    COMMIT = "Commit"
    """Allocations are written, one write a claim."""
    VERIFY = "Verify"
    """All claims are read again and compared."""
    UNGATE = "Ungate"
    """Members are pinned and ungated. From here on no allocation of a living pod is cleared."""
    HOLD = "Hold"
    """All are ungated; the rules stay while the gang lives."""
    RELEASE = "Release"
    """What was written is taken back."""


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One object of the layout of a Gang."""


class PlannedPool(Wire, frozen=True, kw_only=True):
    """A pool with devices of the plan: what a rule fences."""

    driver: str
    pool: str


class PlannedClaim(Wire, frozen=True, kw_only=True):
    """A claim and what it is to get. allocation: as `status.allocation` is written."""

    name: str
    uid: str
    allocation: Mapping[str, Any]


class PlannedMember(Wire, frozen=True, kw_only=True):
    """A pod and its node. slot: which member it is, empty where members are alike.

    claims: names of its claims in the plan; a shared claim stands at several members.
    """

    pod: str
    uid: str
    node: str
    slot: str = ""
    claims: tuple[str, ...] = ()


class HeldClaim(Wire, frozen=True, kw_only=True):
    """A claim that we allocated. made_by_user: it stays when its pods go, so we clear it then."""

    name: str
    uid: str
    made_by_user: bool = False


class HeldMember(Wire, frozen=True, kw_only=True):
    """A member that was ungated: what it has, and, where it is gone, what its successor finds.

    pools: indexes into the pools of the plan. vacated: when its pod was first seen to be gone or
    failed (RFC 3339), empty while it is there.
    """

    pod: str
    uid: str
    node: str
    slot: str = ""
    pools: tuple[int, ...] = ()
    claims: tuple[HeldClaim, ...] = ()
    vacated: str = ""


class Placed(Wire, frozen=True, kw_only=True):
    """What is folded of a large plan: its members and their pools."""

    pools: tuple[PlannedPool, ...] = ()
    members: tuple[PlannedMember, ...] = ()
    held: tuple[HeldMember, ...] = ()


class Plan(Wire, frozen=True, kw_only=True):
    """A plan and how far it has come.

    version: PLAN_VERSION when this controller makes it, and always written. serial: counts the
    plans of this gang, from 1. since: when the step began; fenced: when the rules stood;
    wait_until: when the wait ends at the latest (RFC 3339, empty where not yet).
    members: those that are placed in this round, all or none; there are none in the step Hold.
    held: those of earlier rounds. pools: of both. suspended: the UID of the Job that we suspended
    to release its pods, and have to resume. repaired: when a member was last evicted in order to
    be placed elsewhere (RFC 3339); repairs: how often.
    packed: the allocations, see `unpack`; as it is written, also what `folded` put there.
    """

    version: int
    serial: int
    step: Step
    since: str
    fenced: str = ""
    wait_until: str = ""
    pools: tuple[PlannedPool, ...] = ()
    members: tuple[PlannedMember, ...] = ()
    held: tuple[HeldMember, ...] = ()
    packed: str = ""
    suspended: str = ""
    repaired: str = ""
    repairs: int = 0
    reason: str = ""

    @property
    def is_known(self) -> bool:
        """Whether this controller understands it."""
        return self.version == PLAN_VERSION

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of its members, each once, in order."""
        placed = {member.node for member in self.members}
        return tuple(sorted(placed | {member.node for member in self.held}))


def stamp(now: datetime) -> str:
    """A time as journals and statuses have it (RFC 3339, seconds)."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pack(claims: Iterable[PlannedClaim]) -> str:
    """The allocations as a plan keeps them; the same claims give the same text."""
    return _deflated([msgspec.to_builtins(one) for one in claims])


def unpack(packed: str) -> tuple[PlannedClaim, ...]:
    """What `pack` was given. Raises InvalidInputError for anything else."""
    return _inflated(packed, tuple[PlannedClaim, ...]) if packed else ()


def folded(plan: Plan) -> Plan:
    """A plan as it is written: the members of a large one in `packed`, behind the allocations."""
    if len(plan.members) + len(plan.held) <= _READABLE:
        return plan
    placed = Placed(pools=plan.pools, members=plan.members, held=plan.held)
    packed = f"{plan.packed}{_FOLD}{_deflated(msgspec.to_builtins(placed))}"
    return msgspec.structs.replace(plan, pools=(), members=(), held=(), packed=packed)


def unfolded(plan: Plan) -> Plan:
    """A plan as it is worked with. Raises InvalidInputError for what `folded` did not make."""
    packed, fold, text = plan.packed.partition(_FOLD)
    if not fold:
        return plan
    placed = _inflated(text, Placed)
    return msgspec.structs.replace(
        plan, pools=placed.pools, members=placed.members, held=placed.held, packed=packed
    )


def _deflated(found: Any) -> str:
    raw = msgspec.json.encode(found, order="sorted")
    return base64.b64encode(zlib.compress(raw, 6)).decode("ascii")


def _inflated(text: str, kind: type[_Packed]) -> _Packed:
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(base64.b64decode(text, validate=True), _LARGEST)
        if not inflate.eof:
            raise InvalidInputError(
                f"Gang: status.plan.packed: more than {_LARGEST} bytes, or cut short"
            )
        return msgspec.json.decode(raw, type=kind)
    except (binascii.Error, zlib.error, ValueError, *UNDECODABLE) as error:
        raise InvalidInputError(f"Gang: status.plan.packed: {error}") from error
