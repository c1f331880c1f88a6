"""One question to the API server, from a command that runs and ends."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from dragoon.kube.port import Api

Found = TypeVar("Found")


def ask(kubeconfig: Path | None, question: "Callable[[Api], Awaitable[Found]]") -> Found:
    """Connects, asks, hangs up and answers. Raises what connecting and the question raise."""

    async def run() -> Found:
        # Imported here: half a second, and --help needs none of it.
        from dragoon.kube.connecting import connect  # noqa: PLC0415

        api = await connect(kubeconfig)
        try:
            return await question(api)
        finally:
            await api.close()

    return asyncio.run(run())
