"""Objects are found under the names that kubectl takes, and what is not there is told apart."""

import json
from typing import Any

import pytest

from realcluster.failure import ClusterError
from testbed.reading import Reader


def resource(plural: str, kind: str, *short: str, scope: str = "Namespaced") -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"kind": kind},
        "scope": scope,
        "singularResource": kind.lower(),
        "shortNames": list(short),
    }


def group(name: str, **versions: list[dict[str, Any]]) -> dict[str, Any]:
    """A group of an aggregated discovery document; the first of its versions is preferred."""
    found = [{"version": version, "resources": made} for version, made in versions.items()]
    return {"metadata": {"name": name} if name else {}, "versions": found}


CORE = group(
    "",
    v1=[
        resource("pods", "Pod", "po"),
        resource("nodes", "Node", scope="Cluster"),
        resource("events", "Event"),
    ],
)
EVENTS = group("events.k8s.io", v1=[resource("events", "Event")])
GANGS = group("dragoon.dev", v1alpha1=[resource("gangs", "Gang")])


class Server:
    """Answers what it was given, by path."""

    def __init__(self, *groups: dict[str, Any]) -> None:
        self.answers: dict[str, tuple[int, Any]] = {
            "/api": (200, {"items": [CORE]}),
            "/apis": (200, {"items": list(groups)}),
        }

    def fetch(self, path: str, *, accept: str = "") -> tuple[int, bytes]:
        status, body = self.answers[path]
        return status, json.dumps(body).encode()


@pytest.mark.parametrize("name", ["pod", "pods", "po"])
def test_an_object_is_found_by_every_name_of_its_kind(name: str) -> None:
    server = Server()
    server.answers["/api/v1/namespaces/default/pods/p"] = (200, {"kind": "Pod"})
    assert Reader(server).get(name, "p") == {"kind": "Pod"}


def test_of_two_groups_with_a_kind_the_first_is_meant_if_none_is_named() -> None:
    server = Server(EVENTS)
    core = {"apiVersion": "v1", "kind": "EventList", "items": [{"message": "a"}]}
    later = {"apiVersion": "events.k8s.io/v1", "kind": "EventList", "items": [{"note": "b"}]}
    server.answers["/api/v1/namespaces/n/events?"] = (200, core)
    server.answers["/apis/events.k8s.io/v1/namespaces/n/events?"] = (200, later)
    reader = Reader(server)
    assert reader.items("events", "-n", "n") == [
        {"apiVersion": "v1", "kind": "Event", "message": "a"}
    ]
    assert [one["note"] for one in reader.items("events.events.k8s.io", "-n", "n")] == ["b"]


def test_selections_of_several_kinds_go_to_the_server() -> None:
    server = Server()
    query = "?labelSelector=a%3Db&fieldSelector=c%3Dd"
    for path, kind, name in (
        ("/api/v1/nodes", "NodeList", "node"),
        ("/api/v1/namespaces/n/pods", "PodList", "pod"),
    ):
        listing = {"apiVersion": "v1", "kind": kind, "items": [{"metadata": {"name": name}}]}
        server.answers[path + query] = (200, listing)
    found = Reader(server).items("nodes,pods", "-n", "n", "-l", "a=b", "--field-selector", "c=d")
    assert [one["kind"] for one in found] == ["Node", "Pod"]


def test_a_kind_that_comes_with_a_crd_is_found_once_it_is_served() -> None:
    server = Server()
    reader = Reader(server)
    with pytest.raises(ClusterError, match="no kind 'gang'"):
        reader.get("gang", "g", "n")
    server.answers["/apis"] = (200, {"items": [GANGS]})
    server.answers["/apis/dragoon.dev/v1alpha1/namespaces/n/gangs/g"] = (200, {"kind": "Gang"})
    assert reader.get("gang", "g", "n") == {"kind": "Gang"}


def test_only_an_object_that_is_not_there_is_none() -> None:
    server = Server()
    path = "/api/v1/nodes/n"
    server.answers[path] = (404, {"kind": "Status", "reason": "NotFound"})
    reader = Reader(server)
    assert reader.get("node", "n") is None
    for status, body in ((404, "404 page not found"), (500, {"reason": "InternalError"})):
        server.answers[path] = (status, body)
        with pytest.raises(ClusterError, match=str(status)):
            reader.get("node", "n")
