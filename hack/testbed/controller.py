"""The controller process, and what of Dragoon's own objects it needs in the cluster."""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import yaml

from dragoon.api.names import DRIVER_NAME
from dragoon.app import permissions
from realcluster.cluster import Cluster
from testbed import plugins
from testbed.plugins import SYSTEM
from testbed.process import Process
from testbed.serving import until_served

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
    until_served(cluster, "gangs.dragoon.dev")


def account_kubeconfig(cluster: Cluster, folder: Path) -> Path:
    """A kubeconfig with the rights of the controller's ServiceAccount."""
    return cluster.account_kubeconfig(_ACCOUNT, folder / "controller.kubeconfig", namespace=SYSTEM)


class Controller(Process):
    """One controller process."""

    def __init__(
        self,
        kubeconfig: Path,
        folder: Path,
        *options: str,
        name: str = "one",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._kubeconfig = kubeconfig
        self.seconds_to_ready = 0.0
        super().__init__(
            folder / f"controller-{name}.log",
            "controller",
            *("--kubeconfig", str(kubeconfig)),
            *("--pod-namespace", SYSTEM),
            *options,
            environment=environment,
        )

    @property
    def resident_mib(self) -> int:
        """What the process holds in memory now (VmRSS of proc(5))."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith("VmRSS:"))
        return int(line.split()[1]) // 1024

    def start_and_wait(self) -> None:
        """Starts, and returns when it has seen the cluster and proved the gate of gangs."""
        started = time.monotonic()
        super().start_and_wait()
        self.seconds_to_ready = time.monotonic() - started

    def run(self, *command: str, exit_code: int = 0) -> str:
        """Runs another command of Dragoon with the same rights, and answers its output."""
        done = subprocess.run(
            [sys.executable, "-m", "dragoon", *command, "--kubeconfig", str(self._kubeconfig)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == exit_code, done.stderr
        return done.stdout
