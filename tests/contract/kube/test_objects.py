"""Reading and writing objects: what every server answers alike."""

import pytest

from dragoon.errors import (
    ApiConflictError,
    ApiForbiddenError,
    ApiInvalidError,
    ApiNotFoundError,
    InvalidInputError,
)
from dragoon.kube.port import CLAIMS, CLASSES, EVENTS, NODES, PODS, SLICES, Object, PatchKind
from tests.contract.kube.servers import Server
from tests.contract.kube.waiting import becomes


async def test_the_server_says_its_version(server: Server) -> None:
    assert (await server.api.version()).startswith("v1.")


async def test_the_server_says_what_it_has_of_a_group(server: Server) -> None:
    found = await server.api.plurals("resource.k8s.io", "v1")
    assert {"resourceclaims", "resourceslices"} <= found
    assert not any("/" in plural for plural in found)
    assert await server.api.plurals("resource.k8s.io", "v99") == frozenset()
    assert await server.api.plurals("nobody.example.com", "v1") == frozenset()


async def test_a_created_object_is_stored_as_answered(server: Server) -> None:
    made = await server.claim("one", labels={"a": "b"})
    meta = made["metadata"]
    assert meta["uid"]
    assert meta["resourceVersion"]
    assert meta["creationTimestamp"].endswith("Z")
    assert made["kind"] == "ResourceClaim"
    assert await server.api.get(CLAIMS, "one", namespace=server.namespace) == made


async def test_defaults_are_filled_in(server: Server) -> None:
    made = await server.claim("one")
    exactly = made["spec"]["devices"]["requests"][0]["exactly"]
    assert (exactly["allocationMode"], exactly["count"]) == ("ExactCount", 1)


async def test_a_name_is_taken_once(server: Server) -> None:
    await server.claim("one")
    with pytest.raises(ApiConflictError) as caught:
        await server.claim("one")
    assert caught.value.status == 409


async def test_generated_names_are_cut_and_differ(server: Server) -> None:
    meta = {"generateName": "a" * 70, "namespace": server.namespace}
    names = set()
    for _ in range(3):
        spec = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "c"}}]}}
        made = await server.create(CLAIMS, {"metadata": dict(meta), "spec": spec})
        names.add(made["metadata"]["name"])
    assert len(names) == 3
    assert all(name.startswith("a" * 58) and len(name) == 63 for name in names)


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "a" * 254])
async def test_a_bad_name_is_invalid(server: Server, name: str) -> None:
    with pytest.raises(ApiInvalidError) as caught:
        await server.claim(name)
    assert caught.value.status == 422
    assert "metadata.name" in caught.value.message


async def test_a_version_may_not_be_given_at_creation(server: Server) -> None:
    with pytest.raises(InvalidInputError, match="resourceVersion"):
        await server.claim("one", resourceVersion="7")


async def test_a_body_of_another_kind_is_refused(server: Server) -> None:
    with pytest.raises(ApiInvalidError) as caught:
        await server.api.create(CLASSES, {"apiVersion": "v1", "kind": "Node", "metadata": {}})
    assert caught.value.status == 400


async def test_what_is_missing_is_not_found(server: Server) -> None:
    calls = (
        server.api.get(CLAIMS, "none", namespace=server.namespace),
        server.api.patch(CLAIMS, "none", {"metadata": {}}, namespace=server.namespace),
        server.api.delete(CLAIMS, "none", namespace=server.namespace),
        server.api.get(NODES, f"none-{server.unique}"),
    )
    for call in calls:
        with pytest.raises(ApiNotFoundError) as caught:
            await call
        assert caught.value.status == 404


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "%2e"])
async def test_a_name_cannot_change_the_path(server: Server, name: str) -> None:
    with pytest.raises(InvalidInputError, match="name"):
        await server.api.get(NODES, name)


async def test_a_namespaced_object_needs_its_namespace(server: Server) -> None:
    with pytest.raises(InvalidInputError, match="namespace"):
        await server.api.get(CLAIMS, "one")
    with pytest.raises(InvalidInputError, match="namespace"):
        await server.api.create(CLAIMS, {"metadata": {"name": "one"}})


