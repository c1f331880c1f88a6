"""A real HAMi-core, where somebody has one: DRAGOON_HAMI_LIBRARY names the file.

Nothing of it is here, so without the variable there is nothing to try.
"""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from dragoon.gpu.port import FixedGpus
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.choosing import Enforcement
from dragoon.prepare.enforcement.hami import Hami
from dragoon.prepare.enforcement.hami_steps import region_file
from dragoon.prepare.enforcement.hooks import PRELOAD, REGION
from dragoon.prepare.injection import inject
from tests.scenario.test_enforcement_containers import Container
from tests.unit.prepare.scene import Scene, settings
from tests.unit.prepare.sharing import GIB, cards, pod_with_claims, share

_VARIABLE = "DRAGOON_HAMI_LIBRARY"

pytestmark = [
    pytest.mark.skipif(_VARIABLE not in os.environ, reason=f"{_VARIABLE} names no library"),
    pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root"),
]


def checksum_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


async def test_the_library_loads_and_keeps_the_limits_of_our_region(tmp_path: Path) -> None:
    library = Path(os.environ[_VARIABLE])
    checksum = checksum_of(library)
    scene = Scene(root=tmp_path, gpus=FixedGpus(cards(1)))
    paths = settings(tmp_path).paths
    scene.enforcement = Enforcement((Hami(paths, library, checksum),))
    assert scene.enforcement.probe(scene.gpus.found).unavailable == {}
    engine = await scene.started(HostEffects())
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi", cores="25")]})
    answer = await engine.prepare(refs["a"])
    documents = [path.read_bytes() for path in paths.cdi_folder.iterdir()]
    got = inject(documents, [cdi_id for one in answer for cdi_id in one.cdi_ids])
    container = Container(tmp_path / "bundle", got)
    container.add_program("cat")
    hook = container.hook("startContainer")

    assert container.run(hook.path, *hook.args[1:]).startswith("0 "), "the loader refuses it"
    env = dict(entry.split("=", 1) for entry in got.env)
    said = container.run(shutil.which("cat") or "", PRELOAD, env=env)
    assert said.startswith("0 "), said
    on_node = region_file(paths, pod["metadata"]["uid"], "main")
    for file in (on_node, container.at(REGION)):
        (usage,) = region.read(file.read_bytes())
        assert (usage.limit, usage.cores) == (4 * GIB, 25)
