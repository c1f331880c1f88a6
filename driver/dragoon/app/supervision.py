"""Parts of a process that run for ever: one that fails is started again, the others go on.

The waits grow (kube.backoff) and start over once a part has run well for a while. Only
cancellation ends a part.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, NoReturn

import structlog

from dragoon.errors import DragoonError
from dragoon.kube.backoff import Backoff
from dragoon.telemetry.logs import about
from dragoon.telemetry.metrics import Metrics

_log = structlog.get_logger(__name__)

HEALTHY_AFTER_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its name in logs and metrics, and what to run. `run` may be called many times."""

    name: str
    run: Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as the supervision sees it; tests give their own."""

    now: Callable[[], float] = lambda: asyncio.get_running_loop().time()
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


def start(
    parts: Iterable[Part], group: asyncio.TaskGroup, metrics: Metrics
) -> list[asyncio.Task[NoReturn]]:
    """Keeps each of them running, as a task of the group."""
    return [group.create_task(keep_running(part, metrics), name=part.name) for part in parts]


async def keep_running(
    part: Part, metrics: Metrics, *, backoff: Backoff | None = None, clock: Clock | None = None
) -> NoReturn:
    """Runs a part for ever; logs and counts each end, expected or not."""
    clock = clock or Clock()
    backoff = backoff or Backoff()
    while True:
        started = clock.now()
        with about(part=part.name):
            await _run_once(part)
        if clock.now() - started >= HEALTHY_AFTER_SECONDS:
            backoff.reset()
        metrics.part_restarted(part.name)
        await clock.sleep(backoff.next())


async def _run_once(part: Part) -> None:
    try:
        await part.run()
    except DragoonError as error:
        _log.warning("part failed and is started again", code=error.code, error=str(error))
    except Exception:  # noqa: BLE001 - a defect costs its own part only
        _log.exception("part failed unexpectedly and is started again")
    else:
        _log.warning("part ended and is started again")
