"""An API server in this process that answers who may do what, from the roles that it stores."""

from typing import Any

from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import Object, Resource
from dragoon.kube.rights import REVIEWS

_RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(_RBAC, "v1", "roles", "Role", namespaced=True)
BINDINGS = Resource(_RBAC, "v1", "rolebindings", "RoleBinding", namespaced=True)
CLUSTER_ROLES = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_BINDINGS = Resource(
    _RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
KINDS = {one.kind: one for one in (ROLES, BINDINGS, CLUSTER_ROLES, CLUSTER_BINDINGS)}


class AuthorizingApi(MemoryApi):
    """A MemoryApi that also serves SubjectAccessReviews. It refuses nobody anything itself."""

    async def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        if resource != REVIEWS:
            return await super().create(resource, body, dry_run=dry_run)
        return {**body, "status": {"allowed": await self._allows(body["spec"])}}

    async def _allows(self, spec: Any) -> bool:
        wanted, namespace = spec["resourceAttributes"], spec["resourceAttributes"].get("namespace")
        scopes = [(CLUSTER_BINDINGS, None)]
        if namespace:
            scopes.append((BINDINGS, namespace))
        for kind, scope in scopes:
            for binding in (await self.list(kind, namespace=scope)).items:
                if any(_is_meant(one, spec) for one in binding.get("subjects") or ()):
                    reference = binding["roleRef"]
                    inside = scope if reference["kind"] == ROLES.kind else None
                    role = await self.get(
                        KINDS[reference["kind"]], reference["name"], namespace=inside
                    )
                    if any(_grants(rule, wanted) for rule in role.get("rules") or ()):
                        return True
        return False


def _is_meant(subject: Any, spec: Any) -> bool:
    if subject["kind"] == "Group":
        return subject["name"] in spec.get("groups", ())
    return bool(
        spec["user"] == f"system:serviceaccount:{subject.get('namespace')}:{subject['name']}"
    )


def _grants(rule: Any, wanted: Any) -> bool:
    target = "/".join(filter(None, (wanted["resource"], wanted.get("subresource"))))
    names = rule.get("resourceNames")
    return (
        wanted["verb"] in rule["verbs"]
        and wanted.get("group", "") in rule["apiGroups"]
        and target in rule["resources"]
        and (not names or wanted.get("name") in names)
    )
