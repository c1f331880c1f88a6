"""Layers whose bytes depend on nothing but what their files say."""

import json
import os
import tarfile
from pathlib import Path

import pytest

from imagebuild import application, archive
from imagebuild.dockerfile import Described
from imagebuild.layers import Store, tree_digest, write_tar
from realcluster.failure import ClusterError


def fill(root: Path) -> None:
    (root / "bin").mkdir()
    (root / "bin/tool").write_text("#!/bin/sh\n")
    (root / "bin/tool").chmod(0o755)
    (root / "bin/other").hardlink_to(root / "bin/tool")
    (root / "link").symlink_to("bin/tool")


def test_owner_time_and_order_of_making_do_not_matter(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for root in (one, two):
        root.mkdir()
        fill(root)
    os.utime(two / "bin/tool", (1, 1))
    (two / "bin/other").unlink()
    (two / "bin/other").write_text("#!/bin/sh\n")
    (two / "bin/other").chmod(0o755)
    for root in (one, two):
        write_tar(root, root.with_suffix(".tar"), 7)
    assert one.with_suffix(".tar").read_bytes() == two.with_suffix(".tar").read_bytes()
    with tarfile.open(one.with_suffix(".tar")) as tar:
        entries = {entry.name: entry for entry in tar}
    assert list(entries) == ["bin", "bin/other", "bin/tool", "link"]
    assert {entry.mtime for entry in entries.values()} == {7}
    assert {(entry.uid, entry.uname) for entry in entries.values()} == {(0, "")}
    assert entries["bin/tool"].mode == 0o755
    assert entries["link"].linkname == "bin/tool"


def test_a_layer_is_made_once_for_each_key_and_a_failed_one_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    made: list[str] = []

    def fail(root: Path) -> None:
        (root / "half").touch()
        raise ClusterError("no network")

    def note(root: Path) -> None:
        made.append(root.name)
        fill(root)

    with pytest.raises(ClusterError):
        store.layer("base", "key", fail)
    assert [path.name for path in store.folder.iterdir()] == ["lock"]
    first, again = store.layer("base", "key", note), store.layer("base", "key", note)
    assert first == again
    assert len(made) == 1
    assert store.layer("base", "other", note).path != first.path


def test_layers_of_long_ago_go(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    made = [store.layer("project", str(number), fill) for number in range(12)]
    kept = set(store.folder.glob("project-*.tar"))
    assert made[-1].path in kept
    assert len(kept) < len(made)


def test_a_tree_changes_with_names_modes_and_contents_but_not_with_caches(tmp_path: Path) -> None:
    root = tmp_path / "driver"
    root.mkdir()
    (root / "a.py").write_text("1")
    seen = {tree_digest(root)}
    (root / "__pycache__").mkdir()
    (root / "__pycache__/a.pyc").write_text("1")
    assert tree_digest(root) in seen
    (root / "a.py").chmod(0o755)
    seen.add(tree_digest(root))
    (root / "b.py").write_text("1")
    seen.add(tree_digest(root))
    assert len(seen) == 3


def test_an_archive_names_its_image_and_holds_every_blob_by_its_digest(tmp_path: Path) -> None:
    layer = Store(tmp_path / "store").layer("base", "key", fill)
    described = Described(user="1:1", command=["x"], environment={"A": "b"})
    target = tmp_path / "image.tar"
    image = archive.write(target, "reg/dragoon:v1", [layer], described, 0)
    with tarfile.open(target) as tar:
        blobs = {name: tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]
    (named,) = json.loads(blobs["index.json"])["manifests"]
    assert named["digest"] == image.digest
    assert named["annotations"]["io.containerd.image.name"] == "reg/dragoon:v1"
    manifest = json.loads(blobs[_blob(image.digest)])
    config = json.loads(blobs[_blob(manifest["config"]["digest"])])
    assert config["config"]["Env"] == ["A=b"]
    assert config["rootfs"]["diff_ids"] == [layer.digest]
    assert blobs[_blob(layer.digest)] == layer.path.read_bytes()
    assert manifest["layers"][0]["size"] == layer.size == image.size


def test_a_pattern_that_leaves_nothing_out_is_told(tmp_path: Path) -> None:
    (tmp_path / application.APP).mkdir()
    with pytest.raises(ClusterError, match=r"gone/\*\.py"):
        application.leave_out(tmp_path, ["gone/*.py"])


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
