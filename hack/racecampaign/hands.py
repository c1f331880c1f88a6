"""Two controller processes, each behind a proxy of its own: they die and are started again."""

import asyncio
import random
from pathlib import Path
from typing import Final

from racecampaign.proxy import Moment, Proxy
from testbed.controller import Controller

_NAMES: Final = ("a", "b")
_REST_S: Final = 1.5
_LOOK_S: Final = 0.02
_OPTIONS: Final = ("--scheduler-qps", "1000", "--kube-api-qps", "500", "--kube-api-burst", "1000")


class Hand:
    """One controller and its proxy."""

    def __init__(self, name: str, kubeconfig: Path, folder: Path, rng: random.Random) -> None:
        self.name = name
        self.kills = 0
        self.again = 0
        self._folder = folder
        self._rng = rng
        self._own = folder / f"{name}.kubeconfig"
        self.proxy = Proxy(kubeconfig, rng, self._kill)
        self.process = Controller(self._own, folder, *_OPTIONS, name=name)

    async def start(self) -> None:
        await self.proxy.start(self._own)
        await asyncio.to_thread(self.process.start)

    async def watch_over(self) -> None:
        """Starts it again a while after it has died, until cancelled."""
        while True:
            if not self.process.running:
                await asyncio.sleep(self._rng.uniform(0.0, _REST_S))
                await asyncio.to_thread(self.process.kill)  # reaps it
                await asyncio.to_thread(self.process.start)
            await asyncio.sleep(_LOOK_S)

    async def stop(self) -> None:
        await asyncio.to_thread(self.process.stop)
        await self.proxy.stop()

    def _kill(self) -> None:
        if self.process.running:
            self.kills += 1
            self.process.kill()
        if self.again:
            self.proxy.kill_at(self._rng.randint(1, self.again), self._rng.choice(list(Moment)))


class Hands:
    """Both controllers."""

    def __init__(self, kubeconfig: Path, folder: Path, rng: random.Random) -> None:
        self.each = [Hand(name, kubeconfig, folder, rng) for name in _NAMES]
        self._rng = rng
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        for hand in self.each:
            await hand.start()
            self._tasks.append(asyncio.create_task(hand.watch_over()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for hand in self.each:
            await hand.stop()

    def kill_at(self, write: int, moment: Moment, again: int) -> None:
        """Each dies at that write of its own; with `again` at some of its next so many, too."""
        for hand in self.each:
            hand.again = again
            hand.proxy.kill_at(write, moment)

    def calm(self) -> None:
        """No more deaths and errors."""
        for hand in self.each:
            hand.again = 0
            hand.proxy.disarm()
            hand.proxy.error_rate = 0.0

    def disturb(self, rate: float) -> None:
        """A part of all writes fails."""
        for hand in self.each:
            hand.proxy.error_rate = rate

    @property
    def kills(self) -> int:
        return sum(hand.kills for hand in self.each)

    @property
    def failed(self) -> int:
        return sum(hand.proxy.failed for hand in self.each)
