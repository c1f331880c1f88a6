"""How a process of ours is told to stop."""

import asyncio
import signal


def stop_signal() -> asyncio.Event:
    """Is set by SIGTERM and SIGINT from now on. Belongs to the running loop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
