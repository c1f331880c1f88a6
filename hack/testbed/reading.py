"""Reads objects as `kubectl get` does, without starting a process for each look.

Tests look again and again; a kubectl for each look takes more CPU than all of Kubernetes.
"""

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from realcluster.failure import ClusterError

Object = dict[str, Any]

_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_QUERIES = {"-l": "labelSelector", "--field-selector": "fieldSelector"}


@dataclass(frozen=True, slots=True)
class _Kind:
    """Where the objects of a kind are. root: `/api/v1` or `/apis/GROUP/VERSION`."""

    root: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None) -> str:
        scope = f"/namespaces/{quote(namespace or 'default')}" if self.namespaced else ""
        return f"{self.root}{scope}/{self.plural}"


class Server(Protocol):
    """What answers: `realcluster.apiserver.ApiServer`."""

    def fetch(self, path: str, *, accept: str = ...) -> tuple[int, bytes]: ...


class Reader:
    """Objects of one cluster, by the names of kinds that kubectl takes."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._kinds: dict[str, _Kind] = {}

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """The object, or None. Without a namespace: in `default`, if its kind has namespaces."""
        path = f"{self._kind(kind).path(namespace)}/{quote(name)}"
        status, body = self._server.fetch(path)
        if status == HTTPStatus.NOT_FOUND and _reason(body) == "NotFound":
            return None
        return _read(path, status, body)

    def items(self, kinds: str, *selection: str) -> list[Object]:
        """The objects of a kind, or of several (`pods,jobs`).

        selection: pairs of -n, -l or --field-selector and its value.
        """
        wanted = dict(zip(selection[::2], selection[1::2], strict=True))
        namespace = wanted.pop("-n", None)
        query = urlencode({_QUERIES[option]: value for option, value in wanted.items()})
        found: list[Object] = []
        for kind in kinds.split(","):
            path = f"{self._kind(kind).path(namespace)}?{query}"
            listing = _read(path, *self._server.fetch(path))
            # In a list the objects of Kubernetes' own APIs do not say what they are.
            what = {
                "apiVersion": listing["apiVersion"],
                "kind": listing["kind"].removesuffix("List"),
            }
            found += [what | one for one in listing["items"]]
        return found

    def _kind(self, name: str) -> _Kind:
        """What a name means; what came with a CRD meanwhile is looked up anew."""
        if name not in self._kinds:
            self._kinds = self._discover()
        if name not in self._kinds:
            raise ClusterError(f"the server has no kind {name!r}")
        return self._kinds[name]

    def _discover(self) -> dict[str, _Kind]:
        found: dict[str, _Kind] = {}
        for root in ("/api", "/apis"):
            listing = _read(root, *self._server.fetch(root, accept=_DISCOVERY))
            for group in listing["items"]:
                for name, kind in _kinds_of(root, group):
                    # Of two groups with the same name the first is meant, of versions as well.
                    found.setdefault(name, kind)
        return found


def _kinds_of(root: str, group: Object) -> list[tuple[str, _Kind]]:
    """Every name that a kind of a group goes by. group: an APIGroupDiscovery."""
    found = []
    group_name = group["metadata"].get("name", "")
    for version in group["versions"]:
        place = "/".join(part for part in (root, group_name, version["version"]) if part)
        for resource in version.get("resources", ()):
            plural = resource["resource"]
            kind = _Kind(place, plural, resource["scope"] == "Namespaced")
            singular = resource.get("singularResource") or resource["responseKind"]["kind"].lower()
            names = (plural, singular, f"{plural}.{group_name}", *resource.get("shortNames", ()))
            found += [(name, kind) for name in names]
    return found


def _reason(body: bytes) -> object:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found.get("reason") if isinstance(found, dict) else None


def _read(path: str, status: int, body: bytes) -> Object:
    if status != HTTPStatus.OK:
        raise ClusterError(f"GET {path}: {status} {body.decode(errors='replace')[:500]}")
    found: Object = json.loads(body)
    return found
