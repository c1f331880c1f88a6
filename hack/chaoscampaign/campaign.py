"""The state of a campaign on one node: who lives there, what was counted, what was found wrong."""

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from chaoscampaign import truth
from chaoscampaign.node import Node
from chaoscampaign.truth import Life
from chaoscampaign.workload import Pod, Wish
from dragoon.errors import KubeletError
from dragoon.kubelet.client import ClaimAnswer
from dragoon.prepare.enforcement.cap_probe import PREFIX
from testbed.waiting import PATIENCE

_POLL_S = 0.005


class Call(StrEnum):
    """The two calls of the kubelet that have effects."""

    PREPARE = "prepare"
    UNPREPARE = "unprepare"


@dataclass
class Tally:
    """What was done and found. A process that was ended by SIGKILL is a kill, all else a fault."""

    kills: int = 0
    faults: int = 0
    violations: int = 0

    @property
    def done(self) -> int:
        """Kills and faults together."""
        return self.kills + self.faults

    def __str__(self) -> str:
        return f"kills {self.kills}, faults {self.faults}, violations {self.violations}"


Say = Callable[[str], None]


class Campaign:
    """One node under attack. Deeds (`deeds`) break it; this mends it and looks."""

    def __init__(self, node: Node, rng: random.Random, tally: Tally, say: Say) -> None:
        self.node = node
        self.rng = rng
        self.tally = tally
        self._say = say
        self.step = ""
        self.lives: dict[str, Life] = {}
        self.here: set[str] = set()

    def begin(self, step: str) -> None:
        """Says what is done next."""
        self.step = step
        self._say(step)

    def blame(self, problems: Iterable[str]) -> None:
        """Counts and says what is wrong."""
        for problem in problems:
            self.tally.violations += 1
            self._say(f"VIOLATION after {self.step!r}: {problem}")

    async def arrive(self, wish: Wish) -> Pod:
        """A pod was scheduled here; the kubelet has made its cgroup."""
        pod = await self.node.scheduler.pod(wish)
        self.node.make_cgroup(pod)
        self.here.add(pod.claim.uid)
        return pod

    async def call(self, call: Call, pod: Pod, *, timeout: float = 45.0) -> ClaimAnswer | None:
        """One call of the kubelet. None where the call as a whole failed.

        A container lives from the answer of its prepare on, and has ended before its unprepare.
        """
        kubelet = self.node.kubelet
        if call is Call.UNPREPARE and self.lives.pop(pod.claim.uid, None) is not None:
            await self.node.scheduler.say(pod, "terminated")
        try:
            work = kubelet.prepare if call is Call.PREPARE else kubelet.unprepare
            answer = await work(pod.claim, timeout=timeout)
        except KubeletError:
            return None
        if call is Call.PREPARE and not answer.error:
            await self._live(pod, answer)
        return answer

    async def must(self, call: Call, pod: Pod) -> None:
        """The same, which has to succeed now."""
        answer = await self.call(call, pod)
        if answer is None:
            self.blame([f"{call} of {pod.name} ({pod.wish.kind}) got no answer"])
        elif answer.error:
            self.blame([f"{call} of {pod.name} ({pod.wish.kind}): {answer.error}"])

    async def host(self, wishes: Iterable[Wish]) -> list[Pod]:
        """Pods that live here while other things happen."""
        pods = [await self.arrive(wish) for wish in wishes]
        for pod in pods:
            await self.must(Call.PREPARE, pod)
        return pods

    async def leave(self, pod: Pod) -> None:
        """The pod ends: unprepared, and then gone from the API."""
        await self.must(Call.UNPREPARE, pod)
        await self.forget(pod)

    async def forget(self, pod: Pod) -> None:
        """Pod, claim and cgroup are gone."""
        self.here.discard(pod.claim.uid)
        await self.node.scheduler.delete(pod)
        self.node.remove_cgroup(pod)

    async def dead(self) -> None:
        """The process was, or is now, ended by SIGKILL, and by nothing else."""
        await self.node.kill()
        if not await self.node.died_of_kill():
            self.blame([f"the plugin ended by itself: {self.node.last_words()}"])
        self.tally.kills += 1

    async def restart(self) -> None:
        """A new process, and what must hold the moment it is there."""
        await self.node.start()
        await self.look()

    async def look(self) -> None:
        """Nothing is given out twice, no container is disturbed, the API has only valid objects."""
        self.blame(truth.given_twice(self.node))
        self.blame(truth.disturbed(self.node, tuple(self.lives.values())))
        self.blame(await truth.invalid_in_api(self.node))

    async def quiet(self) -> None:
        """The same, and nothing is on the node but what its containers need.

        A start tries a cap on a cgroup of its own, and removes what a killed try left.
        """
        probes = self.node.cgroup_root / "kubepods"
        await self.until("the probe of caps ends", lambda: not any(probes.glob(f"{PREFIX}*")))
        await self.until("no file is half written", lambda: not truth.half_written(self.node))
        await self.look()
        self.blame(truth.left_over(self.node, tuple(self.lives.values())))

    def no_strangers(self) -> bool:
        """Whether every journal entry is of a pod that was not deleted."""
        entries = self.node.paths.journal_folder.glob("*.json")
        return all(entry.stem in self.here for entry in entries)

    async def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Waits for what the plugin must do by itself; a violation if it does not."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():  # noqa: ASYNC110 - files are announced by nobody
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            self.blame([f"not within {PATIENCE:g} s: {what}"])

    async def _live(self, pod: Pod, answer: ClaimAnswer) -> None:
        before = self.lives.get(pod.claim.uid)
        if before is not None:
            if before.answer != answer:
                self.blame([f"{pod.name}: another answer than before"])
            return
        life = truth.observed(self.node, pod, answer)
        self.lives[pod.claim.uid] = life
        self.blame(truth.complaints_of_start(life))
        await self.node.scheduler.say(pod, "running")
