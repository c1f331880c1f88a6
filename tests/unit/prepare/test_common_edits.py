"""What a container with a real GPU needs: from NVIDIA's toolkit, or found below a driver root."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoon.errors import CdiError, HardwareError
from dragoon.gpu.model import Inventory
from dragoon.prepare.cdi import DeviceNode
from dragoon.prepare.common_edits import CommonEdits
from dragoon.prepare.driver_files import driver_edits
from dragoon.prepare.host_root import HostRoot
from dragoon.prepare.toolkit import run_program, toolkit_edits

VERSION = "580.65.06"

# The shape of `nvidia-ctk cdi generate --format=json`, shortened.
GENERATED = {
    "cdiVersion": "0.5.0",
    "kind": "nvidia.com/gpu",
    "devices": [
        {"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}},
        {"name": "all", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}},
    ],
    "containerEdits": {
        "env": ["NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_CTK_LIBCUDA_DIR=/usr/lib64"],
        "deviceNodes": [
            {"path": "/dev/nvidiactl"},
            {"path": "/dev/nvidia-uvm"},
            {"path": "/dev/nvidia0"},
            {"path": "/dev/nvidia-caps/nvidia-cap1"},
            {"path": "/dev/dri/card1"},
        ],
        "hooks": [
            {
                "hookName": "createContainer",
                "path": "/usr/bin/nvidia-cdi-hook",
                "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib64"],
            },
            {
                "hookName": "createContainer",
                "path": "/usr/bin/nvidia-cdi-hook",
                "args": ["nvidia-cdi-hook", "create-symlinks"],
                "env": ["NVIDIA_CTK_DEBUG=false"],
            },
        ],
        "mounts": [
            {
                "hostPath": "/usr/lib64/libcuda.so.580.65.06",
                "containerPath": "/usr/lib64/libcuda.so.580.65.06",
                "options": ["ro", "nosuid", "nodev", "bind"],
            }
        ],
    },
}


class Toolkit:
    """An `nvidia-ctk` that answers what it is told to, and remembers how it was called."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.calls: list[Sequence[str]] = []

    def __call__(self, arguments: Sequence[str], timeout: float) -> bytes:
        self.calls.append(arguments)
        return self.answer


def real(version: str | None = VERSION) -> Inventory:
    return Inventory(driver_version=version)


def test_of_the_toolkit_only_what_all_gpus_share_is_used() -> None:
    tool = Toolkit(json.dumps(GENERATED).encode())
    edits = toolkit_edits(Path("/usr/bin/nvidia-ctk"), Path("/run/driver"), Path("/"), tool)

    assert [node.path for node in edits.device_nodes] == ["/dev/nvidiactl", "/dev/nvidia-uvm"]
    assert edits.env == ("NVIDIA_CTK_LIBCUDA_DIR=/usr/lib64",)
    assert len(edits.mounts) == 1
    (call,) = tool.calls
    assert call[0] == "/usr/bin/nvidia-ctk"
    assert "--driver-root=/run/driver" in call


def test_point_10_hooks_of_the_toolkit_get_an_environment_of_their_own() -> None:
    tool = Toolkit(json.dumps(GENERATED).encode())
    edits = toolkit_edits(Path("/usr/bin/nvidia-ctk"), Path("/"), Path("/"), tool)

    bare, own = edits.hooks
    assert bare.env[0].startswith("PATH=")
    assert own.env == ("NVIDIA_CTK_DEBUG=false",)


def test_an_answer_of_the_toolkit_that_is_no_spec_is_an_error() -> None:
    with pytest.raises(CdiError):
        toolkit_edits(Path("/x"), Path("/"), Path("/"), Toolkit(b"Usage: nvidia-ctk"))


