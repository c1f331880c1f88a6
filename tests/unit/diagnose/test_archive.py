"""Dumps: written, read again, refused when they are of a newer version or no dumps at all."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from dragoon.diagnose import archive, saving
from dragoon.diagnose.redacting import REDACTED, reduced
from dragoon.diagnose.snapshot import PARTS, identity
from dragoon.errors import InvalidInputError
from tests.unit.diagnose.cases import H100, Raw, claim, exactly, pod, slice_
from tests.unit.diagnose.scenes import node, snapshot

BEFORE = snapshot(slice_(H100), node(zone="z"), claim(exactly())).replacing(version="v1.37.2")


def dump(file: Path, place: str = archive.CLUSTER, **contents: object) -> Path:
    files = {f"{place}{name}": data for name, data in saving.contents(BEFORE).items()}
    file.write_bytes(archive.pack(files, contents, created=0))
    return file


@pytest.mark.parametrize("place", [archive.CLUSTER, f"{archive.NODE}snapshot/"])
def test_a_dump_is_read_as_a_saved_cluster(tmp_path: Path, place: str) -> None:
    after = saving.load(dump(tmp_path / "d.tar.gz", place))
    assert (after.version, after.source) == ("v1.37.2", str(tmp_path / "d.tar.gz"))
    for field in PARTS:
        before = getattr(BEFORE, field)
        assert list(map(identity, getattr(after, field))) == list(map(identity, before))


def test_the_same_content_is_the_same_file_but_for_its_time(tmp_path: Path) -> None:
    first, second = (dump(tmp_path / name) for name in ("1", "2"))
    assert gzip.decompress(first.read_bytes()) == gzip.decompress(second.read_bytes())


def test_a_dump_of_a_newer_layout_is_refused_by_name(tmp_path: Path) -> None:
    file = dump(tmp_path / "d.tar.gz", layout=archive.LAYOUT + 1, dragoon="9.0.0")
    with pytest.raises(InvalidInputError) as caught:
        saving.load(file)
    assert "of layout 2, written by Dragoon 9.0.0" in caught.value.message
    assert "reads layouts up to 1" in caught.value.message
    assert "newer one" in caught.value.hint


def tar_of(file: Path, **members: bytes) -> Path:
    with tarfile.open(file, "w:gz") as tar:
        for name, body in members.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return file


def test_what_is_no_dump_is_refused(tmp_path: Path) -> None:
    cut = dump(tmp_path / "whole").read_bytes()[:200]
    (tmp_path / "cut").write_bytes(cut)
    (tmp_path / "text").write_bytes(gzip.compress(b"no tar"))
    tar_of(tmp_path / "other", readme=b"hello")
    tar_of(tmp_path / "strange", **{"d__dump.json": b"[1]"})
    tar_of(tmp_path / "deep", **{"d__dump.json": b"[" * 100_000})
    for name in ("cut", "text", "other", "strange", "deep"):
        with pytest.raises(InvalidInputError, match=name):
            saving.load(tmp_path / name)


def test_names_in_an_archive_are_never_paths(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    file = tar_of(inside / "evil.tar.gz", **{"..__..__escaped": b"x", "d__..__escaped": b"x"})
    with pytest.raises(InvalidInputError):
        saving.load(file)
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["evil.tar.gz", "inside"]


def test_an_archive_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="more than 100 bytes in it"):
        archive.unpack(dump(tmp_path / "bomb"), limit=100)


def test_a_header_that_would_fill_the_memory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "bomb"
    with tarfile.open(file, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo("d/dump.json" + 2**20 * "x"))
    assert file.stat().st_size < 2**14
    with pytest.raises(InvalidInputError, match="more than 65536 bytes in it"):
        archive.unpack(file, limit=2**16)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="nothing here"):
        saving.load(tmp_path / "nothing here")


SECRET = "hunter2"


def secretive() -> list[Raw]:
    """Objects with a secret wherever users put one."""
    theirs = {"apiVersion": "other.example/v1", "kind": "Config", "token": SECRET}
    config = {"opaque": {"driver": "other.example", "parameters": theirs}}
    made = pod([{"name": "g", "resourceClaimName": "c"}], [{"name": "g"}])
    made["spec"]["containers"][0] |= {
        "env": [{"name": "TOKEN", "value": SECRET}],
        "command": [SECRET],
        "image": SECRET,
    }
    made["spec"]["volumes"] = [{"name": SECRET}]
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": SECRET}
    wants = claim(exactly(), config=[config])
    wants["status"] = {
        "allocation": {"devices": {"results": [], "config": [config]}},
        "devices": [
            {"driver": "other.example", "pool": "p", "device": "d", "data": {"key": SECRET}}
        ],
    }
    class_: Raw = {"kind": "DeviceClass", "metadata": {"name": "x"}, "spec": {"config": [config]}}
    template: Raw = {
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"},
        "spec": {"spec": {"devices": {"config": [config]}}},
    }
    host = node()
    host["status"] = {"images": [{"names": [SECRET]}], "addresses": [{"address": SECRET}]}
    found = [made, wants, class_, template, host]
    for one in found:
        one["metadata"] |= {"annotations": annotations, "managedFields": [{"manager": SECRET}]}
    return found


@pytest.mark.parametrize("raw", secretive(), ids=lambda raw: str(raw["kind"]))
def test_nothing_that_could_be_a_secret_is_kept(raw: Raw) -> None:
    assert SECRET in str(raw)
    assert SECRET not in str(reduced(raw["kind"], raw))


def test_our_own_annotations_and_configs_are_kept() -> None:
    ours = {"apiVersion": "gpu.dragoon.dev/v1alpha1", "kind": "GpuConfig", "timeSlice": "Long"}
    config = {"opaque": {"driver": "gpu.dragoon.dev", "parameters": ours}}
    made = claim(exactly(), config=[config])
    made["metadata"]["annotations"] = {"dragoon.dev/gang-size": "4", "team": "a"}
    kept = reduced("ResourceClaim", made)
    assert kept["metadata"]["annotations"] == {"dragoon.dev/gang-size": "4"}
    assert kept["spec"] == made["spec"]


def test_what_is_left_out_is_said_in_words() -> None:
    assert any("environment" in one for one in REDACTED)
    assert any("annotations" in one for one in REDACTED)
