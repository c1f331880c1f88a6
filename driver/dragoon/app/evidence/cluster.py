"""What an API server shows: objects, versions, rights, and what it does to new objects."""

import asyncio
import math
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from dragoon.api import names
from dragoon.app.evidence import rights
from dragoon.diagnose.checking.evidence import Admission, Evidence, Unread
from dragoon.diagnose.gathering import gather_in_time
from dragoon.diagnose.snapshot import ClusterSnapshot, NotReadError
from dragoon.errors import ApiError, ApiNotFoundError, DragoonError
from dragoon.gang import admission
from dragoon.kube.port import CLAIMS, CLASSES, GANGS, SLICES, TAINT_RULES, Api, Resource
from dragoon.kube.rights import missing_right
from dragoon.publish.probing import Feature, Support

T = TypeVar("T")

_ASKED: Final = (CLASSES, SLICES, CLAIMS, TAINT_RULES, GANGS)
_NAMESPACE: Final = "default"
"""Where what is never stored would be: every cluster has it."""


async def gather(
    evidence: Evidence, api: Api, *, source: str, patience: float = math.inf
) -> Evidence:
    """The evidence with the parts of a cluster. source: what to call it.

    patience: seconds for all answers together; what is not there by then is Unread, and a list
    that a snapshot can do without is in its `missing`.
    """
    end = asyncio.get_running_loop().time() + patience

    async def in_time(asked: Awaitable[T]) -> T | Unread:
        try:
            async with asyncio.timeout_at(end):
                return await _read(asked)
        except TimeoutError:
            return Unread(f"no answer from {source} within {patience:g} s")

    version, cluster, served, kept, admitted, allowed = await asyncio.gather(
        in_time(api.version()),
        _read(_objects(api, source, patience)),
        asyncio.gather(*(in_time(_why_not(api, one)) for one in _ASKED)),
        in_time(_kept(api, evidence.driver_name)),
        in_time(_admission(api)),
        in_time(rights.missing(api, evidence.driver_name)),
    )
    return replace(
        evidence,
        version=version,
        cluster=cluster,
        served=dict(zip(_ASKED, served, strict=True)),
        kept=kept,
        admission=admitted,
        rights=allowed,
        denied=_denied(version, cluster, *served, kept, admitted, allowed),
    )


def without(evidence: Evidence, why: str) -> Evidence:
    """The evidence where no API server can be asked."""
    part = Unread(why)
    return replace(
        evidence,
        version=part,
        cluster=part,
        served=part,
        kept=part,
        rights=part,
        admission=part,
        denied=part,
    )


def of_saved(evidence: Evidence, saved: ClusterSnapshot) -> Evidence:
    """The evidence with what a saved cluster still tells."""
    asked = Unread("a saved cluster cannot be asked")
    return replace(
        evidence,
        version=saved.version or Unread("the saved cluster does not say its version"),
        cluster=saved,
        served=asked,
        kept=asked,
        rights=asked,
        admission=asked,
        denied=asked,
    )


def _denied(*parts: object) -> tuple[str, ...] | Unread:
    """The rights that whoever asks lacks, each once, in the order in which they were missed.

    Unread where no part was told, and not for want of rights.
    """
    notes: list[str] = []
    for part in parts:
        if isinstance(part, Unread):
            notes.append(part.why)
        elif isinstance(part, ClusterSnapshot):
            notes += part.missing
    lacking = tuple(dict.fromkeys(filter(None, map(missing_right, notes))))
    unread = [part for part in parts if isinstance(part, Unread)]
    return lacking if lacking or len(unread) < len(parts) else unread[0]


async def _objects(api: Api, source: str, patience: float) -> ClusterSnapshot:
    return (await gather_in_time(api, source=source, patience=patience)).enough()


async def _why_not(api: Api, resource: Resource) -> str:
    """Why a resource is not served, empty if it is. Raises ApiError where that cannot be told."""
    pages = api.pages(resource, size=1)
    try:
        await anext(pages, None)
    except ApiNotFoundError as error:
        return error.message
    finally:
        await pages.aclose()
    return ""


async def _kept(api: Api, driver: str) -> Mapping[str, bool]:
    support = Support(api, believed=0.0)
    devices: dict[Feature, Mapping[str, Any]] = {
        Feature.TAINTS: _TAINTED,
        Feature.FORMS: _SHARED,
    }
    return {
        feature.value: await support.kept(feature, [_slice(driver, device)])
        for feature, device in devices.items()
    }


async def _admission(api: Api) -> Admission:
    proof = await admission.prove(api, _NAMESPACE, names.CLASS_GPU)
    return Admission(proof.gate, proof.finalizer)


async def _read(asked: Awaitable[T]) -> T | Unread:
    try:
        return await asked
    except NotReadError as error:
        return Unread(error.why)
    except DragoonError as error:
        kind = "the API server refuses it" if isinstance(error, ApiError) and error.status else ""
        return Unread(": ".join(filter(None, (kind, error.message))))


_TAINTED: Final = {"taints": [{"key": names.TAINT_LOST, "effect": "NoSchedule"}]}
_SHARED: Final = {
    "allowMultipleAllocations": True,
    "capacity": {
        "memory": {
            "value": "1Gi",
            "requestPolicy": {
                "default": "1Gi",
                "validRange": {"min": "1Mi", "step": "1Mi"},
            },
        }
    },
}


def _slice(driver: str, device: Mapping[str, Any]) -> dict[str, Any]:
    """A slice of a node that does not exist; it is never stored."""
    return {
        "apiVersion": SLICES.api_version,
        "kind": SLICES.kind,
        "metadata": {"generateName": "dragoon-check-"},
        "spec": {
            "driver": driver,
            "nodeName": "dragoon-check",
            "pool": {"name": "dragoon-check", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu", **device}],
        },
    }
