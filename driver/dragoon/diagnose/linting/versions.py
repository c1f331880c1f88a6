"""API groups and versions: of claims, pod groups and queues.

Sources: what kube-apiserver 1.37 serves, and the released versions of those projects.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dragoon.diagnose.linting.finding import Context, Finding, finding
from dragoon.diagnose.manifests import RESOURCE_GROUP, Item
from dragoon.diagnose.near import did_you_mean, near


@dataclass(frozen=True, slots=True)
class _Served:
    """One group that has a kind. off: versions that exist and are not served by default."""

    group: str
    version: str
    whose: str = ""
    off: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" + (f" ({self.whose})" if self.whose else "")


_CLAIMS: Final = (_Served(RESOURCE_GROUP, "v1", off=("v1beta1", "v1beta2")),)
_NATIVE: Final = _Served(
    "scheduling.k8s.io", "v1beta1", "Kubernetes 1.37, off by default", off=("v1beta1",)
)
_KUEUE: Final = (_Served("kueue.x-k8s.io", "v1beta2", off=("v1beta1",)),)
_VOLCANO: Final = _Served("scheduling.volcano.sh", "v1beta1", "Volcano")

_KINDS: Final[Mapping[str, tuple[_Served, ...]]] = {
    "ResourceClaim": _CLAIMS,
    "ResourceClaimTemplate": _CLAIMS,
    "DeviceClass": _CLAIMS,
    "ResourceSlice": _CLAIMS,
    "DeviceTaintRule": (_Served(RESOURCE_GROUP, "v1", off=("v1alpha3", "v1beta2")),),
    "PodGroup": (
        _NATIVE,
        _VOLCANO,
        _Served("scheduling.run.ai", "v2alpha2", "KAI"),
        _Served("scheduling.x-k8s.io", "v1alpha1", "coscheduling"),
        _Served("scheduling.sigs.k8s.io", "v1alpha1", "Koordinator"),
    ),
    "Workload": (_NATIVE, *_KUEUE),
    "Queue": (_VOLCANO, _Served("scheduling.run.ai", "v2", "KAI")),
    "ClusterQueue": _KUEUE,
    "LocalQueue": _KUEUE,
    "ResourceFlavor": _KUEUE,
    "AdmissionCheck": _KUEUE,
    "WorkloadPriorityClass": _KUEUE,
}
_OURS: Final = frozenset(one.group for served in _KINDS.values() for one in served)
_OTHER_KINDS: Final[Mapping[str, frozenset[str]]] = {
    RESOURCE_GROUP: frozenset(("ResourcePoolStatusRequest",)),
    "scheduling.k8s.io": frozenset(("PriorityClass", "CompositePodGroup")),
    "kueue.x-k8s.io": frozenset(
        ("Topology", "Cohort", "MultiKueueConfig", "MultiKueueCluster", "ProvisioningRequestConfig")
    ),
    "scheduling.run.ai": frozenset(("BindRequest", "Topology", "SchedulingShard")),
    "scheduling.volcano.sh": frozenset(("HyperNode",)),
}
"""Kinds of these groups that are right and that no rule looks at."""
_RENAMED: Final = {"ResourceClass": "DeviceClass, since v1alpha3"}


def check(item: Item, context: Context) -> Iterator[Finding]:
    """Whether the API has this kind in this group and version."""
    del context
    group, _, version = item.api_version.rpartition("/")
    served = _KINDS.get(item.kind)
    if served is None:
        yield from _unknown_kind(item, group)
        return
    there = next((one for one in served if one.group == group), None)
    names = ", ".join(map(str, served))
    if there is None:
        if _is_a_slip(item.kind, group):
            yield finding(
                "DRG101", item, "apiVersion", item.api_version, f"{item.kind} is in {names}"
            )
    elif version in there.off:
        yield finding("DRG103", item, "apiVersion", item.api_version, _instead(item, there))
    elif version != there.version:
        yield finding("DRG102", item, "apiVersion", item.api_version, _instead(item, there))


def _unknown_kind(item: Item, group: str) -> Iterator[Finding]:
    if group not in _OURS or item.kind in _OTHER_KINDS.get(group, frozenset()):
        return
    known = [kind for kind, served in _KINDS.items() if any(one.group == group for one in served)]
    known += sorted(_OTHER_KINDS.get(group, ()))
    instead = _RENAMED.get(item.kind) or did_you_mean(item.kind, known)
    yield finding("DRG104", item, "kind", item.kind, instead)


def _is_a_slip(kind: str, group: str) -> bool:
    """Whether another group can only be a mistake: claims are in one group, queues in many."""
    if _KINDS[kind][0].group == RESOURCE_GROUP:
        return True
    return not group or bool(near(group, _OURS))


def _instead(item: Item, there: _Served) -> str:
    if there.group != RESOURCE_GROUP or item.kind == "DeviceTaintRule":
        return f"apiVersion: {there}"
    if item.api_version.endswith("v1beta1") and item.kind.startswith("ResourceClaim"):
        return f"apiVersion: {there}, with the fields of each request under exactly"
    return f"apiVersion: {there}"
