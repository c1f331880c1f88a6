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

    @property
    def target(self) -> str:
        """As kubectl takes it: `resourceclaims.resource.k8s.io/status`."""
        resource = ".".join(filter(None, (self.resource.plural, self.resource.group)))
        return "/".join(filter(None, (resource, self.subresource)))


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
    """The right that a refusal is about, as `kubectl auth can-i` takes it; empty for other texts.

    `list resourceslices.resource.k8s.io`, with ` -n NAMESPACE` where it is missing in one.
    """
    found = _CANNOT.search(message)
    if found is None:
        return ""
    target = ".".join(filter(None, (found["resource"], found["group"])))
    inside = f" -n {found['namespace']}" if found["namespace"] else ""
    return f"{found['verb']} {target}{inside}"
