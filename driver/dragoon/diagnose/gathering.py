"""A snapshot of a live cluster: lists only, nothing is written."""

import asyncio
from typing import Final

from dragoon.diagnose.manifests import Raw
from dragoon.diagnose.snapshot import PARTS, ClusterSnapshot
from dragoon.errors import ApiForbiddenError, ApiNotFoundError
from dragoon.kube.port import Api, Resource

_NEEDED: Final = frozenset(("classes", "slices", "claims"))
"""Without these there is no answer; without the others there is one with a note."""

_OPTIONAL: Final = frozenset(("gangs",))
"""Not served where no controller is installed: then there are none."""


async def gather(api: Api, *, source: str = "the cluster") -> ClusterSnapshot:
    """Lists everything that the answers need.

    What may not be read or is not served is noted in `missing`. Raises ApiError where the server
    cannot be asked, or does not let DeviceClasses, ResourceSlices and ResourceClaims be read.
    """
    fields = tuple(PARTS)
    version = await _version(api)
    found = await asyncio.gather(*(_list(api, field, PARTS[field]) for field in fields))
    parts = {field: items for field, (items, _) in zip(fields, found, strict=True)}
    missing = tuple(note for _, note in found if note)
    return ClusterSnapshot(source=source, version=version).replacing(**parts, missing=missing)


async def _version(api: Api) -> str:
    try:
        return await api.version()
    except ApiForbiddenError:
        return ""


async def _list(api: Api, field: str, resource: Resource) -> tuple[tuple[Raw, ...], str]:
    try:
        listing = await api.list(resource)
    except (ApiForbiddenError, ApiNotFoundError) as error:
        if field in _OPTIONAL and isinstance(error, ApiNotFoundError):
            return (), ""
        if field in _NEEDED:
            raise
        return (), f"{resource.plural}: {error.message}"
    # A list has no kind in its items; whoever looks at a snapshot wants one.
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return tuple({**kind, **item} for item in listing.items), ""
