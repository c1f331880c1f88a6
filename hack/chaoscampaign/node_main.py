"""Breaks a node at every point between two side effects."""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

from chaoscampaign import memory, points
from chaoscampaign.campaign import Tally
from chaoscampaign.real import RealCampaign


def options(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument("--seed", type=int, default=None, help="the same faults again")
    parser.add_argument("--kills", type=int, default=500, help="kills and faults together")
    parser.add_argument(
        "--real", type=float, default=0.4, help="which part of them a real process meets, 0 to 1"
    )
    parser.add_argument("--record", action="store_true", help="write the number of fault points")


def run(chosen: argparse.Namespace) -> int:
    """The campaign; 1 if anything was violated."""
    seed = chosen.seed if chosen.seed is not None else time.time_ns() % 1_000_000
    print(f"seed {seed}", flush=True)
    tally = Tally()
    # Unix sockets need a short path.
    folder = Path(tempfile.mkdtemp(prefix="dchaos", dir="/tmp"))
    try:
        real = RealCampaign(folder, seed, tally, _say)
        asyncio.run(real.run(round(chosen.kills * chosen.real)))
    finally:
        shutil.rmtree(folder)
    memory.run(seed, chosen.kills - tally.done, tally, _say)
    if chosen.record:
        points.record(real.points)
    for problem in points.fallen(real.points, points.recorded()):
        tally.violations += 1
        _say(f"VIOLATION: {problem}")
    print(tally, flush=True)
    return 1 if tally.violations else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()
