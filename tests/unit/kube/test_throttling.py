import pytest

from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLASSES, NODES, PODS
from dragoon.kube.throttling import Throttle, ThrottledApi


class Time:
    """A clock that goes on only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


async def test_a_burst_is_free_and_then_one_comes_after_the_other() -> None:
    time = Time()
    throttle = Throttle(10, 3, clock=time.clock, sleep=time.sleep)
    for _ in range(6):
        await throttle.take()
    assert time.slept == pytest.approx([0.1, 0.1, 0.1])


async def test_who_waits_is_served_in_order_at_the_rate() -> None:
    time = Time()
    waits: list[float] = []

    async def note(seconds: float) -> None:  # The clock stands still: all come at once.
        waits.append(seconds)

    throttle = Throttle(10, 1, clock=time.clock, sleep=note)
    for _ in range(4):
        await throttle.take()
    assert waits == pytest.approx([0.1, 0.2, 0.3])


async def test_a_pause_fills_the_bucket_up_to_the_burst() -> None:
    time = Time()
    throttle = Throttle(10, 2, clock=time.clock, sleep=time.sleep)
    await throttle.take()
    await throttle.take()
    time.now += 100
    for _ in range(3):
        await throttle.take()
    assert time.slept == pytest.approx([0.1])


async def test_writes_wait_and_reads_do_not() -> None:
    time = Time()
    memory = MemoryApi()
    api = ThrottledApi(memory, Throttle(1, 1, clock=time.clock, sleep=time.sleep))
    body = {"metadata": {"name": "n0"}}
    await api.create(NODES, body)
    assert (await api.get(NODES, "n0"))["metadata"]["name"] == "n0"
    assert len((await api.list(NODES)).items) == 1
    assert [len(page.items) async for page in api.pages(CLASSES, size=5)] == [0]
    assert await api.version() == await memory.version()
    assert time.slept == []
    await api.patch(NODES, "n0", {"metadata": {"labels": {"a": "b"}}})
    node = await api.get(NODES, "n0")
    await api.replace(NODES, node)
    await api.delete(NODES, "n0")
    await memory.create(PODS, {"metadata": {"name": "p", "namespace": "d"}, "spec": {}})
    await api.evict("p", namespace="d")
    assert (await api.list(PODS)).items == ()
    assert time.slept == [1.0, 1.0, 1.0, 1.0]
    await api.close()
