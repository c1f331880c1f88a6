"""The image of hack/image: the same each time, small, and able to run every part of Dragoon."""

import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from imagebuild import command
from imagebuild.application import snapshot
from imagebuild.archive import Image
from imagebuild.building import build
from imagebuild.dockerfile import described
from imagebuild.layers import Store
from realcluster import packages

pytestmark = [pytest.mark.e2e, pytest.mark.alone, pytest.mark.timeout(900)]

_MIB = 1 << 20
_LARGEST = 180 * _MIB
_IMPORT_ALL = """
import importlib, pkgutil, dragoon
names = [one.name for one in pkgutil.walk_packages(dragoon.__path__, "dragoon.")]
names.remove("dragoon.__main__")
for name in names:
    importlib.import_module(name)
print(len(names))
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return snapshot(command.CHECKOUT, tmp_path_factory.mktemp("sources") / "checkout")


@pytest.fixture(scope="module")
def built(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Image]:
    target = tmp_path_factory.mktemp("image") / "image.tar"
    return target, build(sources, target, command.NAME, command.store())


@pytest.fixture(scope="module")
def root(built: tuple[Path, Image], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What a container of the image sees."""
    folder = tmp_path_factory.mktemp("root")
    folder.chmod(0o755)
    for layer in built[1].layers:
        subprocess.run(["tar", "-xf", layer.path, "-C", folder], check=True)
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


def in_image(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command as the image's user, in its environment."""
    image = described((command.CHECKOUT / "Dockerfile").read_text("utf-8"))
    return subprocess.run(
        [packages.find("chroot") or "chroot", f"--userspec={image.user}", root, *arguments],
        env={"PATH": "/usr/bin", **image.environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_built_anew_in_every_part_it_is_the_same(
    sources: Path, built: tuple[Path, Image], tmp_path: Path
) -> None:
    archive, image = built
    again = build(sources, tmp_path / "again.tar", command.NAME, Store(tmp_path / "layers"))
    assert [one.digest for one in again.layers] == [one.digest for one in image.layers]
    assert again.digest == image.digest
    assert (tmp_path / "again.tar").read_bytes() == archive.read_bytes()


def test_it_stays_small(built: tuple[Path, Image]) -> None:
    _, image = built
    assert image.size < _LARGEST, [(one.name, one.size) for one in image.layers]


def test_it_has_no_shell_no_setuid_program_and_nothing_of_this_machine(
    built: tuple[Path, Image],
) -> None:
    _, image = built
    for layer in image.layers:
        with tarfile.open(layer.path) as tar:
            for entry in tar:
                assert not entry.isfile() or not entry.mode & 0o6000, entry.name
                assert Path(entry.name).name not in {"sh", "bash", "dash", "su"}, entry.name
                content = tar.extractfile(entry) if entry.isreg() else None
                if content is not None:
                    assert os.fsencode(command.CHECKOUT) not in content.read(), entry.name


def test_every_module_is_there_with_what_it_imports(root: Path, sources: Path) -> None:
    done = in_image(root, "python", "-c", _IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    ours = list((sources / "driver/dragoon").rglob("*.py"))
    assert int(done.stdout) == len(ours) - 2  # the package itself and __main__ are not walked


def test_its_entrypoint_and_its_command_are_dragoon(root: Path) -> None:
    image = described((command.CHECKOUT / "Dockerfile").read_text("utf-8"))
    by_entry = in_image(root, *image.entrypoint, "version")
    by_name = in_image(root, "dragoon", "version")
    assert by_entry.returncode == by_name.returncode == 0, by_entry.stderr + by_name.stderr
    assert by_entry.stdout == by_name.stdout


def test_it_starts_from_the_bytecode_that_it_brings(root: Path) -> None:
    done = in_image(root, "python", "-v", "-c", "import dragoon.cli.main")
    assert "code object from '/app/dragoon/cli/__pycache__" in done.stderr.replace('"', "'")
    assert done.returncode == 0


def test_scanners_find_which_debian_packages_are_in_it(root: Path) -> None:
    found = {path.name for path in (root / "var/lib/dpkg/status.d").iterdir()}
    assert {"libc6", "libssl3", "python3-minimal"} <= found
    release = dict(
        line.partition("=")[::2] for line in (root / "etc/os-release").read_text().splitlines()
    )
    assert json.loads(f'"{release["ID"]}"') == "debian"
