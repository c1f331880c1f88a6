"""Names from outside on their way into a path."""

from pathlib import Path

import pytest

from dragoon.errors import ConfigError, InvalidInputError
from dragoon.prepare.paths import Paths, check_device, check_uid, is_temporary, temporary
from tests.unit.prepare.scene import settings

PATHS = Paths("gpu.dragoon.dev", Path("/state"), Path("/cdi"))
UID = "0f9c6a3e-57a5-4d0e-9d3e-6f0f3f1f2a3b"


@pytest.mark.parametrize(
    "uid", ["", "..", "../x", "a/b", "a_b", "-a", "a-", "a.b", "a\n", "é", "a" * 65, "a\0b"]
)
def test_a_uid_that_could_leave_its_folder_is_refused(uid: str) -> None:
    with pytest.raises(InvalidInputError, match="claim UID"):
        check_uid(uid)
    with pytest.raises(InvalidInputError):
        PATHS.journal(uid)
    with pytest.raises(InvalidInputError):
        PATHS.spec(uid)
    with pytest.raises(InvalidInputError):
        PATHS.marker(uid, "gpu-0000-10-00-0")


@pytest.mark.parametrize("device", ["", "..", "a/b", "A", "a_b", "-a", "a" * 64])
def test_a_device_name_that_is_no_label_is_refused(device: str) -> None:
    with pytest.raises(InvalidInputError, match="device name"):
        check_device(device)


def test_every_file_of_a_claim_tells_its_claim() -> None:
    for path in (PATHS.journal(UID), PATHS.spec(UID), PATHS.marker(UID, "gpu-0000-10-00-0")):
        assert PATHS.uid_of(path) == UID
        assert PATHS.uid_of(temporary(path)) == UID
        assert not is_temporary(path)
        assert is_temporary(temporary(path))


@pytest.mark.parametrize(
    "foreign",
    [
        "/cdi/nvidia.json",
        f"/cdi/k8s.gpu.nvidia.com-claim-{UID}.json",
        f"/cdi/gpu.dragoon.dev-claim-{UID}.yaml",
        f"/cdi/{UID}.json",
        f"/state/journal/{UID}",
        "/state/journal/a b.json",
        f"/state/markers/{UID}.json",
        f"/state/journal/{UID}_gpu.json",
    ],
)
def test_files_of_others_are_nobodys(foreign: str) -> None:
    assert PATHS.uid_of(Path(foreign)) is None


def test_a_runtime_does_not_read_a_temporary_spec() -> None:
    assert temporary(PATHS.spec(UID)).suffix not in {".json", ".yaml"}


def test_a_driver_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(ConfigError, match="driver name"):
        settings(Path("/node"), driver="a" * 64)
