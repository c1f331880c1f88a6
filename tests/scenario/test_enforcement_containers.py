"""What keeps a container to its share, with a real shell, a real dynamic linker and real files.

A container here is a folder with copies of what CDI would mount. What of it needs a container
runtime is played in tests/e2e.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoon.gpu.port import FixedGpus
from dragoon.prepare.cdi import Hook
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.choosing import Enforcement
from dragoon.prepare.enforcement.hami import Hami
from dragoon.prepare.enforcement.hami_steps import region_file
from dragoon.prepare.enforcement.hooks import LIBRARY, PRELOAD, REGION
from dragoon.prepare.injection import Injected, inject
from tests.scenario.enforcement_bench import STAND_IN, compiled
from tests.unit.prepare.scene import Scene, gpu, settings
from tests.unit.prepare.sharing import GIB, cards, pod_with_claims, share

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")


class Container:
    """A root file system, and what a runtime does with it."""

    def __init__(self, folder: Path, got: Injected) -> None:
        self.bundle = folder
        self.root = folder / "rootfs"
        self.got = got
        self.root.mkdir(parents=True)
        for mount in got.mounts:
            self.put(Path(mount.host_path), mount.container_path)

    def put(self, source: Path, where: str) -> None:
        target = self.at(where)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
            target.chmod(source.stat().st_mode)
        else:
            shutil.copy(source, target)

    def at(self, where: str) -> Path:
        return self.root / where.lstrip("/")

    def hook(self, name: str) -> Hook:
        (found,) = (hook for hook in self.got.hooks if hook.hook_name == name)
        return found

    def create(self, state: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs the createContainer hook as the runtime does: on the host, the state on stdin."""
        hook = self.hook("createContainer")
        if state is None:
            state = json.dumps({"ociVersion": "1.2.0", "id": "x", "bundle": str(self.bundle)})
        return subprocess.run(
            hook.args,
            executable=hook.path,
            input=state,
            env=dict(entry.split("=", 1) for entry in hook.env),
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def add_program(self, program: str) -> None:
        """Copies a program of this machine with its libraries, and so its loader."""
        path = shutil.which(program)
        assert path
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        libraries = [word for word in listed.split() if word.startswith("/")]
        for one in {path, *libraries}:
            target = self.at(one)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(one, target)

    def run(self, *command: str, env: dict[str, str] | None = None, user: int = 0) -> str:
        """Runs a program inside, and returns what it wrote to standard error."""
        done = subprocess.run(
            ("chroot", f"--userspec={user}:{user}", str(self.root), *command),
            env=env or {},
            executable=shutil.which("chroot"),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return f"{done.returncode} {done.stderr}"


@pytest.fixture
async def container(tmp_path: Path) -> Container:
    """A container with a share of 4 GiB and 25 per cent, prepared by a real engine on real files."""
    library = compiled(STAND_IN, tmp_path / "libvgpu.so")
    scene = Scene(root=tmp_path, gpus=FixedGpus(cards(1)))
    paths = settings(tmp_path).paths
    checksum = hashlib.sha256(library.read_bytes()).hexdigest()
    scene.enforcement = Enforcement((Hami(paths, library, checksum),))
    assert scene.enforcement.probe(scene.gpus.found).unavailable == {}
    engine = await scene.started(HostEffects())
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi", cores="25")]})
    answer = await engine.prepare(refs["a"])
    on_node = region_file(paths, pod["metadata"]["uid"], "main")
    assert on_node.stat().st_mode & 0o777 == 0o666
    assert on_node.parent.stat().st_mode & 0o7777 == 0o1777
    (usage,) = region.read(on_node.read_bytes())
    assert (usage.uuid, usage.limit, usage.cores) == (gpu(0).uuid, 4 * GIB, 25)
    documents = [path.read_bytes() for path in paths.cdi_folder.iterdir()]
    got = inject(documents, [cdi_id for one in answer for cdi_id in one.cdi_ids])
    return Container(tmp_path / "bundle", got)


def add_loader(container: Container) -> None:
    loader = container.at(container.hook("startContainer").path)
    loader.parent.mkdir(parents=True, exist_ok=True)
    loader.touch()


def test_a_container_with_all_its_parts_starts(container: Container) -> None:
    add_loader(container)
    done = container.create()
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "state",
    [
        '{{"ociVersion": "1.2.0",\n  "bundle": "{bundle}",\n  "annotations": {{"a": "b"}}\n}}\n',
        '{{"bundle":"{bundle}","id":"x"}}',
    ],
)
def test_the_state_is_understood_however_the_runtime_writes_it(
    container: Container, state: str
) -> None:
    add_loader(container)
    done = container.create(state.format(bundle=container.bundle))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_loader_behind_an_absolute_link_of_the_image_counts(container: Container) -> None:
    loader = container.at(container.hook("startContainer").path)
    loader.parent.mkdir(parents=True)
    loader.symlink_to("/lib/nowhere/ld.so")
    assert container.create().returncode == 0


BREAKS: dict[str, tuple[Callable[[Container], object], str]] = {
    "library": (lambda c: c.at(LIBRARY).unlink(), f"limits is missing: {LIBRARY}"),
    "empty library": (lambda c: c.at(LIBRARY).write_bytes(b""), "limits is missing"),
    "region": (lambda c: c.at(REGION).unlink(), f"limits is missing: {REGION}"),
    "preload": (lambda c: c.at(PRELOAD).unlink(), "nothing would load the library"),
    "other preload": (
        lambda c: c.at(PRELOAD).write_text("/lib/other.so\n"),
        "does not name the library",
    ),
    "no loader": (
        lambda c: c.at(c.hook("startContainer").path).unlink(),
        "no glibc loader in this image",
    ),
}


@pytest.mark.parametrize("part", BREAKS)
def test_a_container_without_one_of_its_parts_does_not_start_and_says_why(
    container: Container, part: str
) -> None:
    add_loader(container)
    harm, told = BREAKS[part]
    harm(container)
    done = container.create()
    assert done.returncode == 1
    assert done.stderr.startswith("dragoon: ")
    assert told in done.stderr


@pytest.mark.parametrize("key", ["io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid"])
def test_a_container_of_another_pod_on_the_same_claim_does_not_start(
    container: Container, key: str
) -> None:
    add_loader(container)
    own = container.hook("createContainer").args[-1]
    state = {"bundle": str(container.bundle), "annotations": {"a": "b", key: own}}
    assert container.create(json.dumps(state)).returncode == 0
    state["annotations"] = {key: "6f1d3a52-6d0e-4d43-9f6c-52a1c6a0d5b7"}
    done = container.create(json.dumps(state, separators=(",", ":")))
    assert done.returncode == 1
    assert f"was made for another pod, {own}" in done.stderr


@pytest.mark.parametrize("state", ["", "{}", "not json", '{"bundle":"/nowhere"}'])
def test_a_state_without_a_bundle_does_not_start(container: Container, state: str) -> None:
    add_loader(container)
    assert container.create(state).returncode == 1


@as_root
@pytest.mark.parametrize("user", [0, 1000])
def test_every_process_loads_the_library_and_finds_the_limits(
    container: Container, user: int
) -> None:
    container.add_program("cat")
    program = shutil.which("cat") or ""
    injected = dict(entry.split("=", 1) for entry in container.got.env)
    limits = f"limits {4 * GIB} 25\n"
    assert container.run(program, PRELOAD, env=injected, user=user).endswith(limits)
    lost = container.run(program, PRELOAD, env={"LD_PRELOAD": ""}, user=user)
    assert lost.endswith(limits), "without the environment too"
    raised = injected | {"CUDA_DEVICE_MEMORY_LIMIT_0": "999999m"}
    assert container.run(program, PRELOAD, env=raised, user=user).endswith(limits)


@as_root
def test_the_images_own_loader_accepts_the_library_and_refuses_a_broken_one(
    container: Container,
) -> None:
    container.add_program("cat")
    hook = container.hook("startContainer")
    command = (hook.path, *hook.args[1:])
    assert container.run(*command, user=1000).startswith("0 ")
    container.at(LIBRARY).write_bytes(container.at(LIBRARY).read_bytes()[:200])
    assert not container.run(*command, user=1000).startswith("0 ")
    container.at(LIBRARY).chmod(0o600)
    assert not container.run(*command, user=1000).startswith("0 ")


@as_root
def test_a_process_that_writes_its_usage_is_seen_from_outside(container: Container) -> None:
    inside = container.at(REGION)
    container.add_program("dd")
    program = shutil.which("dd") or ""
    told = container.run(
        program,
        "if=/usr/local/vgpu/libvgpu.so",
        f"of={REGION}",
        "bs=1",
        "count=4",
        "seek=2008896",
        "conv=notrunc",
        user=1000,
    )
    assert told.startswith("0 "), "any user of the container may write it"
    assert inside.stat().st_size == region.BYTES
