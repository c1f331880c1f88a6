"""What the stand-in remembers of claims."""

from pathlib import Path

import pytest

from dragoon.errors import StateError
from dragoon.kubelet.checkpoint import Checkpoint
from dragoon.prepare.port import PreparedDevice
from tests.unit.kubelet.preparers import claim, device

DEEP = b'{"a":{"more":' + b"[" * 100_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dra_manager_state"


def test_what_was_recorded_is_there_after_a_restart(path: Path) -> None:
    Checkpoint(path).record("gpu", {claim("a"): (device("gpu-0", share_id="s"),)})
    assert Checkpoint(path).devices("gpu", "a") == (device("gpu-0", share_id="s"),)


def test_a_claim_whose_answer_never_came_is_known_without_devices(path: Path) -> None:
    Checkpoint(path).record("gpu", {claim("a"): ()})
    after = Checkpoint(path)
    assert after.devices("gpu", "a") == ()
    assert after.devices("gpu", "b") is None
    assert after.devices("nic", "a") is None


def test_a_container_gets_the_ids_of_its_request_and_an_unknown_request_gets_none(
    path: Path,
) -> None:
    checkpoint = Checkpoint(path)
    one = PreparedDevice(("g",), "p", "gpu-0", ("v/c=0",))
    two = PreparedDevice(("h",), "p", "gpu-1", ("v/c=1", "v/c=1b"))
    every = PreparedDevice((), "p", "gpu-2", ("v/c=2",))
    checkpoint.record("gpu", {claim("a"): (one, two)})
    checkpoint.record("nic", {claim("a"): (every,)})
    assert checkpoint.cdi_ids("a", "g") == ("v/c=0", "v/c=2")
    assert checkpoint.cdi_ids("a", "h") == ("v/c=1", "v/c=1b", "v/c=2")
    assert checkpoint.cdi_ids("a", None) == ("v/c=0", "v/c=1", "v/c=1b", "v/c=2")
    assert checkpoint.cdi_ids("a", "g/ok") == ("v/c=2",)
    assert checkpoint.cdi_ids("b", None) == ()


def test_a_claim_is_forgotten_with_its_last_driver(path: Path) -> None:
    checkpoint = Checkpoint(path)
    for driver in ("gpu", "nic"):
        checkpoint.record(driver, {claim("a"): (device(driver),)})
    checkpoint.forget("gpu", ["a"])
    assert checkpoint.previous(claim("new", "claim-a")) == claim("a")
    checkpoint.forget("nic", ["a"])
    assert Checkpoint(path).previous(claim("new", "claim-a")) is None


def test_only_another_uid_with_the_same_name_is_a_previous_claim(path: Path) -> None:
    checkpoint = Checkpoint(path)
    checkpoint.record("gpu", {claim("a"): ()})
    assert checkpoint.previous(claim("a")) is None
    assert checkpoint.previous(claim("b")) is None
    assert checkpoint.previous(claim("b", "claim-a")) == claim("a")


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": {"claim": 1}}', b"[]", DEEP])
def test_a_broken_file_is_a_clear_error(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StateError, match="is not a checkpoint"):
        Checkpoint(path)


def test_a_failed_write_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    checkpoint = Checkpoint(folder / "state")
    checkpoint.record("gpu", {claim("a"): ()})
    (folder / "state").unlink()
    folder.rmdir()
    with pytest.raises(StateError, match="cannot write"):
        checkpoint.record("gpu", {claim("b"): ()})
    assert checkpoint.devices("gpu", "b") is None
