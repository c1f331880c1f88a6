"""Taking Dragoon out of a cluster: who still holds devices, and what must not stay behind.

Kubernetes asks the plugin to take devices back when their pod ends: without a plugin the pod never
ends. So nothing is taken out while claims hold devices. What the controller and the plugins wrote
for themselves (gates, rules, plans, slices) is removed when they are gone.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from dragoon.api import names
from dragoon.app import gang_view
from dragoon.app.gang_view import Released
from dragoon.errors import ApiConflictError, ApiNotFoundError, ApiUnavailableError
from dragoon.kube.port import CLAIMS, SLICES, Api, Object

_CLASSES: Final = frozenset(
    (names.CLASS_GPU, names.CLASS_MIG, names.CLASS_SHARED, names.CLASS_SIMULATED)
)
_LOOKS: Final = 30
_PAUSE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim that holds devices of ours, and the pods that it is reserved for."""

    namespace: str
    name: str
    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retired:
    """What was removed, and how many Gangs stay with their CRD.

    claims: those that held no device, whose finalizer our policy had set.
    """

    released: Released
    slices: int
    claims: int
    gangs: int


async def holders(api: Api, driver: str) -> list[Holder]:
    """The claims with devices of this driver, sorted. Raises DragoonError."""
    listing = await api.list(CLAIMS)
    found = [_holder(raw) for raw in listing.items if _has_devices_of(raw, driver)]
    return sorted(found, key=lambda one: (one.namespace, one.name))


async def retire(
    api: Api, driver: str, *, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> Retired:
    """Gives up every gang and removes what is left, after plugin and controller have gone.

    pause: waits so many seconds. Raises ApiUnavailableError where a plugin still publishes, and
    what the API says.
    """
    released = Released(0, 0, 0)
    # Where rules or Gangs are no kinds of the API server, there never was a gang.
    with suppress(ApiNotFoundError):
        released = await gang_view.give_up(api)
    slices = await _remove_slices(api, driver, pause)
    freed = await _drop_finalizers(api, driver)
    return Retired(released, slices, freed, len(await gang_view.gangs_in(api)))


async def _remove_slices(api: Api, driver: str, pause: Callable[[float], Awaitable[None]]) -> int:
    """Removes slices until two looks find none: a plugin that is just ending repairs its own."""
    removed = quiet = 0
    for _ in range(_LOOKS):
        listing = await api.list(SLICES, fields={"spec.driver": driver})
        for one in listing.items:
            with suppress(ApiNotFoundError):
                await api.delete(SLICES, one["metadata"]["name"])
                removed += 1
        quiet = 0 if listing.items else quiet + 1
        if quiet == 2:
            return removed
        await pause(_PAUSE_SECONDS)
    raise ApiUnavailableError(
        f"ResourceSlices of {driver} come back: a plugin still runs",
        hint="remove the plugin first, then run this again",
    )


async def _drop_finalizers(api: Api, driver: str) -> int:
    """Takes the finalizer from claims without devices: Kubernetes sets it with an allocation."""
    freed = 0
    for _ in range(_LOOKS):
        listing = await api.list(CLAIMS)
        left = [raw for raw in listing.items if _has_idle_finalizer(raw, driver)]
        if not left:
            return freed
        for claim in left:
            # Somebody else wrote it or deleted it: the next look tells.
            with suppress(ApiConflictError, ApiNotFoundError):
                await api.patch(
                    CLAIMS,
                    claim["metadata"]["name"],
                    {"metadata": _without_finalizer(claim["metadata"])},
                    namespace=claim["metadata"]["namespace"],
                )
                freed += 1
    raise ApiUnavailableError("claims keep getting their finalizer: a policy of gangs still works")


def _has_idle_finalizer(claim: Object, driver: str) -> bool:
    if names.FINALIZER not in (claim["metadata"].get("finalizers") or ()):
        return False
    if (claim.get("status") or {}).get("allocation"):
        return False
    requests = (claim["spec"].get("devices") or {}).get("requests") or ()
    asked = {
        one.get("deviceClassName")
        for request in requests
        for one in (request.get("exactly") or {}, *(request.get("firstAvailable") or ()))
    }
    return not asked.isdisjoint(_CLASSES | {driver})


def _without_finalizer(meta: Object) -> Object:
    """The patch; with the version that was seen, so that nobody's allocation loses it."""
    left = [one for one in meta["finalizers"] if one != names.FINALIZER]
    return {"finalizers": left, "resourceVersion": meta["resourceVersion"]}


def _has_devices_of(claim: Object, driver: str) -> bool:
    allocation: Any = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return any(result["driver"] == driver for result in results)


def _holder(claim: Object) -> Holder:
    meta = claim["metadata"]
    reserved = claim["status"].get("reservedFor") or ()
    pods = tuple(sorted(one["name"] for one in reserved if one.get("resource") == "pods"))
    return Holder(meta["namespace"], meta["name"], pods)
