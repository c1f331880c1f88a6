"""Where a resource is served: URL paths, and the names that may stand in them."""

from urllib.parse import quote

from dragoon.errors import InvalidInputError
from dragoon.kube.port import Object, Resource


def group(name: str, version: str) -> str:
    """Where a version of a named API group says its resources."""
    return f"/apis/{segment(name, 'group')}/{segment(version, 'version')}"


def collection(resource: Resource, namespace: str | None) -> str:
    """`/api/v1/nodes`, `/apis/<group>/<version>/namespaces/<ns>/<plural>`.

    Without a namespace a namespaced resource is meant in all of them.
    """
    root = f"/apis/{resource.group}" if resource.group else "/api"
    inside = ""
    if resource.namespaced and namespace:
        inside = f"/namespaces/{segment(namespace, 'namespace')}"
    return f"{root}/{resource.version}{inside}/{resource.plural}"


def item(
    resource: Resource, name: str, namespace: str | None, subresource: str | None = None
) -> str:
    """The path of one object, or of its subresource."""
    require_namespace(resource, namespace)
    tail = f"/{segment(subresource, 'subresource')}" if subresource else ""
    return f"{collection(resource, namespace)}/{segment(name, 'name')}{tail}"


def require_namespace(resource: Resource, namespace: str | None) -> None:
    """Raises InvalidInputError where a namespaced object is named without its namespace."""
    if resource.namespaced and not namespace:
        raise InvalidInputError(
            f"namespace of a {resource.kind}: found none, {resource.plural} live in a namespace"
        )


def home(resource: Resource, body: Object) -> str | None:
    """The namespace in which a new object is created.

    Raises InvalidInputError where it has none, or brings a resourceVersion: the server would
    answer 500 to that, which looks as if it were worth another try.
    """
    meta = body.get("metadata") or {}
    if meta.get("resourceVersion"):
        raise InvalidInputError(
            f"metadata.resourceVersion: found {meta['resourceVersion']!r}, a new object has none"
        )
    namespace = meta.get("namespace")
    require_namespace(resource, namespace)
    return None if namespace is None else str(namespace)


def segment(value: str, field: str) -> str:
    """One path segment, encoded; raises InvalidInputError where it could change the path.

    The rule of the API server: not empty, not `.` or `..`, no `/` and no `%`.
    """
    if not value or value in {".", ".."} or "/" in value or "%" in value:
        raise InvalidInputError(
            f"{field}: found {value!r}, allowed is one path segment without '/' and '%'"
        )
    return quote(value, safe="")
