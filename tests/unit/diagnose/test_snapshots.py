"""Snapshots: live, saved, read again, and from another version."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoon.diagnose import saving
from dragoon.diagnose.gathering import gather, gather_in_time
from dragoon.diagnose.snapshot import PARTS, ClusterSnapshot, identity
from dragoon.errors import ApiError, ApiForbiddenError, ApiUnavailableError, InvalidInputError
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, CLASSES, NODES, PODS, Resource
from tests.unit.diagnose.cases import GPU_CLASS, H100, Raw, claim, exactly, manifests, pod, slice_
from tests.unit.diagnose.scenes import node, snapshot


def secretive_pod() -> dict[str, Any]:
    made = pod([{"name": "g", "resourceClaimName": "c"}], [{"name": "g"}])
    made["spec"]["containers"][0] |= {"env": [{"name": "TOKEN", "value": "secret"}], "args": ["x"]}
    made["metadata"]["annotations"] = {"a": "secret"}
    return made


async def test_a_live_cluster_is_listed_with_kinds_in_every_object() -> None:
    api = MemoryApi()
    await api.create(CLASSES, GPU_CLASS)
    await api.create(CLAIMS, claim(exactly()))
    await api.create(NODES, node())
    before = api.resource_version
    found = await gather(api, source="memory")
    assert [one["kind"] for one in (*found.classes, *found.claims, *found.nodes)] == [
        "DeviceClass",
        "ResourceClaim",
        "Node",
    ]
    assert (found.source, found.missing) == ("memory", ())
    assert api.resource_version == before


async def test_what_may_not_be_read_and_is_not_needed_is_a_note() -> None:
    api = MemoryApi()
    api.faults.fail(error=lambda: ApiForbiddenError("no"), verb="list", resource=PODS)
    found = await gather(api)
    assert found.missing == ("pods: no",)


@pytest.mark.parametrize("error", [ApiForbiddenError("no"), ApiUnavailableError("down")])
async def test_without_claims_there_is_no_answer(error: ApiError) -> None:
    api = MemoryApi()
    api.faults.fail(error=lambda: error, verb="list", resource=CLAIMS)
    with pytest.raises(type(error)):
        await gather(api)


@pytest.mark.parametrize(("silent", "is_enough"), [(PODS, True), (CLAIMS, False)])
async def test_a_list_that_does_not_come_in_time_costs_no_other(
    silent: Resource, is_enough: bool
) -> None:
    api = MemoryApi()
    await api.create(CLASSES, GPU_CLASS)
    await api.create(NODES, node())
    api.faults.hang(verb="list", resource=silent, times=None)
    told = await gather_in_time(api, source="memory", patience=0.05)
    assert told.found.missing == (f"{silent.plural}: no answer from memory within 0.05 s",)
    assert told.is_enough is is_enough
    assert (len(told.found.classes), len(told.found.nodes)) == (1, 1)
    assert told.found.version == await api.version()
    if not is_enough:
        with pytest.raises(ApiUnavailableError, match="no answer from memory"):
            told.enough()


async def test_a_server_that_tells_nothing_in_time_is_an_error_and_no_empty_cluster() -> None:
    api = MemoryApi()
    api.faults.hang(verb="list", times=None)
    with pytest.raises(ApiUnavailableError, match=r"no answer from memory within 0.05 s"):
        await gather_in_time(api, source="memory", patience=0.05)


def test_a_snapshot_is_read_as_it_was_saved(tmp_path: Path) -> None:
    before = snapshot(slice_(H100), node(zone="z"), claim(exactly()), secretive_pod())
    before = before.replacing(missing=("devicetaintrules: not served",))
    saving.save(before, tmp_path / "s")
    after = saving.load(tmp_path / "s")
    assert after.missing == before.missing
    for field in PARTS:
        assert list(map(identity, getattr(after, field))) == list(
            map(identity, getattr(before, field))
        )
    assert after.slices[0]["spec"] == before.slices[0]["spec"]
    assert after.nodes[0]["metadata"]["labels"] == {"zone": "z"}


def test_objects_with_names_that_no_api_server_takes_are_left_out_and_told(tmp_path: Path) -> None:
    """Names stand in the commands that answers say to type next."""
    strange = secretive_pod()
    strange["metadata"]["name"] = "x --all; id"
    saving.save(snapshot(strange, claim(exactly())), tmp_path / "s")
    after = saving.load(tmp_path / "s")
    assert (len(after.pods), len(after.claims)) == (0, 1)
    assert after.missing == ("left out, with names that no API server takes: objects: 1",)


@pytest.mark.parametrize(
    ("device", "told"),
    [
        ({"capacity": {"memory": 3.5}}, "capacity.memory: found 3.5"),
        ({"attributes": {"uuid": {"string": 1}}}, "attributes.uuid.string: found 1"),
        (
            {"attributes": {"uuid": {"int": 2**70}}},
            "attributes.uuid.int: found 1180591620717411303424",
        ),
        ({"attributes": ["x"]}, "attributes: found ['x']"),
        ({"taints": [{"key": True}]}, "taints[0].key: found True"),
        ({"taints": [{"key": "k"}]}, "taints[0].effect: found nothing"),
        ({"name": None}, "name: found nothing"),
        ({"taints": [None]}, "taints[0]: found nothing"),
        ({"capacity": {"memory": None}}, "capacity.memory: found nothing"),
    ],
)
def test_an_object_of_a_layout_that_no_api_server_stores_is_left_out_with_its_field(
    tmp_path: Path, device: Raw, told: str
) -> None:
    bad = slice_({**H100, **device})
    bad["metadata"]["name"] = "bad"
    folder = tmp_path / "s"
    saving.save(snapshot(bad, slice_(H100), claim(exactly())), folder)
    after = saving.load(folder)
    assert (len(after.slices), len(after.claims)) == (1, 1)
    assert after.missing == (
        f"left out, as no API server stores it: ResourceSlice bad: spec.devices[0].{told}",
    )


def test_nothing_of_a_pod_that_could_be_a_secret_is_saved(tmp_path: Path) -> None:
    files = saving.save(snapshot(secretive_pod()), tmp_path / "s")
    assert not any("secret" in file.read_text() for file in files)
    saved = saving.load(tmp_path / "s").pods[0]
    assert saved["spec"]["resourceClaims"] == [{"name": "g", "resourceClaimName": "c"}]
    assert saved["spec"]["containers"][0]["resources"] == {"claims": [{"name": "g"}]}
    assert (tmp_path / "s").stat().st_mode & 0o077 == 0


def test_a_folder_with_something_in_it_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(InvalidInputError, match="empty folder"):
        saving.save(snapshot(), tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("version", ["diagnose.dragoon.dev/v2", "gpu.dragoon.dev/v1alpha1"])
def test_a_snapshot_from_another_version_is_refused_by_name(tmp_path: Path, version: str) -> None:
    saving.save(snapshot(), tmp_path / "s")
    header = tmp_path / "s" / "snapshot.json"
    header.write_text(json.dumps({**json.loads(header.read_text()), "apiVersion": version}))
    with pytest.raises(InvalidInputError, match=f"version {version}") as caught:
        saving.load(tmp_path / "s")
    assert saving.API_VERSION in caught.value.message


def test_a_folder_without_a_header_is_refused_with_how_to_save_one(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text(
        json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": []})
    )
    with pytest.raises(InvalidInputError, match="found 0 objects of kind Snapshot") as caught:
        saving.load(tmp_path)
    assert "--save" in caught.value.hint


def test_a_broken_file_in_a_snapshot_is_named(tmp_path: Path) -> None:
    saving.save(snapshot(), tmp_path / "s")
    (tmp_path / "s" / "nodes.json").write_text("{]")
    with pytest.raises(InvalidInputError, match=r"nodes\.json"):
        saving.load(tmp_path / "s")


def test_one_yaml_file_with_a_header_and_lists_is_a_snapshot_too(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(
        f"apiVersion: {saving.API_VERSION}\nkind: Snapshot\n---\n"
        "apiVersion: v1\nkind: NodeList\nitems: [{metadata: {name: a}}, {metadata: {name: b}}]\n"
    )
    assert [identity(one)[1] for one in saving.load(file).nodes] == ["a", "b"]


def test_files_replace_objects_of_the_same_name_and_add_others() -> None:
    before = snapshot(claim(exactly(), name="a"), claim(exactly(), name="b"))
    changed = claim(exactly(count=5), name="b")
    after = before.with_items(manifests(changed, claim(exactly(), name="c")).items)
    assert [identity(one)[1] for one in after.claims] == ["a", "b", "c"]
    assert after.claims[1]["spec"] == changed["spec"]
    assert len(before.claims) == 2
    assert isinstance(after, ClusterSnapshot)