async def test_a_replace_with_an_old_version_conflicts_and_changes_nothing(server: Server) -> None:
    first = await server.claim("one")
    second = await server.api.replace(
        CLAIMS, {**first, "metadata": {**first["metadata"], "labels": {"n": "1"}}}
    )
    assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
    with pytest.raises(ApiConflictError):
        await server.api.replace(
            CLAIMS, {**first, "metadata": {**first["metadata"], "labels": {"n": "2"}}}
        )
    assert await server.api.get(CLAIMS, "one", namespace=server.namespace) == second


async def test_a_write_that_changes_nothing_makes_no_new_version(server: Server) -> None:
    first = await server.slice("a")
    assert await server.api.replace(SLICES, first) == first
    name = first["metadata"]["name"]
    assert await server.api.patch(SLICES, name, {"metadata": {"labels": None}}) == first


async def test_a_slice_without_a_version_is_replaced_whatever_was_there(server: Server) -> None:
    first = await server.slice("a")
    meta = {"name": first["metadata"]["name"], "labels": {"n": "1"}}
    second = await server.api.replace(SLICES, {**first, "metadata": meta})
    assert second["metadata"]["labels"] == {"n": "1"}
    assert second["metadata"]["uid"] == first["metadata"]["uid"]


async def test_a_merge_patch_sets_and_removes(server: Server) -> None:
    made = await server.device_class("a", labels={"keep": "1", "drop": "2"})
    patch = {"metadata": {"labels": {"drop": None, "new": "3"}}}
    patched = await server.api.patch(CLASSES, made["metadata"]["name"], patch)
    assert patched["metadata"]["labels"] == {"keep": "1", "new": "3"}


async def test_a_json_patch_operates_on_paths(server: Server) -> None:
    made = await server.device_class("a", labels={"a/b": "1", "c": "2"})
    name = made["metadata"]["name"]
    patch = [
        {"op": "test", "path": "/metadata/labels/a~1b", "value": "1"},
        {"op": "replace", "path": "/metadata/labels/a~1b", "value": "9"},
        {"op": "remove", "path": "/metadata/labels/c"},
        {"op": "add", "path": "/spec/selectors/-", "value": {"cel": {"expression": "false"}}},
    ]
    patched = await server.api.patch(CLASSES, name, patch, kind=PatchKind.JSON)
    assert patched["metadata"]["labels"] == {"a/b": "9"}
    assert len(patched["spec"]["selectors"]) == 2
    failing = [{"op": "test", "path": "/metadata/labels/a~1b", "value": "1"}]
    with pytest.raises(ApiInvalidError):
        await server.api.patch(CLASSES, name, failing, kind=PatchKind.JSON)


async def test_a_patch_with_an_old_version_conflicts(server: Server) -> None:
    made = await server.device_class("a")
    name, version = made["metadata"]["name"], made["metadata"]["resourceVersion"]
    await server.api.patch(CLASSES, name, {"metadata": {"labels": {"n": "1"}}})
    stale = {"metadata": {"labels": {"n": "2"}, "resourceVersion": version}}
    with pytest.raises(ApiConflictError):
        await server.api.patch(CLASSES, name, stale)


async def test_apply_creates_then_owns_only_its_fields(server: Server) -> None:
    name = f"class-{server.unique}-applied"
    head = {"apiVersion": CLASSES.api_version, "kind": CLASSES.kind}

    async def apply(labels: dict[str, str]) -> Object:
        config = {**head, "metadata": {"name": name, "labels": labels}}
        return await server.api.patch(
            CLASSES, name, config, kind=PatchKind.APPLY, field_manager="contract"
        )

    made = await apply({"mine": "1", "also": "2"})
    server.made.append((CLASSES, name))
    assert made["metadata"]["uid"]
    await server.api.patch(CLASSES, name, {"metadata": {"labels": {"theirs": "3"}}})
    again = await apply({"mine": "9"})
    assert again["metadata"]["labels"] == {"mine": "9", "theirs": "3"}


