"""What of Kueue a server has: which version we speak with it, or why we cannot. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoon.kube.port import Resource

GROUP: Final = "kueue.x-k8s.io"
CONTROLLER: Final = "dragoon.dev/placeable"
"""spec.controllerName of the AdmissionChecks that are ours."""
KNOWN: Final = ("v1beta2", "v1beta1")
"""Versions with the fields that are used here, the one that is taken first first."""


@dataclass(frozen=True, slots=True)
class Apis:
    """Kueue's kinds, all of one version."""

    version: str

    @property
    def checks(self) -> Resource:
        return Resource(GROUP, self.version, "admissionchecks", "AdmissionCheck", namespaced=False)

    @property
    def workloads(self) -> Resource:
        return Resource(GROUP, self.version, "workloads", "Workload", namespaced=True)

    @property
    def flavors(self) -> Resource:
        return Resource(GROUP, self.version, "resourceflavors", "ResourceFlavor", namespaced=False)

    @property
    def all(self) -> tuple[Resource, ...]:
        return (self.checks, self.workloads, self.flavors)


@dataclass(frozen=True, slots=True)
class Unusable:
    """Kueue is there and cannot be spoken with. reason: `Half` or `Version`."""

    reason: str
    message: str


LATEST: Final = Apis(KNOWN[0])


def choose(
    versions: Sequence[str], plurals: Mapping[str, frozenset[str]]
) -> Apis | Unusable | None:
    """What to speak with a server. None: Kueue is not there.

    versions: those of Kueue's group. plurals: what each of them has.
    """
    if not versions:
        return None
    known = [Apis(version) for version in KNOWN if version in versions]
    if not known:
        return Unusable(
            "Version",
            f"API group {GROUP}: found {', '.join(versions)}, known are {', '.join(KNOWN)}",
        )
    lacking = {apis.version: _lacking(apis, plurals) for apis in known}
    for apis in known:
        if not lacking[apis.version]:
            return apis
    told = "; ".join(f"{version} lacks {', '.join(lacks)}" for version, lacks in lacking.items())
    return Unusable("Half", f"API group {GROUP}: {told}")


def _lacking(apis: Apis, plurals: Mapping[str, frozenset[str]]) -> list[str]:
    there = plurals.get(apis.version, frozenset())
    return [one.plural for one in apis.all if one.plural not in there]
