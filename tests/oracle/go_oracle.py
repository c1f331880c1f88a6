"""Builds the Go programs of this folder and asks them what Kubernetes does.

The binaries lie in the user's cache folder, under names that hold the hash of their sources: the
first run builds them (minutes), later runs take them. Without Go the tests are skipped, unless CI
is set: there a missing Go is a failure.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_SOURCES = ("*.go", "go.mod", "go.sum")


class GoProgram:
    """A running program that answers one line of JSON with one. Not for several threads."""

    def __init__(self, binary: Path) -> None:
        self._process = subprocess.Popen(
            [str(binary)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """What the program says. Raises EOFError where it ended instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(f"the Go program ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Ends the program."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()


class Oracle(GoProgram):
    """CEL, quantities and allocations, see main.go."""

    def ask(self, op: str, **question: Any) -> dict[str, Any]:
        """The answer to a question. Raises RuntimeError for one it cannot read."""
        answer = self.answer({"op": op, **question})
        if "invalid" in answer:
            raise RuntimeError(answer["invalid"])
        return answer


class Validators(GoProgram):
    """What the API server refuses, see validators/main.go."""

    def refusals(self, kind: str, raw: dict[str, Any]) -> list[str]:
        """Why an API server would not create an object of resource.k8s.io/v1; none if it would."""
        answer = self.answer({"apiVersion": "resource.k8s.io/v1", "kind": kind, **raw})
        if "decode" in answer:
            return [answer["decode"]]
        return [f"{one['field']}: {one['detail']}" for one in answer["errors"]]

    def stored(self, kind: str, raw: dict[str, Any]) -> dict[str, Any]:
        """The object with what the API server fills in; as it is where the server refuses it."""
        answer = self.answer({"apiVersion": "resource.k8s.io/v1", "kind": kind, **raw})
        found: dict[str, Any] = answer.get("stored") or raw
        return found


def missing_go() -> str:
    """Why there can be no oracle here, empty where there can."""
    return "" if shutil.which("go") else "the oracle needs Go, and there is no `go` on the PATH"


def build() -> Path:
    """The oracle's binary, built if this version of it is not there yet."""
    return _built(_HERE, "oracle")


def build_validators() -> Path:
    """The binary with the API server's validation, built if it is not there yet."""
    return _built(_HERE / "validators", "validators")


def _built(source: Path, name: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoon"
    cache.mkdir(parents=True, exist_ok=True)
    binary = cache / f"{name}-{_hash(source)}"
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            fresh = binary.with_suffix(".new")
            command = ["go", "build", "-p=1", "-mod=readonly", "-o", str(fresh), "."]
            subprocess.run(command, cwd=source, check=True, preexec_fn=_be_nice)
            fresh.rename(binary)
    return binary


def _be_nice() -> None:
    os.nice(10)


def _hash(source: Path) -> str:
    files = sorted(path for pattern in _SOURCES for path in source.glob(pattern))
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
