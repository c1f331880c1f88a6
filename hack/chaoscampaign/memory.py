"""The campaign on a disk in memory: the same engine, and power cuts that cost a millisecond.

A life of a node is played under a seed: pods come and go, and before any effect the process may
die, the effect may fail, the power may go with some of what was not synced. The checks know only
the disk, the cards and what containers were started with.
"""

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaoscampaign.campaign import Say, Tally
from chaoscampaign.rollback import whole
from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import Tier
from dragoon.api.opaque_config import TimeSlice
from dragoon.errors import CdiError, DragoonError
from dragoon.gpu.model import Inventory
from dragoon.kube.port import CLAIMS, PODS
from dragoon.prepare.effects_memory import Crash, Faults, MemoryDisk, MemoryEffects
from dragoon.prepare.enforcement.hami import region_file
from dragoon.prepare.engine import Engine
from dragoon.prepare.injection import inject
from dragoon.prepare.port import PreparedDevice
from tests.unit.prepare.migging import H100, OFF, PATHS, MigScene
from tests.unit.prepare.scene import gpu, result
from tests.unit.prepare.sharing import (
    CARD,
    asks,
    enforcement,
    install_library,
    pod_with_claims,
    share,
)

_ERRNOS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)
_LONGEST_CALL = 24
"""More effects than any call has, so that some faults meet the next call."""
_CARDS = 4
_REGION_MODE = 0o1777
_Operation = Callable[[], Awaitable[None]]


class Planted(MemoryEffects):
    """Effects with a bug in them: one call of the port is left out."""

    def __init__(self, disk: MemoryDisk, left_out: str) -> None:
        super().__init__(disk)
        if left_out:
            setattr(self, left_out, lambda *_: None)


@dataclass(eq=False)
class Job:
    """A pod with one claim; `answer` and `started_with` are of its running container, if any."""

    kind: str
    cards: frozenset[int]
    claim: ClaimRef
    pod_uid: str
    pod: str
    answer: tuple[PreparedDevice, ...] = ()
    started_with: dict[str, Any] = field(default_factory=dict)
    half: bool = False
    gone: bool = False


