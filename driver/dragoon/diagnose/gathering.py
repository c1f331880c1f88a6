"""A snapshot of a live cluster: lists only, nothing is written."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from dragoon.diagnose.manifests import Raw
from dragoon.diagnose.snapshot import PARTS, ClusterSnapshot
from dragoon.errors import ApiError, ApiForbiddenError, ApiNotFoundError, ApiUnavailableError
from dragoon.kube.port import Api, Resource

T = TypeVar("T")

_NEEDED: Final = frozenset(("classes", "slices", "claims"))
"""Without these there is no answer; without the others there is one with a note."""

_OPTIONAL: Final = frozenset(("gangs",))
"""Not served where no controller is installed: then there are none."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a server told. refusals: why it did not tell the others, by field of the snapshot.

    `found.missing` says the same in words.
    """

    found: ClusterSnapshot
    refusals: Mapping[str, ApiError]

    @property
    def is_enough(self) -> bool:
        """Whether everything is there without which there is no answer."""
        return _NEEDED.isdisjoint(self.refusals)

    def enough(self) -> ClusterSnapshot:
        """What was found. Raises ApiError where that is not enough for an answer."""
        for part, refusal in self.refusals.items():
            if part in _NEEDED:
                raise refusal
        return self.found


async def gather(api: Api, *, source: str = "the cluster") -> ClusterSnapshot:
    """Lists everything that the answers need.

    What may not be read or is not served is noted in `missing`. Raises ApiError where the server
    cannot be asked, or does not let DeviceClasses, ResourceSlices and ResourceClaims be read.
    """
    return (await _ask(api, source, _refusal)).enough()


async def gather_in_time(api: Api, *, source: str, patience: float) -> Told:
    """The same, each list for at most so many seconds: one that does not come costs no other.

    Raises ApiUnavailableError where no list came.
    """

    async def in_time(asked: Awaitable[T]) -> T | ApiError:
        try:
            async with asyncio.timeout(patience):
                return await asked
        except TimeoutError:
            return ApiUnavailableError(f"no answer from {source} within {patience:g} s")
        except ApiError as error:
            return error

    told = await _ask(api, source, in_time)
    unavailable = [one for one in told.refusals.values() if isinstance(one, ApiUnavailableError)]
    if len(unavailable) == len(PARTS):
        raise unavailable[0]
    return told


class _Guard(Protocol):
    """The answer to a question, or why there is none. May raise instead."""

    async def __call__(self, asked: Awaitable[T]) -> T | ApiError: ...


async def _refusal(asked: Awaitable[T]) -> T | ApiError:
    """Raises what is about the server and not about what was asked for."""
    try:
        return await asked
    except (ApiForbiddenError, ApiNotFoundError) as error:
        return error


async def _ask(api: Api, source: str, guard: _Guard) -> Told:
    version, lists = await asyncio.gather(
        guard(api.version()),
        asyncio.gather(*(guard(_list(api, resource)) for resource in PARTS.values())),
    )
    parts: dict[str, Any] = {}
    refusals: dict[str, ApiError] = {}
    for part, answer in zip(PARTS, lists, strict=True):
        if not isinstance(answer, ApiError):
            parts[part] = answer
        elif part not in _OPTIONAL or not isinstance(answer, ApiNotFoundError):
            refusals[part] = answer
    missing = (f"{PARTS[part].plural}: {refusal.message}" for part, refusal in refusals.items())
    known = "" if isinstance(version, ApiError) else version
    found = ClusterSnapshot(**parts, source=source, version=known, missing=tuple(missing))
    return Told(found, refusals)


async def _list(api: Api, resource: Resource) -> tuple[Raw, ...]:
    # A list has no kind in its items; whoever looks at a snapshot wants one.
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return tuple({**kind, **item} for item in (await api.list(resource)).items)
