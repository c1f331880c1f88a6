"""The controller process, and what of Dragoon's own objects it needs in the cluster."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

from dragoon.api.names import DRIVER_NAME
from dragoon.app import permissions
from realcluster.cluster import Cluster
from testbed import plugins
from testbed.plugins import SYSTEM
from testbed.ports import free_port, is_ready
from testbed.waiting import until

_ACCOUNT = "dragoon-controller"
_DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def install(cluster: Cluster) -> None:
    """Namespace, ServiceAccount, RBAC as the code declares it, the Gang CRD, the policies."""
    objects = [
        *plugins.account(_ACCOUNT),
        *permissions.controller_objects(DRIVER_NAME, service_account=_ACCOUNT, namespace=SYSTEM),
    ]
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    for folder in ("crds", "policies"):
        cluster.kubectl("apply", "-f", str(_DEPLOY / folder))
    cluster.kubectl("wait", "--for=condition=Established", "crd/gangs.dragoon.dev")


def account_kubeconfig(cluster: Cluster, folder: Path) -> Path:
    """A kubeconfig with the rights of the controller's ServiceAccount."""
    return cluster.account_kubeconfig(_ACCOUNT, folder / "controller.kubeconfig", namespace=SYSTEM)


class Controller:
    """One controller process; it can be killed and started again."""

    def __init__(self, kubeconfig: Path, folder: Path, *options: str, name: str = "one") -> None:
        self._kubeconfig = kubeconfig
        self.log = folder / f"controller-{name}.log"
        self.seconds_to_ready = 0.0
        self._endpoint = f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None
        self._command = [
            *(sys.executable, "-m", "dragoon", "controller"),
            *("--kubeconfig", str(kubeconfig)),
            *("--listen", self._endpoint),
            *("--pod-namespace", SYSTEM),
            *options,
        ]

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def resident_mib(self) -> int:
        """What the process holds in memory now (VmRSS of proc(5))."""
        assert self._process is not None
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith("VmRSS:"))
        return int(line.split()[1]) // 1024

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=os.environ
            )

    def start_and_wait(self) -> None:
        """Starts, and returns when it leads and has seen the cluster."""
        started = time.monotonic()
        self.start()
        until("the controller is ready", lambda: is_ready(self._endpoint))
        self.seconds_to_ready = time.monotonic() - started

    def kill(self) -> None:
        """SIGKILL, as a crash would be."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self._end(signal.SIGTERM)

    def send(self, what: signal.Signals) -> None:
        """Sends a signal that does not end it."""
        assert self._process is not None
        self._process.send_signal(what)

    def run(self, *command: str) -> str:
        """Runs another command of Dragoon with the same rights, and answers its output."""
        done = subprocess.run(
            [sys.executable, "-m", "dragoon", *command, "--kubeconfig", str(self._kubeconfig)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.wait(timeout=30)
        self._process = None
