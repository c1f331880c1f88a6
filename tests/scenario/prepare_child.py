"""A plugin process that does its effects one by one, each after a line on its standard input.

Arguments: the node's root folder, and the name and UID of a claim. Before each effect it prints
what it is about to do, so that a test can kill it at exactly that point.
"""

import asyncio
import sys
from pathlib import Path

from dragoon.api.claims import ClaimRef
from dragoon.gpu.model import Inventory
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, Object, Resource
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.engine import Engine
from tests.unit.prepare.scene import claim_object, inventory, result, settings


class KnownClaims(MemoryApi):
    """An API server on which every claim exists, with the UID in its name, for the first GPU."""

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        if resource != CLAIMS:
            return await super().get(resource, name, namespace=namespace)
        found = claim_object(name, result(0))
        found["metadata"]["uid"] = uid_of(name)
        return found


def uid_of(name: str) -> str:
    return f"0a-{name}"


def ref(name: str) -> ClaimRef:
    return ClaimRef("team-a", name, uid_of(name))


class SteppedEffects(HostEffects):
    """Effects on the real file system, one for each line that comes in once `stepped` is set."""

    stepped = False

    def write(self, path: Path, data: bytes, mode: int) -> None:
        self._step(f"write {path.name}")
        super().write(path, data, mode)

    def sync(self, path: Path) -> None:
        self._step(f"sync {path.name}")
        super().sync(path)

    def rename(self, source: Path, target: Path) -> None:
        self._step(f"rename {target.name}")
        super().rename(source, target)

    def sync_folder(self, path: Path) -> None:
        self._step(f"sync folder {path.name}")
        super().sync_folder(path)

    def remove(self, path: Path) -> None:
        self._step(f"remove {path.name}")
        super().remove(path)

    def _step(self, doing: str) -> None:
        if self.stepped:
            print(doing, flush=True)  # noqa: T201 - what the test waits for
            sys.stdin.readline()


async def _inventory() -> Inventory:
    return inventory()


def engine_on(root: Path, effects: HostEffects, **changes: float) -> Engine:
    return Engine(KnownClaims(), _inventory, effects, settings(root, wait_s=0.0, **changes))


async def main(root: Path, name: str) -> None:
    effects = SteppedEffects()
    engine = engine_on(root, effects)
    await engine.start()
    effects.stepped = True
    await engine.prepare(ref(name))
    await engine.unprepare(ref(name))
    print("done", flush=True)  # noqa: T201 - what the test waits for


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
