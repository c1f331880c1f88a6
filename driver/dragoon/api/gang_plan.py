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
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec

from dragoon import quantity
from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import InvalidInputError

_Packed = TypeVar("_Packed")

PLAN_VERSION: Final = 1
UNREADABLE: Final = 0
"""The version of a plan that cannot be read at all."""
_LARGEST: Final = 64 * 2**20
"""Bytes of an unpacked text; more is no plan of ours."""
_YEARS: Final = range(1970, 9000)
_READABLE: Final = 32
"""Members of a plan that stand in it as they are."""
_SHOWN: Final = 63
"""Characters of a name in a message."""
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


class _Toleration(Wire, frozen=True, kw_only=True):
    """Of a result, as far as it is read."""

    key: str | None = None


class _Result(Wire, frozen=True, kw_only=True):
    """Of an allocation, as far as it is read."""

    driver: str
    pool: str
    device: str
    request: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    admin_access: bool | None = None
    tolerations: tuple[_Toleration, ...] | None = None
    consumed_capacity: Mapping[str, str] | None = None


class _Devices(Wire, frozen=True, kw_only=True):
    """Of an allocation, as far as it is read."""

    results: tuple[_Result, ...] | None = None


class _Allocation(Wire, frozen=True, kw_only=True):
    """status.allocation of a claim, as far as it is read of a journal (resource.k8s.io/v1)."""

    devices: _Devices | None = None


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


def check_times(field: str, texts: Iterable[str]) -> None:
    """Whether these are times as `stamp` writes them, or empty.

    Raises InvalidInputError, naming the field they are in, for a time that no sum could be made of.
    """
    for text in texts:
        if text and not _is_time(text):
            raise InvalidInputError(
                f"Gang: {field}: found the time {text[:_SHOWN]!r}, allowed is one of RFC 3339 from the "
                f"years {_YEARS[0]} to {_YEARS[-1]}"
            )


def _is_time(text: str) -> bool:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return False
    return found.tzinfo is not None and found.year in _YEARS


def times_of(plan: Plan) -> Iterator[str]:
    """All times in a plan."""
    yield from (plan.since, plan.fenced, plan.wait_until, plan.repaired)
    yield from (one.vacated for one in plan.held)


def pack(claims: Iterable[PlannedClaim]) -> str:
    """The allocations as a plan keeps them; the same claims give the same text."""
    return _deflated([msgspec.to_builtins(one) for one in claims])


def unpack(packed: str) -> tuple[PlannedClaim, ...]:
    """What `pack` was given.

    Raises InvalidInputError for anything else: who reads it may then rely on what an allocation
    holds.
    """
    claims = _inflated(packed, tuple[PlannedClaim, ...]) if packed else ()
    for claim in claims:
        _check(claim)
    return claims


def _check(claim: PlannedClaim) -> None:
    where = f"Gang: status.plan.packed: allocation of claim {claim.name[:_SHOWN]!r}"
    try:
        found = msgspec.convert(claim.allocation, _Allocation)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"{where}: {error}") from error
    for result in (found.devices and found.devices.results) or ():
        for name, amount in (result.consumed_capacity or {}).items():
            try:
                quantity.nanos(quantity.parse(amount))
            except InvalidInputError as error:
                raise InvalidInputError(f"{where}: {name[:_SHOWN]}: {error.message}") from error


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
    if fold:
        placed = _inflated(text, Placed)
        plan = msgspec.structs.replace(
            plan, pools=placed.pools, members=placed.members, held=placed.held, packed=packed
        )
    check_times("status.plan", times_of(plan))
    return plan


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
