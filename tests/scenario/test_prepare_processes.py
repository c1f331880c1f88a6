"""Real plugin processes on a real file system: killed between any two effects, and side by side."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from dragoon.errors import DeviceBusyError, StateError
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.injection import inject
from tests.scenario.prepare_child import engine_on, ref

ROOT = Path(__file__).parents[2]
# What one prepare and one unprepare of one GPU do, in order.
EFFECTS = (
    "write .0a-one.json.tmp",
    "sync .0a-one.json.tmp",
    "rename 0a-one.json",
    "sync folder journal",
    "write .0a-one_gpu-0000-10-00-0.json.tmp",
    "rename 0a-one_gpu-0000-10-00-0.json",
    "write .gpu.dragoon.dev-claim-0a-one.json.tmp",
    "rename gpu.dragoon.dev-claim-0a-one.json",
    "write .0a-one.json.tmp",
    "sync .0a-one.json.tmp",
    "rename 0a-one.json",
    "remove gpu.dragoon.dev-claim-0a-one.json",
    "remove 0a-one_gpu-0000-10-00-0.json",
    "remove 0a-one.json",
    "done",
)


@contextmanager
def child(root: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.scenario.prepare_child", str(root), "one"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'driver'}{os.pathsep}{ROOT}"},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def step_to(process: subprocess.Popen[str], number: int) -> str:
    """Lets so many effects happen; returns which one is next."""
    for _ in range(number):
        pipe(process.stdout).readline()
        let_go(process)
    return pipe(process.stdout).readline().strip()


def let_go(process: subprocess.Popen[str]) -> None:
    pipe(process.stdin).write("\n")
    pipe(process.stdin).flush()


def pipe(found: IO[str] | None) -> IO[str]:
    assert found is not None
    return found


def files(root: Path) -> set[str]:
    return {path.name for path in root.rglob("*") if path.is_file()} - {"effects.lock"}


def test_each_effect_is_journaled_before_it_happens(tmp_path: Path) -> None:
    with child(tmp_path) as process:
        seen = [step_to(process, 0)]
        while seen[-1] != "done":
            let_go(process)
            seen.append(step_to(process, 0))
    assert tuple(seen) == EFFECTS


@pytest.mark.parametrize("number", range(0, len(EFFECTS), 2))
async def test_a_process_killed_before_any_effect_leaves_what_a_new_one_continues(
    tmp_path: Path, number: int
) -> None:
    with child(tmp_path) as process:
        assert step_to(process, number) == EFFECTS[number]
        process.kill()
        process.wait()

    engine = engine_on(tmp_path, HostEffects())
    await engine.start()
    assert not any(name.endswith(".tmp") for name in files(tmp_path))
    answer = await engine.prepare(ref("one"))
    documents = [path.read_bytes() for path in (tmp_path / "cdi").iterdir()]
    got = inject(documents, [cdi_id for one in answer for cdi_id in one.cdi_ids])
    assert len(got.mounts) == 1
    with pytest.raises(DeviceBusyError):
        await engine.prepare(ref("two"))

    await engine.unprepare(ref("one"))
    assert files(tmp_path) == set()
    assert await engine.prepare(ref("two"))


async def test_point_12_two_processes_never_work_on_one_gpu_at_once(tmp_path: Path) -> None:
    engine = engine_on(tmp_path, HostEffects(), lock_s=0.05)
    await engine.start()
    with child(tmp_path) as process:
        step_to(process, EFFECTS.index("sync folder journal"))

        with pytest.raises(StateError, match=r"cannot lock gpu/0000:10:00\.0"):
            await engine.prepare(ref("two"))

        process.kill()
        process.wait()

    with pytest.raises(DeviceBusyError, match="team-a/one"):
        await engine.prepare(ref("two"))
    await engine.unprepare(ref("one"))
    assert await engine.prepare(ref("two"))
