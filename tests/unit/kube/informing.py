"""What tests of the informer share: a running one, waits that take no time, what was heard."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from dragoon.kube.faults import Call
from dragoon.kube.informer import Informer
from dragoon.kube.memory import MemoryApi
from dragoon.kube.mirror import Change
from dragoon.kube.port import Object

_Kept = TypeVar("_Kept")


def node(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


class Waits:
    """A sleep that takes no time and remembers how long it was asked for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, delay: float) -> None:
        self.seconds.append(delay)
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def running(informer: Informer[_Kept]) -> AsyncIterator[Informer[_Kept]]:
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - any condition, also without an event
            await asyncio.sleep(0)


def watches(api: MemoryApi) -> list[Call]:
    return [call for call in api.faults.calls if call.verb == "watch"]


def seen(changes: list[Change[Object]]) -> list[tuple[str, str]]:
    """(what, name) of every change."""

    def what(change: Change[Object]) -> str:
        if change.old is None:
            return "added"
        return "deleted" if change.new is None else "updated"

    return [(what(change), change.key.name) for change in changes]
