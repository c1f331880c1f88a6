"""Builds the Go program of this folder and asks it what Kubernetes does.

The binary lies in the user's cache folder, under a name that holds the hash of its sources: the
first run builds it (a minute or two), later runs take it. Without Go the tests are skipped, unless
CI is set: there a missing Go is a failure.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent
_SOURCES = ("*.go", "go.mod", "go.sum")


class Oracle:
    """A running oracle. One question, one answer; not for several threads."""

    def __init__(self, binary: Path) -> None:
        self._process = subprocess.Popen(
            [str(binary)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, op: str, **question: Any) -> dict[str, Any]:
        """The answer to a question; see main.go. Raises RuntimeError for one it cannot read."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **question}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "invalid" in answer:
            raise RuntimeError(answer["invalid"])
        return answer

    def close(self) -> None:
        """Ends the program."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)
        assert self._process.stdout is not None
        self._process.stdout.close()


def missing_go() -> str:
    """Why there can be no oracle here, empty where there can."""
    return "" if shutil.which("go") else "the oracle needs Go, and there is no `go` on the PATH"


def build() -> Path:
    """The oracle's binary, built if this version of it is not there yet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoon"
    cache.mkdir(parents=True, exist_ok=True)
    binary = cache / f"oracle-{_hash()}"
    with (cache / "oracle.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            fresh = binary.with_suffix(".new")
            command = ["go", "build", "-p=1", "-mod=readonly", "-o", str(fresh), "."]
            subprocess.run(command, cwd=SOURCE, check=True, preexec_fn=_be_nice)
            fresh.rename(binary)
    return binary


def _be_nice() -> None:
    os.nice(10)


def _hash() -> str:
    files = sorted(path for pattern in _SOURCES for path in SOURCE.glob(pattern))
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
