"""etcd, API server, controller manager and scheduler: how each is started."""

from pathlib import Path

from realcluster.builds import Programs
from realcluster.credentials import CONTROLLER_MANAGER, SCHEDULER, Credentials
from realcluster.layout import Layout
from realcluster.slots import Slot
from realcluster.state import Settings

ETCD = "etcd"
API_SERVER = "kube-apiserver"
MANAGER = "kube-controller-manager"
KUBE_SCHEDULER = "kube-scheduler"


class ControlPlane:
    """The commands of the control plane of one cluster."""

    def __init__(self, layout: Layout, slot: Slot, programs: Programs, settings: Settings) -> None:
        self._layout = layout
        self._slot = slot
        self._programs = programs
        self._settings = settings
        self._credentials = Credentials(layout.credentials)

    def commands(self, address: str, api_url: str) -> dict[str, list[str]]:
        """Component -> command, in the order of starting."""
        return {
            ETCD: self._etcd(),
            API_SERVER: self._api_server(address),
            MANAGER: self._manager(api_url),
            KUBE_SCHEDULER: self._scheduler(api_url),
        }

    def _etcd(self) -> list[str]:
        client = f"http://127.0.0.1:{self._slot.etcd_port}"
        peer = f"http://127.0.0.1:{self._slot.etcd_peer_port}"
        return [
            self._programs.path("etcd"),
            "--name=default",
            f"--data-dir={self._layout.etcd_data}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # The cluster does not outlive a power failure, and need not.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server(self, address: str) -> list[str]:
        files = self._credentials
        command = [
            self._programs.path("kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self._slot.etcd_port}",
            f"--secure-port={self._slot.api_port}",
            f"--advertise-address={address}",
            f"--tls-cert-file={files.server}",
            f"--tls-private-key-file={files.server_key}",
            f"--client-ca-file={files.ca}",
            f"--token-auth-file={files.tokens}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            # There is no kube-proxy: webhooks and aggregated APIs are found by their endpoints.
            "--enable-aggregator-routing=true",
            f"--service-cluster-ip-range={self._slot.services}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={files.account_public}",
            f"--service-account-signing-key-file={files.account_key}",
            f"--kubelet-client-certificate={files.kubelet_client}",
            f"--kubelet-client-key={files.kubelet_client_key}",
            "--kubelet-preferred-address-types=InternalIP",
            *self._feature_gates(),
        ]
        if self._settings.runtime_config:
            command.append(f"--runtime-config={self._settings.runtime_config}")
        return command

    def _manager(self, api_url: str) -> list[str]:
        files = self._credentials
        command = [
            *self._client("kube-controller-manager", CONTROLLER_MANAGER, api_url),
            f"--secure-port={self._slot.controller_manager_port}",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={files.account_key}",
            f"--root-ca-file={files.ca}",
            # Else it makes this folder in the machine's /usr/libexec.
            f"--flex-volume-plugin-dir={self._layout.folder / 'volume-plugins'}",
        ]
        if self._settings.scale:
            # Nodes of a scale run have no kubelet that would renew their leases.
            command.append("--node-monitor-grace-period=24h")
        return command

    def _scheduler(self, api_url: str) -> list[str]:
        port = f"--secure-port={self._slot.scheduler_port}"
        return [*self._client("kube-scheduler", SCHEDULER, api_url), port]

    def _client(self, program: str, user: str, api_url: str) -> list[str]:
        """What controller manager and scheduler have in common."""
        path = self._layout.credentials / f"{program}.kubeconfig"
        self._credentials.kubeconfig(user, api_url, path)
        command = [
            self._programs.path(program),
            f"--kubeconfig={path}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self._serving_folder(program)}",
            "--authentication-skip-lookup=true",
            *self._feature_gates(),
        ]
        if self._settings.scale and not self._settings.default_rates:
            # The defaults (20 to 50 a second) hide everything else in a scale run.
            command += ["--kube-api-qps=1000", "--kube-api-burst=2000"]
        return command

    def _serving_folder(self, program: str) -> Path:
        return self._layout.credentials / f"{program}-serving"

    def _feature_gates(self) -> list[str]:
        gates = self._settings.feature_gates
        return [f"--feature-gates={gates}"] if gates else []
