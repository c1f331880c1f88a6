"""How a command reaches the API server, and one question to it, from a command that ends."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from dragoon.kube.port import Api

Found = TypeVar("Found")

kubeconfig_option = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="How to reach the cluster; as for kubectl without it.",
)
"""The command gets it as `kubeconfig`, None where it was not given."""


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
