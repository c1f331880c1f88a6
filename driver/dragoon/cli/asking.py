"""How a command reaches the API server, and one question to it, from a command that ends."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from dragoon.cli.given import PATH
from dragoon.errors import ApiUnavailableError

if TYPE_CHECKING:
    from dragoon.kube.client import KubeClient

Found = TypeVar("Found")

kubeconfig_option = click.option(
    "--kubeconfig",
    type=PATH,
    help="How to reach the cluster; as for kubectl without it.",
)
"""The command gets it as `kubeconfig`, None where it was not given."""


def ask(
    kubeconfig: Path | None,
    question: "Callable[[KubeClient], Awaitable[Found]]",
    seconds: float | None = None,
) -> Found:
    """Connects, asks, hangs up and answers. Raises what connecting and the question raise.

    seconds: for a login, and for the answers; then ApiUnavailableError. None where stopping halfway
    would be worse: then only the login has a limit.
    """

    async def run() -> Found:
        # Imported here: half a second, and --help needs none of it.
        from dragoon.kube.connecting import LOGIN_SECONDS, connect  # noqa: PLC0415

        api = await connect(kubeconfig, patience=seconds or LOGIN_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                return await question(api)
        except TimeoutError:
            raise ApiUnavailableError(
                f"no answer from {api.server} within {seconds:g} s",
                hint="a large cluster takes longer: give more by --timeout",
            ) from None
        finally:
            await api.close()

    return asyncio.run(run())
