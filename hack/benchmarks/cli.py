"""How long `dragoon --help` takes, as a multiple of a bare interpreter (budget: 12)."""

import argparse
import subprocess
import sys
import time

_BUDGET = 12
_COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "dragoon --help": ["-m", "dragoon", "--help"],
    "dragoon version": ["-m", "dragoon", "version"],
    "dragoon status --help": ["-m", "dragoon", "status", "--help"],
}


def options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--runs", type=int, default=20, help="of each, one after the other")


def run(chosen: argparse.Namespace) -> None:
    """Each in turn, round by round, so that a busy machine is busy for all of them."""
    best = dict.fromkeys(_COMMANDS, float("inf"))
    for _ in range(chosen.runs):
        for name, arguments in _COMMANDS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
            best[name] = min(best[name], time.perf_counter() - start)
    bare = best["python -c pass"]
    for name, seconds in best.items():
        print(f"{name:<24} {seconds * 1000:6.0f} ms  {seconds / bare:5.1f} x")
    ratio = best["dragoon --help"] / bare
    print(f"budget of --help: {_BUDGET} x, {'kept' if ratio <= _BUDGET else 'missed'}")
