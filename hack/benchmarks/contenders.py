"""The two node processes that are compared: Dragoon's plugin and the minimal Go driver."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

MINIMAL = Path(__file__).resolve().parent / "minimal"


class Contender:
    """One driver process with a kubelet root and a CDI folder of its own."""

    def __init__(
        self, name: str, driver: str, root: Path, command: list[str], read_api: "ReadApi"
    ) -> None:
        self.name = name
        self.driver = driver
        self.kubelet_root = root
        self.cdi = root / "cdi"
        self._command = command
        self._read_api = read_api
        self._out = root / "out"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.cdi.mkdir(parents=True, exist_ok=True)
        (self.kubelet_root / "plugins_registry").mkdir(exist_ok=True)
        with self._out.open("ab") as out:
            self._process = subprocess.Popen(
                self._command, stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=30)
            self._process = None

    def memory_mib(self) -> tuple[float, float]:
        """Resident memory, and the part of it that is anonymous."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        rss, anonymous = (int(fields[key].split()[0]) / 1024 for key in ("VmRSS", "RssAnon"))
        return rss, anonymous

    def api_seconds(self) -> list[float]:
        """How long each GET of a claim has taken, as the process tells it."""
        return list(self._read_api(self._out.read_text().splitlines()))


ReadApi = Callable[[list[str]], Iterator[float]]


def dragoon(driver: str, node: str, kubeconfig: Path, root: Path) -> Contender:
    """`dragoon plugin` on a simulated DGX H100."""
    command = [
        *(sys.executable, "-m", "dragoon", "plugin"),
        *("--driver-name", driver),
        *("--node-name", node),
        *("--kubeconfig", str(kubeconfig)),
        *("--kubelet-root", str(root)),
        *("--cdi-root", str(root / "cdi")),
        *("--simulate", "dgx-h100"),
        *("--simulate-state", str(root / "gpus.json")),
        *("--listen", "127.0.0.1:0"),
        *("--log-format", "json"),
    ]
    return Contender("Dragoon", driver, root, command, _dragoon_api)


def minimal(driver: str, node: str, kubeconfig: Path, root: Path) -> Contender:
    """The Go driver, built if Go's own cache has it not."""
    binary = root / "minimal"
    subprocess.run(["go", "build", "-o", binary, "."], cwd=MINIMAL, check=True)
    command = [
        str(binary),
        f"-driver={driver}",
        f"-node={node}",
        f"-kubeconfig={kubeconfig}",
        f"-kubelet-root={root}",
        f"-cdi={root / 'cdi'}",
    ]
    return Contender("minimal Go", driver, root, command, _minimal_api)


def _dragoon_api(lines: list[str]) -> Iterator[float]:
    for line in lines:
        entry = json.loads(line) if line.startswith("{") else {}
        if entry.get("event") == "prepared" and "api_s" in entry:
            yield entry["api_s"]


def _minimal_api(lines: list[str]) -> Iterator[float]:
    for line in lines:
        if line.startswith('{"api_s"'):
            yield json.loads(line)["api_s"]
