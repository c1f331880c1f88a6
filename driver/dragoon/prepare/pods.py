"""Reading the one pod that may use a claim, and all claims that meet in it.

A process has one region and a pod one cap, so what a container may use is the sum of its claims;
and the kubelet announces no second pod on a prepared claim. So tiers that must
know the container serve only claims that were made for one pod.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dragoon.api import claims
from dragoon.errors import (
    ApiNotFoundError,
    ApiUnavailableError,
    ClaimGoneError,
    ClaimNotAllocatedError,
)
from dragoon.kube.port import CLAIMS, PODS, Api
from dragoon.prepare.enforcement.errors import UnenforceableError
from dragoon.prepare.given import Given, given
from dragoon.prepare.settings import PrepareSettings


@dataclass(frozen=True, slots=True)
class PodLook:
    """A raw pod, and what its claims got from us, by the name of each claim object."""

    pod: Mapping[str, Any]
    claims: Mapping[str, Given]


async def look(api: Api, own: Given, settings: PrepareSettings) -> PodLook:
    """Reads the pod of a claim and its other claims.

    Raises UnenforceableError for a claim that is not one pod's own, ClaimGoneError when that pod
    has gone, and what the API server raises.
    """
    name, uid = _owner(own)
    namespace = own.ref.namespace
    try:
        async with asyncio.timeout(settings.api_patience_s):
            pod = await api.get(PODS, name, namespace=namespace)
            if pod["metadata"]["uid"] != uid:
                raise ClaimGoneError(
                    f"claim {own.ref}: its pod {name} ({uid}) does not exist any more"
                )
            found = {own.ref.name: own}
            for claim in sorted(every_claim(pod) - {own.ref.name}):
                raw = await api.get(CLAIMS, claim, namespace=namespace)
                found[claim] = given(raw, claims.claim_ref(raw), settings)
    except ApiNotFoundError as error:
        raise ClaimGoneError(
            f"claim {own.ref}: its pod {name}, or another claim of that pod, does not exist any "
            f"more: {error.message}"
        ) from error
    except TimeoutError as error:
        raise ApiUnavailableError(
            f"pod {namespace}/{name}: the API server does not answer"
        ) from error
    return PodLook(pod, found)


def claim_names(pod: Mapping[str, Any]) -> dict[str, str]:
    """The claim object of each entry of `spec.resourceClaims`, by the entry's name (case C49).

    One that was made from a template is named in the status alone, and is left out where no claim
    was needed. Raises ClaimNotAllocatedError while it is not named yet.
    """
    status = pod.get("status") or {}
    made = {
        one["name"]: one.get("resourceClaimName")
        for one in status.get("resourceClaimStatuses") or ()
    }
    found: dict[str, str] = {}
    for entry in pod["spec"].get("resourceClaims") or ():
        name = entry["name"]
        if entry.get("resourceClaimName"):
            found[name] = entry["resourceClaimName"]
        elif name not in made:
            raise ClaimNotAllocatedError(
                f"pod {pod['metadata']['name']}: its claim {name} has not been made yet"
            )
        elif made[name]:
            found[name] = made[name]
    return found


def named_claims(
    pod: Mapping[str, Any], container: Mapping[str, Any]
) -> Iterator[tuple[str, str | None]]:
    """The claim objects that a container names, each with the one request of it, None for all.

    Extended resources of the container name requests of a claim, too (KEP-5004). Raises
    ClaimNotAllocatedError as `claim_names`.
    """
    names = claim_names(pod)
    for entry in (container.get("resources") or {}).get("claims") or ():
        if entry["name"] in names:
            yield names[entry["name"]], entry.get("request")
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    for mapping in extended.get("requestMappings") or ():
        if mapping["containerName"] == container["name"]:
            yield extended.get("resourceClaimName", ""), mapping["requestName"]


def every_claim(pod: Mapping[str, Any]) -> set[str]:
    """The claim objects of a pod, also the one for extended resources (KEP-5004)."""
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    made = {extended["resourceClaimName"]} if extended.get("resourceClaimName") else set()
    return {*claim_names(pod).values(), *made}


def _owner(own: Given) -> tuple[str, str]:
    others = sorted(name for name, uid in own.users if (name, uid) != own.owner)
    if own.owner is not None and not others:
        return own.owner
    why = f"pods {', '.join(others)} use it too" if own.owner else "it was made by hand"
    raise UnenforceableError(
        f"claim {own.ref}: {why}: its shares cannot be limited, for nobody says which pods use them",
        hint="use a ResourceClaimTemplate, which makes a claim for each pod",
    )
