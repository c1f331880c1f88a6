"""The two node processes that are compared: Dragoon's plugin and the minimal Go driver."""

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

MINIMAL = Path(__file__).resolve().parent / "minimal"
# A pod's root: a mount namespace of its own, with the account where a pod has it.
_IN_POD = (
    "mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io && "
    'cp -r "$1" /run/secrets/kubernetes.io/serviceaccount && shift && exec "$@"'
)


@dataclass(frozen=True, slots=True)
class Waits:
    """How much longer than here things take, in milliseconds: a GET of a claim, an fsync."""

    api_ms: float = 0.0
    fsync_ms: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.api_ms or self.fsync_ms)


class Contender:
    """One driver process with a kubelet root and a CDI folder of its own."""

    def __init__(
        self,
        name: str,
        driver: str,
        root: Path,
        command: list[str],
        *,
        read_api: "ReadApi",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.driver = driver
        self.kubelet_root = root
        self.cdi = root / "cdi"
        self._command = command
        self._read_api = read_api
        self._environment = {**os.environ, **(environment or {})}
        self._out = root / "out"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.cdi.mkdir(parents=True, exist_ok=True)
        (self.kubelet_root / "plugins_registry").mkdir(exist_ok=True)
        with self._out.open("ab") as out:
            self._process = subprocess.Popen(
                self._command,
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                env=self._environment,
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

    def cpu_seconds(self) -> float:
        """What it has used of the processors so far, in user mode and in the kernel (proc(5))."""
        assert self._process is not None
        stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def api_seconds(self) -> list[float]:
        """How long each GET of a claim has taken, as the process tells it."""
        return list(self._read_api(self.lines()))

    def lines(self) -> list[str]:
        """What the process has written."""
        return self._out.read_text().splitlines()


ReadApi = Callable[[list[str]], Iterator[float]]


def dragoon(
    driver: str,
    node: str,
    kubeconfig: Path,
    root: Path,
    waits: Waits | None = None,
    *,
    more: Mapping[str, str] | None = None,
) -> Contender:
    """`dragoon plugin`, with `more` settings, on a simulated DGX H100, as in a pod."""
    options = {
        "driver_name": driver,
        "node_name": node,
        "kubelet_root": str(root),
        "cdi_root": str(root / "cdi"),
        "simulate": "dgx-h100",
        "simulate_state": str(root / "gpus.json"),
        "listen": "127.0.0.1:0",
        "log_format": "json",
        **(more or {}),
    }
    if waits:
        settings = json.dumps(options)
        process = ["-m", "benchmarks.waiting", str(waits.api_ms), str(waits.fsync_ms), settings]
    else:
        flags = [(f"--{name.replace('_', '-')}", value) for name, value in options.items()]
        process = ["-m", "dragoon", "plugin", *(word for flag in flags for word in flag)]
    account = root / "account"
    command = [
        *("unshare", "--mount", "--propagation", "private"),
        *("sh", "-ec", _IN_POD, "sh", str(account)),
        *(sys.executable, *process),
    ]
    environment = _account(kubeconfig, account)
    return Contender(
        "Dragoon", driver, root, command, read_api=_dragoon_api, environment=environment
    )


def minimal(
    driver: str, node: str, kubeconfig: Path, root: Path, waits: Waits | None = None
) -> Contender:
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
    if waits:
        command += [f"-api-wait={waits.api_ms}ms", f"-fsync-wait={waits.fsync_ms}ms"]
    return Contender("minimal Go", driver, root, command, read_api=_minimal_api)


def _account(kubeconfig: Path, folder: Path) -> dict[str, str]:
    """Lays out what a pod is given of a kubeconfig; answers its environment."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    folder.mkdir(mode=0o700)
    (folder / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    (folder / "token").write_text(user["token"])
    server = urlsplit(cluster["server"])
    return {
        "KUBERNETES_SERVICE_HOST": str(server.hostname),
        "KUBERNETES_SERVICE_PORT": str(server.port),
        "KUBECONFIG": "",
    }


def _dragoon_api(lines: list[str]) -> Iterator[float]:
    for line in lines:
        entry = json.loads(line) if line.startswith("{") else {}
        if entry.get("event") == "prepared" and "api_s" in entry:
            yield entry["api_s"]


def _minimal_api(lines: list[str]) -> Iterator[float]:
    for line in lines:
        if line.startswith('{"api_s"'):
            yield json.loads(line)["api_s"]