class MemoryLife:
    """One node from its start until nothing is left on it."""

    def __init__(self, seed: int, tally: Tally, say: Say, *, left_out: str = "") -> None:
        self._rng = random.Random(seed)  # noqa: S311 - the same faults again, not a secret
        self._seed = seed
        self._tally = tally
        self._say = say
        self._left_out = left_out
        self._scene = MigScene(*(H100,) * _CARDS)
        self._boots = 1
        self._jobs: list[Job] = []
        self._step = ""

    async def play(self, steps: int = 12) -> None:
        """Lives, and ends with everything taken back."""
        await self._furnish()
        await self._start()
        for _ in range(steps):
            await self._rng.choice(self._operations())()
            self._check()
        await self._end()

    def _operations(self) -> tuple[_Operation, ...]:
        return (
            self._prepare, self._prepare, self._prepare, self._prepare, self._unprepare,
            self._unprepare, self._restart, self._power_cut, self._reboot, self._damage,
            self._empty_cdi_folder, self._delete, self._jump, self._break_folder,
        )  # fmt: skip

    async def _furnish(self) -> None:
        scene = self._scene
        cards = tuple(
            gpu(n, mig=OFF, memory_bytes=CARD, compute_capability=(9, 0)) for n in range(_CARDS)
        )
        scene.gpus.found = Inventory(gpus=cards, simulated=True)
        scene.enforcement = enforcement(Tier.CGROUP, Tier.HAMI, Tier.NONE, interval=TimeSlice.LONG)
        install_library(scene)
        big = scene.mig_result("3g.40gb", 4, 1, request="big")
        small = scene.mig_result("1g.10gb", 1, 1, request="small")
        wishes: dict[str, tuple[set[int], list[dict[str, Any]], str]] = {
            "whole": ({0}, [result(0)], ""),
            "pair": ({0, 3}, [result(0, request="a"), result(3, request="b")], ""),
            "mig": ({1}, [big, small], ""),
            "thief": ({1}, [result(1)], ""),
            "hami": ({2}, [share(2, "4Gi", cores="10")], "hami"),
            "cgroup": ({2}, [share(2, "6Gi", share_id="s-2")], "cgroup"),
            "none": ({2}, [share(2, "1Gi", share_id="s-3")], "none"),
        }
        for kind, (numbers, results, tier) in wishes.items():
            config = {"c": [asks(tier)]} if tier else None
            pod, claims = await pod_with_claims(scene, kind, {"c": results}, config=config)
            uid = pod["metadata"]["uid"]
            self._jobs.append(Job(kind, frozenset(numbers), claims["c"], uid, kind))
        self._make_cgroups()

    def _make_cgroups(self) -> None:
        """As the kubelet does, before it asks for devices."""
        for job in self._jobs:
            self._scene.disk.cards.cgroups.add(PATHS.pod_cgroups(job.pod_uid)[2])

    async def _start(self) -> None:
        """A new process; a second one replaces it if it does not come up (the folders fail)."""
        self._effects = Planted(self._scene.disk, self._left_out)
        self._engine: Engine = self._scene.engine(self._effects, wait_s=0.0, ending_s=0.0)
        await self._engine.start()
        await self._engine.reconcile()

    def _arm(self) -> str:
        """Orders a fault for one of the next effects, or none."""
        at = len(self._effects.performed) + self._rng.randrange(_LONGEST_CALL)
        code = self._rng.choice(_ERRNOS)
        kind = self._rng.choice(("nothing", "crash", "crash", "failure", "failure"))
        if kind == "crash":
            self._effects.faults = Faults(crash_at=at)
        elif kind == "failure":
            self._effects.faults = Faults(failures={at: code})
        else:
            self._effects.faults = Faults()
        return f"{kind} {errno.errorcode[code]}" if kind == "failure" else kind

    async def _prepare(self) -> None:
        job = self._pick(lambda job: not job.gone)
        if job is None:
            return
        self._step = f"prepare {job.kind} with {self._arm()}"
        await self._attempt(job, lambda: self._ask(job))

    async def _ask(self, job: Job) -> None:
        answer = await self._engine.prepare(job.claim)
        if job.answer and job.answer != answer:
            self._blame(f"{job.kind}: another answer than before")
        job.half = False
        if not job.answer:
            job.answer = answer
            job.started_with = self._seen_by(job)

    async def _unprepare(self) -> None:
        job = self._pick(lambda job: bool(job.answer) or job.half)
        if job is not None:
            self._step = f"unprepare {job.kind} with {self._arm()}"
            await self._take_back(job)

    async def _take_back(self, job: Job) -> None:
        """The kubelet calls after the containers have ended."""
        job.answer, job.started_with = (), {}
        await self._attempt(job, lambda: self._let_go(job))

    async def _let_go(self, job: Job) -> None:
        await self._engine.unprepare(job.claim)
        job.half = False

    async def _attempt(self, job: Job, call: _Operation) -> None:
        before = len(self._effects.performed)
        armed = self._effects.faults
        try:
            await call()
        except Crash:
            job.half = not job.answer
            self._tally.faults += 1
            await self._die()
        except DragoonError:
            job.half = job.half or not job.answer
        self._tally.faults += any(
            before <= number < len(self._effects.performed) for number in armed.failures
        )
        self._effects.faults = Faults()

    async def _die(self) -> None:
        """The process is gone; sometimes the power with it."""
        if self._rng.random() < 1 / 2:
            await self._power_cut()
        else:
            await self._start()

    async def _restart(self) -> None:
        self._step = "restart"
        self._effects.kill()
        await self._start()

    async def _power_cut(self) -> None:
        luck = self._rng if self._rng.random() < 1 / 2 else None
        self._step += ", power cut with luck" if luck else ", power cut"
        self._tally.faults += 1
        self._effects.kill()
        self._boots += 1
        self._scene.disk.power_cut(f"boot-{self._boots}", wiped=[PATHS.cdi_folder], luck=luck)
        self._blame_all(self._forgotten())
        await self._after_boot()

    def _forgotten(self) -> Iterator[str]:
        """What was answered must be in the journal for ever, and none of its files may be torn.

        Otherwise a claim could be prepared on another card than before, and nobody would notice.
        """
        files = self._scene.disk.files()
        for job in self._jobs:
            data = files.get(PATHS.journal(job.claim.uid))
            if data is None and job.answer:
                yield f"{job.kind}: the journal has forgotten it"
            if data is not None and not whole(data):
                yield f"{job.kind}: its journal entry is torn"

    async def _reboot(self) -> None:
        self._step = "reboot"
        self._tally.faults += 1
        self._effects.kill()
        self._boots += 1
        self._scene.disk.reboot(f"boot-{self._boots}", wiped=[PATHS.cdi_folder])
        await self._after_boot()

    async def _after_boot(self) -> None:
        for job in self._jobs:
            job.half = bool(job.answer) or job.half
            job.answer, job.started_with = (), {}
        self._make_cgroups()
        await self._start()

    async def _damage(self) -> None:
        """A journal file of a running container is torn."""
        job = self._pick(lambda job: bool(job.answer) and not job.gone)
        if job is None:
            return
        self._step = f"journal of {job.kind} damaged"
        self._tally.faults += 1
        torn = self._rng.choice((b"", b"\xff", b'{"checksum": "sha256:00", "en', b"[]"))
        MemoryEffects(self._scene.disk).write(PATHS.journal(job.claim.uid), torn, 0o600)
        await self._engine.reconcile()

    async def _empty_cdi_folder(self) -> None:
        self._step = "CDI folder emptied"
        self._tally.faults += 1
        self._scene.disk.remove_tree(PATHS.cdi_folder)
        await self._engine.reconcile()

    async def _delete(self) -> None:
        """Somebody force-deletes pod and claim; the kubelet calls a little later."""
        job = self._pick(lambda job: not job.gone)
        if job is None:
            return
        self._step = f"{job.kind} force-deleted"
        job.gone = True
        await self._scene.api.delete(PODS, job.pod, namespace=job.claim.namespace)
        await self._scene.api.delete(CLAIMS, job.claim.name, namespace=job.claim.namespace)
        await self._engine.reconcile()

    async def _jump(self) -> None:
        """The clock jumps by ten days, as after a suspend."""
        self._step = "clock jump"
        self._tally.faults += 1
        self._scene.clock.advance(864_000)
        await self._engine.reconcile()

    async def _break_folder(self) -> None:
        """No effect works for a while: a full disk, or one that is mounted read-only."""
        self._step = "no effect works"
        self._tally.faults += 1
        self._effects.faults = Faults(every=self._rng.choice(_ERRNOS))
        await self._engine.reconcile()
        for job in self._jobs:
            if not job.gone and not job.answer:
                await self._attempt(job, lambda job=job: self._ask(job))  # type: ignore[misc]
                break
        self._effects.faults = Faults()
        await self._engine.reconcile()

    async def _end(self) -> None:
        """Everybody leaves, and nothing may be left."""
        self._effects.faults = Faults()
        self._step += ", the end"
        for job in self._jobs:
            await self._take_back(job)
            if job.half:
                self._blame(f"{job.kind}: cannot be taken back")
        await self._engine.reconcile()
        self._check()

    def _check(self) -> None:
        live = [job for job in self._jobs if job.answer]
        for job in live:
            now = self._seen_by(job)
            for what, before in job.started_with.items():
                if now.get(what) != before:
                    self._blame(f"{job.kind}: {what} is not what its container was started with")
            folder = PATHS.region(job.pod_uid, "main")
            if job.kind == "hami" and self._scene.disk.mode(folder) != _REGION_MODE:
                self._blame(f"{job.kind}: only root can use its region")
        self._blame_all(self._given_twice(live))
        if not any(job.half for job in self._jobs):
            self._blame_all(self._left_over(live))

    def _given_twice(self, live: Collection[Job]) -> Iterator[str]:
        alone = [job for job in live if job.kind not in {"hami", "cgroup", "none"}]
        for number, job in enumerate(alone):
            for other in alone[number + 1 :]:
                if job.cards & other.cards:
                    yield f"{job.kind} and {other.kind} have the same card"

    def _left_over(self, live: Collection[Job]) -> Iterator[str]:
        uids = {job.claim.uid for job in live}
        pods = {job.pod_uid for job in live}
        for path in self._scene.disk.files():
            if path.is_relative_to(self._scene.root) and path != PATHS.lock:
                inside = path.relative_to(PATHS.region_folder) if self._is_region(path) else None
                owners = pods if inside else uids
                if not any(owner in str(path) for owner in owners) and not self._is_old(path):
                    yield f"{path} is left over"
        for number in range(_CARDS):
            there = list(self._scene.card(number).instances)
            wanted = 2 if any(job.kind == "mig" and number in job.cards for job in live) else 0
            if len(there) != wanted or not all(one.is_whole for one in there):
                yield f"card {number}: {there} with {wanted} wanted"
            if self._scene.card(number).card.mode.enabled is not bool(wanted):
                yield f"card {number}: MIG mode is wrong"
        cards = self._scene.disk.cards
        kinds = {job.kind for job in live}
        if bool(cards.caps) is not ("cgroup" in kinds):
            yield f"caps: {cards.caps}"
        if bool(cards.time_slices) is not ("none" in kinds):
            yield f"time slices: {cards.time_slices}"

    def _is_old(self, path: Path) -> bool:
        """An entry that a power cut brought back: it holds nothing, and goes with its claim."""
        now = self._scene.disk.boot_id.encode()
        is_entry = path.parent == PATHS.journal_folder and now not in self._scene.disk.files()[path]
        return is_entry and any(j.claim.uid in path.name and not j.gone for j in self._jobs)

    def _is_region(self, path: Path) -> bool:
        return path.is_relative_to(PATHS.region_folder)

    def _seen_by(self, job: Job) -> dict[str, Any]:
        """All that a container of the job was, or would be, started with."""
        files = self._scene.disk.files()
        cards = self._scene.disk.cards
        specs = [data for path, data in files.items() if path.parent == PATHS.cdi_folder]
        spec = files.get(PATHS.spec(job.claim.uid), b"")
        try:
            got: Any = inject(specs, [one for d in job.answer for one in d.cdi_ids])
        except CdiError as error:
            got = str(error)
        return {
            "injection": got,
            "spec": spec,
            "region": files.get(region_file(PATHS, job.pod_uid, "main")),
            "caps": {key: cap for key, cap in cards.caps.items() if job.pod_uid in str(key[1])},
            "time slices": dict(cards.time_slices) if job.kind == "none" else None,
            "instances": {
                one.uuid
                for number in range(_CARDS)
                for one in self._scene.card(number).instances
                if one.uuid and one.uuid.encode() in spec
            },
            "markers": {
                path: data
                for path, data in files.items()
                if path.parent == PATHS.marker_folder and job.claim.uid in path.name
            },
        }

    def _pick(self, fits: Callable[[Job], bool]) -> Job | None:
        found = [job for job in self._jobs if fits(job)]
        return self._rng.choice(found) if found else None

    def _blame_all(self, problems: Iterator[str]) -> None:
        for problem in problems:
            self._blame(problem)

    def _blame(self, problem: str) -> None:
        self._tally.violations += 1
        self._say(f"VIOLATION in life {self._seed} after {self._step!r}: {problem}")


def run(seed: int, faults: int, tally: Tally, say: Say, *, left_out: str = "") -> None:
    """Plays lives until so many faults were met. left_out: a bug that is planted."""
    wanted = tally.faults + faults
    number = 0
    while tally.faults < wanted:
        life = MemoryLife(seed * 1_000_000 + number, tally, say, left_out=left_out)
        asyncio.run(life.play())
        number += 1
    say(f"{number} lives on a disk in memory, {faults} faults")
