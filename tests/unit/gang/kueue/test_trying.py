import asyncio

from dragoon.gang.kueue.trying import Tries
from dragoon.kube.mirror import Key

KEYS = [Key("team", f"w{number}") for number in range(10)]


class Attempts:
    """Tries that take until they are let go on."""

    def __init__(self) -> None:
        self.go_on = asyncio.Semaphore(0)
        self.began: list[Key] = []
        self.changed = asyncio.Event()
        self.inside = self.most = 0

    async def __call__(self, key: Key) -> float:
        self.began.append(key)
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.changed.set()
        await self.go_on.acquire()
        self.inside -= 1
        return 0.0

    async def until_begun(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.began) < count:
                self.changed.clear()
                await self.changed.wait()


async def end(running: asyncio.Task[None]) -> None:
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_few_at_one_time_in_their_order() -> None:
    attempts = Attempts()
    tries = Tries(attempts, lambda: KEYS, pause=0.0)
    running = asyncio.create_task(tries.run())
    tries.worth_it()
    await attempts.until_begun(4)
    for _ in KEYS:
        attempts.go_on.release()
    await attempts.until_begun(10)
    assert attempts.began == KEYS
    assert attempts.most == 4
    await end(running)


async def test_room_that_comes_up_while_one_is_tried_is_a_reason_to_try_it_again() -> None:
    attempts = Attempts()
    tries = Tries(attempts, lambda: KEYS[:2], pause=0.0)
    running = asyncio.create_task(tries.run())
    tries.worth_it()
    await attempts.until_begun(2)
    tries.worth_it()
    for _ in range(10):
        await asyncio.sleep(0)
    assert attempts.began == KEYS[:2], "not beside itself"
    attempts.go_on.release()
    attempts.go_on.release()
    await attempts.until_begun(4)
    assert sorted(attempts.began[2:]) == KEYS[:2]
    await end(running)