def test_a_program_that_fails_says_why(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text("#!/bin/sh\necho no driver >&2\nexit 3\n")
    script.chmod(0o755)
    with pytest.raises(HardwareError, match="status 3: no driver"):
        run_program([str(script)], 30)
    with pytest.raises(HardwareError, match="cannot run"):
        run_program([str(tmp_path / "missing")], 30)


def test_a_program_answers_with_its_standard_output(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text('#!/bin/sh\necho "$1"\n')
    script.chmod(0o755)
    assert run_program([str(script), "hello"], 30) == b"hello\n"


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """A tree as an installed driver leaves it."""
    libraries = tmp_path / "usr/lib/x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    for name in ("libcuda", "libnvidia-ml"):
        (libraries / f"{name}.so.{VERSION}").touch()
        (libraries / f"{name}.so.1").symlink_to(f"{name}.so.{VERSION}")
    (libraries / "libcuda.so").symlink_to("libcuda.so.1")
    (libraries / "libcuda.so.470.1").touch()
    (libraries / "libother.so.1").touch()
    (libraries / "libloop.so.1").symlink_to("libloop.so.1")
    (tmp_path / "usr/bin").mkdir()
    (tmp_path / "usr/bin/nvidia-smi").touch()
    (tmp_path / "dev").mkdir()
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia0"):
        (tmp_path / "dev" / name).touch()
    return tmp_path


def test_the_files_of_a_driver_are_found_under_all_their_names(driver: Path) -> None:
    edits = driver_edits(driver, driver, VERSION)

    folder = "/usr/lib/x86_64-linux-gnu"
    inside = {mount.container_path: mount.host_path for mount in edits.mounts}
    assert inside == {
        f"{folder}/libcuda.so": f"{driver}{folder}/libcuda.so.{VERSION}",
        f"{folder}/libcuda.so.1": f"{driver}{folder}/libcuda.so.{VERSION}",
        f"{folder}/libcuda.so.{VERSION}": f"{driver}{folder}/libcuda.so.{VERSION}",
        f"{folder}/libnvidia-ml.so.1": f"{driver}{folder}/libnvidia-ml.so.{VERSION}",
        f"{folder}/libnvidia-ml.so.{VERSION}": f"{driver}{folder}/libnvidia-ml.so.{VERSION}",
        "/usr/bin/nvidia-smi": f"{driver}/usr/bin/nvidia-smi",
    }
    assert all(mount.options == ("ro", "nosuid", "nodev", "bind") for mount in edits.mounts)
    assert edits.device_nodes == tuple(
        DeviceNode(f"/dev/{name}", f"{driver}/dev/{name}")
        for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
    )


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("dev/nvidiactl", "nvidiactl does not exist"),
        ("dev/nvidia-uvm", "nvidia-uvm does not exist"),
        (f"usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}", f"no libcuda.so.{VERSION}"),
    ],
)
def test_an_incomplete_driver_is_refused_and_may_come_later(
    driver: Path, missing: str, told: str
) -> None:
    (driver / missing).unlink()
    with pytest.raises(HardwareError) as caught:
        driver_edits(driver, driver, VERSION)
    assert told in str(caught.value)
    assert caught.value.retryable


def test_a_driver_without_a_version_is_refused(driver: Path) -> None:
    with pytest.raises(HardwareError, match="does not say its version"):
        driver_edits(driver, driver, None)


def test_edits_are_kept_until_the_driver_changes(driver: Path, tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-ctk"
    tool.touch()
    run = Toolkit(json.dumps(GENERATED).encode())
    common = CommonEdits(driver, driver, toolkit=tool, run=run)

    first = common(real())
    assert common(real()) == first
    assert len(run.calls) == 1
    common(real("590.1"))
    assert len(run.calls) == 2


def test_without_the_toolkit_the_files_are_looked_for(driver: Path, tmp_path: Path) -> None:
    for toolkit in (None, tmp_path / "missing"):
        common = CommonEdits(driver, driver, toolkit=toolkit)
        assert common(real()) == driver_edits(driver, driver, VERSION)


def test_a_failure_is_not_kept(driver: Path) -> None:
    node = driver / "dev/nvidiactl"
    node.unlink()
    common = CommonEdits(driver, driver, toolkit=None)
    with pytest.raises(HardwareError):
        common(real())
    node.touch()
    assert common(real()).device_nodes


def test_in_a_container_files_are_found_below_the_mount_and_named_without_it(driver: Path) -> None:
    root = Path("/")
    edits = CommonEdits(root, root, toolkit=None, host=HostRoot(driver))(real())

    assert {mount.host_path for mount in edits.mounts} == {
        f"/usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}",
        f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{VERSION}",
        "/usr/bin/nvidia-smi",
    }
    assert edits.device_nodes == tuple(
        DeviceNode(f"/dev/{name}") for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
    )


def test_a_containerised_driver_keeps_its_own_root_folder(driver: Path) -> None:
    mount = driver.parent
    own = Path("/") / driver.name
    edits = CommonEdits(own, own, toolkit=None, host=HostRoot(mount))(real())
    assert all(one.host_path.startswith(f"{own}/usr/") for one in edits.mounts)
    assert DeviceNode("/dev/nvidiactl", f"{own}/dev/nvidiactl") in edits.device_nodes


def test_what_the_toolkit_finds_below_the_mount_is_named_without_it(tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-ctk"
    tool.touch()
    seen = json.dumps(GENERATED).replace('"/usr/', f'"{tmp_path}/usr/')
    run = Toolkit(seen.encode())
    root = Path("/")
    edits = CommonEdits(root, root, toolkit=tool, host=HostRoot(tmp_path), run=run)(real())

    assert f"--driver-root={tmp_path}" in run.calls[0]
    assert [one.host_path for one in edits.mounts] == ["/usr/lib64/libcuda.so.580.65.06"]
    assert {one.path for one in edits.hooks} == {"/usr/bin/nvidia-cdi-hook"}
