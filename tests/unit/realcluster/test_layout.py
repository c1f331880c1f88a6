from pathlib import Path

import pytest

from realcluster import layout
from realcluster.failure import ClusterError


@pytest.fixture(autouse=True)
def no_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAGOON_CLUSTER_ROOT", raising=False)
    monkeypatch.delenv("DRAGOON_CLUSTER_NAME", raising=False)


def longest_socket(found: layout.Layout) -> int:
    uid = "1f3b5c7d-9e0a-4b2c-8d4e-6f8a0b2c4d6e"
    socket = f"plugins_registry/gpu.dragoon.dev-{uid}-reg.sock"
    return len(str(found.kubelet_root(layout.MAX_NODES - 1) / socket))


def test_default_name_fits_and_stays() -> None:
    name = layout.default_name()
    assert name == layout.default_name()
    assert longest_socket(layout.cluster_layout(name)) <= 107


def test_name_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOON_CLUSTER_NAME", "other")
    assert layout.default_name() == "other"


def test_longest_name_that_is_taken_really_fits() -> None:
    fits = [length for length in range(1, 40) if is_accepted("n" * length)]
    assert longest_socket(layout.cluster_layout("n" * fits[-1])) <= 107
    assert len(fits) >= 10


def is_accepted(name: str) -> bool:
    try:
        layout.cluster_layout(name)
    except ClusterError:
        return False
    return True


def test_long_root_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAGOON_CLUSTER_ROOT", str(tmp_path / "quite" / "a" / "long" / "way"))
    with pytest.raises(ClusterError, match="choose a shorter --name"):
        layout.cluster_layout("e2e")


@pytest.mark.parametrize("name", ["", "..", "a/b", "Upper", "-a", "a-", "a b"])
def test_name_that_is_no_plain_folder_name(name: str) -> None:
    with pytest.raises(ClusterError, match="small letters"):
        layout.cluster_layout(name)


def test_lock_survives_that_its_folder_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with layout.folder_lock(folder):
        folder.rmdir()
    assert not folder.exists()
    with layout.folder_lock(folder):
        assert folder.is_dir()