async def test_patches_have_the_shape_of_their_kind(server: Server) -> None:
    with pytest.raises(InvalidInputError, match="list"):
        await server.api.patch(NODES, "n", {"op": "add"}, kind=PatchKind.JSON)
    with pytest.raises(InvalidInputError, match="dict"):
        await server.api.patch(NODES, "n", [{"op": "add"}])
    with pytest.raises(InvalidInputError, match="field_manager"):
        await server.api.patch(NODES, "n", {}, kind=PatchKind.APPLY)


async def test_a_delete_holds_to_its_preconditions(server: Server) -> None:
    made = await server.slice("a")
    name, meta = made["metadata"]["name"], made["metadata"]
    other = "00000000-0000-4000-8000-000000000000"
    with pytest.raises(ApiConflictError):
        await server.api.delete(SLICES, name, uid=other)
    with pytest.raises(ApiConflictError):
        await server.api.delete(SLICES, name, uid=meta["uid"], resource_version="1")
    await server.api.delete(SLICES, name, uid=meta["uid"], resource_version=meta["resourceVersion"])
    with pytest.raises(ApiNotFoundError):
        await server.api.get(SLICES, name)


async def test_a_finalizer_delays_the_end(server: Server) -> None:
    finalizer = "dragoon.dev/contract"
    await server.claim("one", finalizers=[finalizer])
    await server.api.delete(CLAIMS, "one", namespace=server.namespace)
    going = await server.api.get(CLAIMS, "one", namespace=server.namespace)
    assert going["metadata"]["deletionTimestamp"]
    more = {"metadata": {"finalizers": [finalizer, "dragoon.dev/late"]}}
    with pytest.raises(ApiInvalidError, match="finalizers"):
        await server.api.patch(CLAIMS, "one", more, namespace=server.namespace)
    done = {"metadata": {"finalizers": None}}
    await server.api.patch(CLAIMS, "one", done, namespace=server.namespace)
    with pytest.raises(ApiNotFoundError):
        await server.api.get(CLAIMS, "one", namespace=server.namespace)


async def test_an_event_is_written_and_becomes_a_series(server: Server) -> None:
    event = {
        "metadata": {"name": "one", "namespace": server.namespace},
        "eventTime": "2026-11-29T10:00:00.000000Z",
        "reportingController": "gpu.dragoon.dev",
        "reportingInstance": "contract",
        "action": "Prepare",
        "reason": "PrepareFailed",
        "type": "Warning",
        "note": "a GPU is missing",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "namespace": server.namespace,
        },
    }
    await server.create(EVENTS, event)
    series = {"count": 2, "lastObservedTime": "2026-11-29T10:01:00.000000Z"}
    stored = await server.api.patch(EVENTS, "one", {"series": series}, namespace=server.namespace)
    assert stored["series"]["count"] == 2
    for wrong in ({"series": {**series, "count": 1}}, {"note": "something else"}):
        with pytest.raises(ApiInvalidError):
            await server.api.patch(EVENTS, "one", wrong, namespace=server.namespace)


async def test_a_pod_is_evicted_if_it_is_still_the_same(server: Server) -> None:
    pod = await a_pod(server, "p")
    with pytest.raises(ApiConflictError):
        await server.api.evict("p", namespace=server.namespace, uid="another")
    await server.api.evict("p", namespace=server.namespace, uid=pod["metadata"]["uid"])
    with pytest.raises(ApiNotFoundError):
        await server.api.evict("p", namespace=server.namespace)


async def a_pod(server: Server, name: str) -> Object:
    """A pod, as soon as one can be made: a new namespace has its ServiceAccount a moment later."""
    made: list[Object] = []
    spec = {"containers": [{"name": "c", "image": "none"}], "terminationGracePeriodSeconds": 0}
    body = {"metadata": {"name": name, "namespace": server.namespace}, "spec": spec}

    async def is_made() -> bool:
        try:
            made.append(await server.create(PODS, body))
        except ApiForbiddenError as error:
            if "serviceaccount" not in str(error):
                raise
        return bool(made)

    await becomes("a pod can be made", is_made)
    return made[0]
