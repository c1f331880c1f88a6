"""What Dragoon asks of a Kubernetes API server, as a protocol on raw objects (dicts).

Implemented by `kube.client.KubeClient` and `kube.memory.MemoryApi`; the same contract tests run
against both. Errors are those of dragoon.errors: ApiNotFoundError, ApiConflictError, ApiGoneError,
ApiInvalidError, ApiForbiddenError, ApiUnavailableError.
"""

import enum
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Object = dict[str, Any]
"""A Kubernetes object as JSON."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A served kind of objects: `/api/v1/nodes`, `/apis/<group>/<version>/<plural>`."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod", namespaced=True)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event", namespaced=True)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", namespaced=True)
TEMPLATES = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", namespaced=True
)
CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
TAINT_RULES = Resource(
    "resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule", namespaced=False
)
GANGS = Resource("dragoon.dev", "v1alpha1", "gangs", "Gang", namespaced=True)
JOBS = Resource("batch", "v1", "jobs", "Job", namespaced=True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", namespaced=True)
COSCHEDULING_GROUPS = Resource(
    "scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", namespaced=True
)
VOLCANO_GROUPS = Resource(
    "scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", namespaced=True
)
KOORDINATOR_GROUPS = Resource(
    "scheduling.sigs.k8s.io", "v1alpha1", "podgroups", "PodGroup", namespaced=True
)
KAI_GROUPS = Resource("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup", namespaced=True)
POD_GANGS = Resource("scheduler.grove.io", "v1alpha1", "podgangs", "PodGang", namespaced=True)
JOB_SETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", namespaced=True)
PROVISIONING_REQUESTS = Resource(
    "autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest", namespaced=True
)
POD_TEMPLATES = Resource("", "v1", "podtemplates", "PodTemplate", namespaced=True)
RAY_CLUSTERS = Resource("ray.io", "v1", "rayclusters", "RayCluster", namespaced=True)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)


class PatchKind(enum.Enum):
    """The content type of a patch."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch. kind is ADDED, MODIFIED, DELETED or BOOKMARK; ERROR is raised."""

    kind: str
    object: Object


@dataclass(frozen=True, slots=True)
class Listing:
    """A list with the resourceVersion from which a watch continues it."""

    items: tuple[Object, ...]
    resource_version: str


class Api(Protocol):
    """A Kubernetes API server. Namespaces come from the object or are given by name."""

    async def version(self) -> str:
        """What the server calls itself, `v1.37.2` (gitVersion of /version)."""
        ...

    async def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The API groups that the server has now, and the versions of each (`/apis`)."""
        ...

    async def plurals(self, group: str, version: str) -> frozenset[str]:
        """What a version of a named API group has (`/apis/<group>/<version>`); empty without it."""
        ...

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        """Reads one object."""
        ...

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
        labels: str | None = None,
    ) -> Listing:
        """Reads all objects that match. `fields` are equality field selectors."""
        ...

    def pages(
        self,
        resource: Resource,
        *,
        size: int,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
        labels: str | None = None,
    ) -> AsyncGenerator[Listing, None]:
        """As list, in parts of at most `size` objects: all of one moment, none kept here.

        Whoever stops earlier calls aclose(). Raises ApiGoneError when the reader was too slow.
        """
        ...

    def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
        labels: str | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Follows changes after resource_version until the server ends the stream.

        Whoever stops earlier calls aclose(): it frees the connection.

        Raises ApiGoneError when the server cannot continue from this version (it is too old, or of
        a future that a restored server has not seen); ApiUnavailableError when the connection
        breaks.
        """
        ...

    async def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        """Creates an object; answers what the server stored.

        With dry_run nothing is stored: the answer is what would have been, after defaults,
        dropped fields and admission (query `dryRun=All`).
        """
        ...

    async def replace(
        self, resource: Resource, body: Object, *, subresource: str | None = None
    ) -> Object:
        """Writes a whole object; a resourceVersion in it makes the write conditional."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        *,
        kind: PatchKind = PatchKind.MERGE,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> Object:
        """Changes parts of an object; APPLY needs field_manager and is forced."""
        ...

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Deletes an object, if uid and resource_version still hold. NotFound is raised."""
        ...

    async def evict(self, name: str, *, namespace: str, uid: str | None = None) -> None:
        """Asks for the eviction of a pod, if its uid still is this (policy/v1, pods/eviction).

        A disruption budget that is used up is an ApiUnavailableError with status 429.
        """
        ...

    async def close(self) -> None:
        """Closes connections. Idempotent."""
        ...
