"""An API server in this process that answers who may do what, from roles and bindings."""

from typing import Any, Final

from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import Object, Resource
from dragoon.kube.rights import REVIEWS

_GLOBAL: Final = ""


class AuthorizingApi(MemoryApi):
    """A MemoryApi that also serves SubjectAccessReviews. It refuses nobody anything itself.

    policy: raw objects of rbac.authorization.k8s.io; whoever has the list may change it.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.policy: list[Object] = []

    async def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        if resource != REVIEWS:
            return await super().create(resource, body, dry_run=dry_run)
        return {**body, "status": {"allowed": self._allows(body["spec"])}}

    def _allows(self, spec: Any) -> bool:
        wanted = spec["resourceAttributes"]
        scopes = {_GLOBAL, wanted.get("namespace", _GLOBAL)}
        return any(
            _grants(rule, wanted)
            for binding in self.policy
            if binding["kind"].endswith("Binding") and _scope(binding) in scopes
            if any(_is_meant(one, spec) for one in binding.get("subjects") or ())
            for rule in self._rules(binding)
        )

    def _rules(self, binding: Object) -> list[Any]:
        reference = binding["roleRef"]
        inside = _scope(binding) if reference["kind"] == "Role" else _GLOBAL
        for role in self.policy:
            if (role["kind"], role["metadata"]["name"], _scope(role)) == (
                reference["kind"],
                reference["name"],
                inside,
            ):
                return list(role.get("rules") or ())
        return []


def _scope(found: Object) -> str:
    return str(found["metadata"].get("namespace", _GLOBAL))


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
