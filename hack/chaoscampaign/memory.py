"""The campaign on a disk in memory: the same engine, and power cuts that cost a millisecond.

A life of a node is played under a seed: pods come and go, and before any effect the process may
die, the effect may fail, the power may go with some of what was not synced.
"""

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable, Iterable

from chaoscampaign.campaign import Say, Tally
from chaoscampaign.memory_node import Job, MemoryNode
from dragoon.errors import DragoonError
from dragoon.kube.port import CLAIMS, PODS
from dragoon.prepare.effects_memory import Crash, Faults, MemoryDisk, MemoryEffects
from dragoon.prepare.engine import Engine
from tests.unit.prepare.migging import PATHS

_ERRNOS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)
_LONGEST_CALL = 24
"""More effects than most calls have, so that some faults meet the next call."""
_Operation = Callable[[], Awaitable[None]]


class Planted(MemoryEffects):
    """Effects with a bug in them: one call of the port is left out."""

    def __init__(self, disk: MemoryDisk, left_out: str) -> None:
        super().__init__(disk)
        if left_out:
            setattr(self, left_out, lambda *_: None)


class MemoryLife:
    """One node from its start until nothing is left on it."""

    def __init__(self, seed: int, tally: Tally, say: Say, *, left_out: str = "") -> None:
        self.node = MemoryNode()
        self.step = ""
        self._rng = random.Random(seed)  # noqa: S311 - the same faults again, not a secret
        self._seed = seed
        self._tally = tally
        self._say = say
        self._left_out = left_out

    async def play(self, steps: int = 12) -> None:
        """Lives, and ends with everything taken back."""
        await self.node.furnish()
        await self._start()
        for _ in range(steps):
            await self._rng.choice(self._operations())()
            self.check()
        await self._end()
        self.check()

    def check(self) -> None:
        """Looks at the node after a step."""
        self._blame(self.node.problems())

    def _operations(self) -> tuple[_Operation, ...]:
        return (
            self._prepare, self._prepare, self._prepare, self._prepare, self._unprepare,
            self._unprepare, self._restart, self._power_cut, self._reboot, self._damage,
            self._empty_cdi_folder, self._delete, self._jump, self._break_folder,
        )  # fmt: skip

    async def _start(self) -> None:
        """A new process, and what it does by itself in its first moments; it may die in them."""
        while True:
            self._effects = Planted(self.node.scene.disk, self._left_out)
            if self._rng.random() < 1 / 4:
                self._effects.faults = Faults(crash_at=self._rng.randrange(_LONGEST_CALL))
            self._engine: Engine = self.node.scene.engine(self._effects, wait_s=0.0, ending_s=0.0)
            try:
                await self._engine.start()
                await self._engine.reconcile()
            except Crash:
                self._tally.faults += 1
                self.step += ", killed while it starts"
            else:
                self._effects.faults = Faults()
                return

    def _arm(self) -> str:
        """Orders a fault for one of the next effects, or none."""
        at = len(self._effects.performed) + self._rng.randrange(_LONGEST_CALL)
        code = self._rng.choice(_ERRNOS)
        kind = self._rng.choice(("nothing", "crash", "crash", "failure", "failure"))
        if kind == "crash":
            self._effects.faults = Faults(crash_at=at)
        elif kind == "failure":
            self._effects.faults = Faults(failures={at: code})
        return f"{kind} {errno.errorcode[code]}" if kind == "failure" else kind

    async def _prepare(self) -> None:
        job = self._pick(lambda job: not job.gone)
        if job is not None:
            self.step = f"prepare {job.kind} with {self._arm()}"
            await self._attempt(job, self._ask)

    async def _ask(self, job: Job) -> None:
        answer = await self._engine.prepare(job.claim)
        if job.answer and job.answer != answer:
            self._blame([f"{job.kind}: another answer than before"])
        job.half = False
        if not job.answer:
            job.answer = answer
            job.started_with = self.node.seen_by(job)

    async def _unprepare(self) -> None:
        job = self._pick(lambda job: bool(job.answer) or job.half)
        if job is not None:
            self.step = f"unprepare {job.kind} with {self._arm()}"
            await self._take_back(job)

    async def _take_back(self, job: Job) -> None:
        """The kubelet calls after the containers have ended."""
        job.end()
        await self._attempt(job, self._let_go)

    async def _let_go(self, job: Job) -> None:
        await self._engine.unprepare(job.claim)
        job.half = False

    async def _attempt(self, job: Job, call: Callable[[Job], Awaitable[None]]) -> None:
        before, armed = len(self._effects.performed), self._effects.faults
        try:
            await call(job)
        except Crash:
            job.half = not job.answer
            self._tally.faults += 1
            await self._die()
        except DragoonError:
            job.half = job.half or not job.answer
        met = range(before, len(self._effects.performed))
        self._tally.faults += any(number in met for number in armed.failures)
        self._effects.faults = Faults()

    async def _die(self) -> None:
        """The process is gone; sometimes the power with it."""
        await (self._power_cut if self._rng.random() < 1 / 2 else self._start)()

    async def _restart(self) -> None:
        self.step = "restart"
        self._effects.kill()
        await self._start()

    async def _power_cut(self) -> None:
        luck = self._rng if self._rng.random() < 1 / 2 else None
        self.step += ", power cut with luck" if luck else ", power cut"
        self._tally.faults += 1
        self._effects.kill()
        wiped = [PATHS.cdi_folder]
        self.node.scene.disk.power_cut(self.node.next_boot(), wiped=wiped, luck=luck)
        self._blame(self.node.forgotten())
        self.node.booted()
        await self._start()

    async def _reboot(self) -> None:
        self._begin("reboot")
        self._effects.kill()
        self.node.scene.disk.reboot(self.node.next_boot(), wiped=[PATHS.cdi_folder])
        self.node.booted()
        await self._start()

    async def _damage(self) -> None:
        """A journal file of a running container is torn."""
        job = self._pick(lambda job: bool(job.answer) and not job.gone)
        if job is not None:
            self._begin(f"journal of {job.kind} damaged")
            torn = self._rng.choice((b"", b"\xff", b'{"checksum": "sha256:00", "en', b"[]"))
            outside = MemoryEffects(self.node.scene.disk)
            outside.write(PATHS.journal(job.claim.uid), torn, 0o600)
            await self._engine.reconcile()

    async def _empty_cdi_folder(self) -> None:
        self._begin("CDI folder emptied")
        self.node.scene.disk.remove_tree(PATHS.cdi_folder)
        await self._engine.reconcile()

    async def _delete(self) -> None:
        """Somebody force-deletes pod and claim; the kubelet calls a little later."""
        job = self._pick(lambda job: not job.gone)
        if job is not None:
            self.step = f"{job.kind} force-deleted"
            job.gone = True
            api, namespace = self.node.scene.api, job.claim.namespace
            await api.delete(PODS, job.pod, namespace=namespace)
            await api.delete(CLAIMS, job.claim.name, namespace=namespace)
            await self._engine.reconcile()

    async def _jump(self) -> None:
        """The clock jumps by ten days, as after a suspend."""
        self._begin("clock jump")
        self.node.scene.clock.advance(864_000)
        await self._engine.reconcile()

    async def _break_folder(self) -> None:
        """No effect works for a while: a full disk, or one that is mounted read-only."""
        self._begin("no effect works")
        self._effects.faults = Faults(every=self._rng.choice(_ERRNOS))
        await self._engine.reconcile()
        job = self._pick(lambda job: not job.gone and not job.answer)
        if job is not None:
            await self._attempt(job, self._ask)
        self._effects.faults = Faults()
        await self._engine.reconcile()

    async def _end(self) -> None:
        """Everybody leaves, and nothing may be left."""
        self._effects.faults = Faults()
        self.step += ", the end"
        for job in self.node.jobs:
            await self._take_back(job)
            if job.half:
                self._blame([f"{job.kind}: cannot be taken back"])
        await self._engine.reconcile()

    def _begin(self, step: str) -> None:
        self.step = step
        self._tally.faults += 1

    def _pick(self, fits: Callable[[Job], bool]) -> Job | None:
        found = [job for job in self.node.jobs if fits(job)]
        return self._rng.choice(found) if found else None

    def _blame(self, problems: Iterable[str]) -> None:
        for problem in problems:
            self._tally.violations += 1
            self._say(f"VIOLATION in life {self._seed} after {self.step!r}: {problem}")


def run(seed: int, faults: int, tally: Tally, say: Say, *, left_out: str = "") -> None:
    """Plays lives until so many faults were met. left_out: a bug that is planted."""
    wanted = tally.faults + faults
    number = 0
    while tally.faults < wanted:
        life = MemoryLife(seed * 1_000_000 + number, tally, say, left_out=left_out)
        asyncio.run(life.play())
        number += 1
    say(f"{number} lives on a disk in memory")
