"""The loops that keep a node in order, as tests let them run."""

import asyncio
from pathlib import Path

from dragoon.prepare.engine import Engine
from tests.unit.prepare.scene import Scene, settings, until

PATHS = settings(Path("/node")).paths


async def keep_going(scene: Scene, engine: Engine) -> asyncio.Task[None]:
    """Starts the loops of an engine."""
    task = asyncio.create_task(engine.run())
    await until(lambda: scene.clock.sleeping == 2)
    return task


async def a_pass(scene: Scene, seconds: float) -> None:
    """Lets the loops do what is due within that time."""
    scene.clock.advance(seconds)
    await until(lambda: scene.clock.sleeping == 2)
