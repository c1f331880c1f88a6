"""Whether somebody may do something: asked of the API server's authorizer, and read from refusals.

Source: authorization.k8s.io/v1 SubjectAccessReview, whose metadata must be empty; and the words of
a 403, which apiserver's responsewriters make (`... cannot list resource "pods" in API group ""`).
"""

import re
from dataclasses import dataclass
from typing import Final

from dragoon.kube.port import Api, Resource

REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
_CANNOT: Final = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)


@dataclass(frozen=True, slots=True)
class Right:
    """One thing that can be allowed. namespace: empty for all of them. name: of one object only."""

    verb: str
    resource: Resource
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        """As `kubectl auth can-i` takes it: `patch pods --subresource=status`."""
        resource = ".".join(filter(None, (self.resource.plural, self.resource.group)))
        below = f" --subresource={self.subresource}" if self.subresource else ""
        inside = f" -n {self.namespace}" if self.namespace else ""
        name = f"/{self.name}" if self.name else ""
        return f"{self.verb} {resource}{name}{below}{inside}"


async def allowed(api: Api, namespace: str, account: str, right: Right) -> bool:
    """Whether a ServiceAccount has a right. Raises ApiError where one may not ask."""
    attributes = {
        "verb": right.verb,
        "group": right.resource.group,
        "version": right.resource.version,
        "resource": right.resource.plural,
        "subresource": right.subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    groups = (
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
        "system:authenticated",
    )
    answer = await api.create(
        REVIEWS,
        {
            "apiVersion": REVIEWS.api_version,
            "kind": REVIEWS.kind,
            "metadata": {},
            "spec": {
                "user": f"system:serviceaccount:{namespace}:{account}",
                "groups": list(groups),
                "resourceAttributes": {key: value for key, value in attributes.items() if value},
            },
        },
    )
    return bool((answer.get("status") or {}).get("allowed"))


def missing_right(message: str) -> str:
    """The right that a refusal is about, as `Right` writes it; empty for other texts."""
    found = _CANNOT.search(message)
    if found is None:
        return ""
    resource, _, subresource = found["resource"].partition("/")
    target = ".".join(filter(None, (resource, found["group"])))
    below = f" --subresource={subresource}" if subresource else ""
    inside = f" -n {found['namespace']}" if found["namespace"] else ""
    return f"{found['verb']} {target}{below}{inside}"
