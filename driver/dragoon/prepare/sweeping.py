"""What neither a file of ours nor a claim tells of, looked for every minute on the hardware itself.

- A GPU instance without a compute instance that no claim has: nobody can use its memory slices, and
  it does not say who left it. It is reported, once, for an administrator's are never touched.
- A driver that was replaced while claims are prepared: its old files are gone, and a container that
  restarts would fail on them. So the CDI specs that name them are written anew.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from dragoon.errors import DragoonError
from dragoon.gpu.mig import MigInstance
from dragoon.gpu.model import Gpu, Inventory
from dragoon.prepare import cdi, cdi_check
from dragoon.prepare.cdi import Edits
from dragoon.prepare.executing import Executor, claim_key, effect_keys
from dragoon.prepare.host_root import HostRoot
from dragoon.prepare.journal import Contents, Entry
from dragoon.prepare.observing import Complaints, Observer, Repaired
from dragoon.prepare.steps import CdiFile, Step


class HardwareSweep:
    """common: what every container with a real GPU needs now. All of it blocks.

    host: where this process sees the files of the node.
    """

    def __init__(
        self,
        executor: Executor,
        common: Callable[[Inventory], Edits],
        host: HostRoot,
        observer: Observer,
    ) -> None:
        self._executor = executor
        self._common = common
        self._host = host
        self._observer = observer
        self._complaints = Complaints(observer)

    def look(self, inventory: Inventory) -> None:
        """Reports and repairs. Raises StateError where the journal cannot be read.

        A card that does not answer hides what is left on it alone; whoever looks at the hardware
        tells about it.
        """
        divided = [gpu for gpu in inventory.gpus if gpu.mig is not None and gpu.mig.enabled]
        halves: list[MigInstance] = []
        for gpu in divided:
            with contextlib.suppress(DragoonError):
                halves += self._halves(gpu)
        problems = {"": _about(halves)} if halves else {}
        for entry in () if inventory.simulated else self._stale():
            try:
                self._renew(entry, renewed(entry, self._common(inventory)))
            except DragoonError as error:
                problems[entry.uid] = (
                    f"files of the driver that its CDI spec names are gone, so its containers cannot "
                    f"restart, and the spec cannot be renewed: {error}"
                )
        self._complaints.are(problems)

    def _halves(self, gpu: Gpu) -> tuple[MigInstance, ...]:
        executor = self._executor
        with executor.locked([f"gpu/{gpu.address}"]):
            contents = executor.journal.contents()
            return unowned_halves(executor.effects.mig.instances(gpu.address), contents)

    def _stale(self) -> list[Entry]:
        """The entries of containers whose driver files are not all there."""
        boot_id = self._executor.effects.boot_id()
        entries = self._executor.journal.contents().entries
        return [one for one in entries if one.answered_in(boot_id) and self._is_stale(one)]

    def _renew(self, entry: Entry, fresh: Entry) -> None:
        executor = self._executor
        with executor.locked([claim_key(entry.uid)]), executor.locked(effect_keys(entry)):
            if executor.own(entry.uid) == entry != fresh:
                executor.restore(executor.journal.complete(fresh))
                what = "files of the driver were replaced: its CDI spec names the new ones"
                self._observer(Repaired(entry.uid, what))

    def _is_stale(self, entry: Entry) -> bool:
        paths = {Path(mount.host_path) for mount in _shared_mounts(entry.steps)}
        return not all(self._executor.effects.exists(self._host.here(path)) for path in paths)


def unowned_halves(instances: Iterable[MigInstance], contents: Contents) -> tuple[MigInstance, ...]:
    """Instances without a compute instance, where no claim has begun one. Pure.

    None while an entry cannot be read, which may be of any of them.
    """
    if contents.unreadable:
        return ()
    begun = {
        (held.address, held.mig.start)
        for entry in contents.held
        for held in entry.devices
        if held.mig is not None
    }
    return tuple(
        one
        for one in instances
        if not one.compute and (str(one.parent), one.placement.start) not in begun
    )


def renewed(entry: Entry, common: Edits) -> Entry:
    """The entry with what every container needs as it is now. Raises CdiError. Pure."""

    def fresh(step: Step) -> Step:
        if not isinstance(step, CdiFile):
            return step
        spec = cdi.claim_spec(step.spec.kind, step.spec.devices, common)
        cdi_check.check(spec)
        return CdiFile(spec)

    return msgspec.structs.replace(entry, steps=tuple(map(fresh, entry.steps)))


def _shared_mounts(steps: Iterable[Step]) -> Iterator[cdi.Mount]:
    for step in steps:
        if isinstance(step, CdiFile):
            yield from step.spec.container_edits.mounts


def _about(halves: Iterable[MigInstance]) -> str:
    listed = ", ".join(f"{half} of GPU {half.parent}" for half in halves)
    return (
        f"no claim has {listed}, and nobody can use its memory: remove it with "
        "`nvidia-smi mig --destroy-gpu-instance` if no administrator needs it"
    )
