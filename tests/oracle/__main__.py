"""`hack/oracle --seed N --seconds S`: compares Dragoon with Kubernetes' own code on random input.

Prints a minimal reproducer of each mismatch; the last line is `compared N, mismatches M`. Exit
status 1 with mismatches. The same seed asks the same questions in the same order.
"""

import argparse
import json
import re
import secrets
import sys
import time
from collections import Counter
from random import Random
from typing import Any

from tests.oracle.comparing import Comparison, UndecidedError, comparisons
from tests.oracle.go_oracle import Oracle, Validators, build, build_validators, missing_go
from tests.oracle.shrinking import shrunk
from tests.property.allocator_devices import Dice

_REPORTED = 10
"""Mismatches that are made small and printed; more are only counted."""


def main() -> int:
    arguments = _arguments()
    if reason := missing_go():
        sys.stderr.write(f"{reason}\n")
        return 3
    oracle, validators = Oracle(build()), Validators(build_validators())
    try:
        return run(comparisons(oracle, validators), arguments.seed, arguments.seconds)
    finally:
        oracle.close()
        validators.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hack/oracle", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--seed", type=int, default=secrets.randbelow(10**9), help="default: random"
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    return parser.parse_args()


def run(kinds: list[Comparison], seed: int, seconds: float) -> int:
    """Asks random questions for so many seconds and reports; the exit status."""
    _say(f"seed {seed}")
    compared: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    mismatches = number = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        number += 1
        dice = Dice(Random(f"{seed}/{number}"))  # noqa: S311 - reproducible, nothing secret
        kind = dice.one(kinds)
        question = kind.draw(dice)
        try:
            said = kind.difference(question)
        except UndecidedError as why:
            skipped[str(why)] += 1
            continue
        compared[kind.name] += 1
        if said:
            mismatches += 1
            if mismatches <= _REPORTED:
                _report(kind, number, question, said)
    _say(f"by kind: {dict(compared)}")
    for reason, times in skipped.most_common():
        _say(f"not compared: {times} x {reason}")
    _say(f"compared {compared.total()}, mismatches {mismatches}")
    return 1 if mismatches else 0


def _report(kind: Comparison, number: int, question: dict[str, Any], said: str) -> None:
    def shows(smaller: dict[str, Any]) -> bool:
        try:
            return _gist(kind.difference(smaller)) == _gist(said)
        except (UndecidedError, LookupError, TypeError, AttributeError, RuntimeError):
            return False

    small = shrunk(question, shows)
    _say(f"mismatch in question {number}, {kind.name}: {kind.difference(small)}")
    _say(json.dumps({"kind": kind.name, "question": small}))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _gist(said: str) -> str:
    """A difference without what is particular to one question."""
    return re.sub(r"[(\[{].*?[)\]}]|[0-9]+", "", said)


if __name__ == "__main__":
    sys.exit(main())
