"""Shares of a GPU: what an allocation says that a claim consumes, read exactly.

Capacities are what publish offers on a shared device: `memory` in bytes, and `cores`, the per cent
of compute that the share may use at most; 0 means no ceiling and cannot be asked for, since a
library would read it as none anyway (case C23). Limits are whole MiB, rounded down.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from dragoon import quantity
from dragoon.api.claims import AllocatedDevice, ClaimRef
from dragoon.api.enforcement import Tier
from dragoon.api.forms import SMALLEST_SHARE
from dragoon.errors import ClaimError, InvalidInputError
from dragoon.gpu.model import Gpu

CORES: Final = 100
"""All of a card's compute."""


class Share(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of one card that a claim holds, and how it is kept to it.

    memory: bytes. cores: per cent, 0 without a ceiling. card_memory: what the whole card had for
    use when this was planned, bytes. container: the only one that sees the share, if one does.
    """

    memory: int
    cores: int
    card_memory: int
    tier: Tier
    container: str = ""


class Amount(msgspec.Struct, frozen=True):
    """What a result consumes. memory: bytes; cores: per cent, 0 without a ceiling."""

    memory: int
    cores: int


def amount(ref: ClaimRef, result: AllocatedDevice, gpu: Gpu, driver: str) -> Amount:
    """What a share takes of its card; no memory of a card that does not say how much it has.

    Raises ClaimError for what is missing, no whole number, too small or more than the card has.
    """
    where = f"claim {ref}: request {result.request}: {result.device}: consumedCapacity"
    memory = _whole(result, "memory", driver, where)
    cores = _whole(result, "cores", driver, where) or 0
    if not 0 <= cores <= CORES:
        raise ClaimError(f"{where}.cores: found {cores}, allowed are 1 to {CORES}, or none")
    if gpu.memory_bytes is None and memory is None:
        return Amount(0, cores)
    most = gpu.memory_bytes or 0
    if memory is None:
        raise ClaimError(
            f"{where}.memory: found nothing: a share without a size cannot be limited",
            hint="allocate the claim with kube-scheduler 1.36 or newer, which fills it in",
        )
    if not SMALLEST_SHARE <= memory <= most:
        allowed = (
            f"{SMALLEST_SHARE} to {most}" if most else "none: the card does not say how much it has"
        )
        raise ClaimError(
            f"{where}.memory: found {memory} bytes, allowed are {allowed}",
            hint="ask for capacity memory of 512Mi or more, and no more than the card has",
        )
    return Amount(memory, cores)


def check_asked(claim: Mapping[str, Any], ref: ClaimRef) -> None:
    """Refuses `cores: 0`, which the allocation shows like no wish. Raises InvalidInputError."""
    for path, request in _requests(claim):
        asked = ((request.get("capacity") or {}).get("requests") or {}).get("cores")
        if asked is not None and quantity.parse(str(asked)) == quantity.ZERO:
            raise InvalidInputError(
                f"claim {ref}: {path}.capacity.requests.cores: found {asked!r}, allowed are 1 to "
                f"{CORES}: 0 would be no ceiling at all",
                hint="leave cores out for no ceiling",
            )


def _requests(claim: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    requests = ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ()
    for number, request in enumerate(requests):
        path = f"spec.devices.requests[{number}]"
        if request.get("exactly"):
            yield f"{path}.exactly", request["exactly"]
        for position, alternative in enumerate(request.get("firstAvailable") or ()):
            yield f"{path}.firstAvailable[{position}]", alternative


def _whole(result: AllocatedDevice, name: str, driver: str, where: str) -> int | None:
    """The value of a capacity; its name may be written with the driver's domain."""
    consumed = dict(result.consumed)
    text = consumed.get(name, consumed.get(f"{driver}/{name}"))
    if text is None:
        return None
    try:
        value = quantity.parse(text).as_int64()
    except InvalidInputError as error:
        raise ClaimError(f"{where}.{name}: {error}") from error
    if value is None:
        raise ClaimError(f"{where}.{name}: found {text!r}, allowed is a whole number")
    return value
