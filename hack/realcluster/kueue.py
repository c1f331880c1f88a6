"""Kueue beside a running cluster: its own manifests and program, both from its Go module.

Nothing of Kueue is copied: `kubectl kustomize` renders the manifests from Go's module cache,
without the Deployment, and the program runs as one more process of this machine. Its webhooks are
reached through its own Service: the API server asks the endpoints (--enable-aggregator-routing),
which are written here. Its certificates are its own too: where a pod would mount the Secret, its
content is written into a folder.
"""

import base64
import binascii
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from realcluster import builds, processes, versions
from realcluster.apiserver import ApiServer, is_healthy
from realcluster.cluster import Cluster
from realcluster.failure import ClusterError
from realcluster.slots import Slot
from realcluster.state import Process
from realcluster.waiting import wait_for

KUEUE = "kueue"
"""The component's name in the state file."""
NAMESPACE = "kueue-system"

_ACCOUNT = "kueue-controller-manager"
_SERVICE = "kueue-webhook-service"
_SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/kueue-webhook-server-cert"
_MODULE = "sigs.k8s.io/kueue"
_API = "kueue.x-k8s.io/v1beta2"
_CERTIFICATES = ("ca.crt", "tls.crt", "tls.key")


def install(
    cluster: Cluster,
    *,
    feature_gates: str = "",
    device_classes: Sequence[tuple[str, Sequence[str]]] = (),
) -> None:
    """Put Kueue into a cluster, or what is missing of it; return when its webhooks answer.

    One that runs with other feature gates is started anew with these.
    device_classes: resource names of quota, and the DeviceClasses that each counts.
    """
    state = cluster.state
    module = versions.kueue()
    program = builds.build(module) / "kueue"
    folder = Path(state.folder, KUEUE)
    folder.mkdir(exist_ok=True)
    slot = Slot(state.slot)
    overlay = _overlay(folder, _sources(module), state.address, slot.kueue_webhook_port)
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(overlay))
    for kind in ("workloads", "admissionchecks", "resourceflavors"):
        crd = f"crd/{kind}.kueue.x-k8s.io"
        cluster.kubectl("wait", "--for=condition=Established", "--timeout=300s", crd)
    config = folder / "config.json"
    config.write_text(json.dumps(_configuration(folder, slot, device_classes), indent=2) + "\n")
    kubeconfig = cluster.account_kubeconfig(_ACCOUNT, folder / "kubeconfig", namespace=NAMESPACE)
    command = [str(program), f"--config={config}", f"--kubeconfig={kubeconfig}"]
    # The visibility server is an API of its own, which nobody here asks.
    command.append(f"--feature-gates={','.join(filter(None, (_GATES, feature_gates)))}")
    log = Path(state.folder, "logs", f"{KUEUE}.log")
    processes.record(cluster.state_file, KUEUE, Process(command, str(log)))
    cluster.start(KUEUE)
    _wait(cluster, slot, _serving(folder))


_GATES = "VisibilityOnDemand=false"


def _sources(module: versions.Module) -> Path:
    """The folder of Kueue's module in Go's cache."""
    wanted = f"{_MODULE}@v{module.version}"
    done = subprocess.run(
        ["go", "mod", "download", "-json", wanted],
        cwd=module.folder,
        env={**os.environ, "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ClusterError(f"go mod download {wanted} failed: {done.stderr or done.stdout}")
    return Path(json.loads(done.stdout)["Dir"])


def _overlay(folder: Path, sources: Path, address: str, port: int) -> Path:
    """A kustomization on top of Kueue's own: without what only makes sense in a pod."""
    manifests = folder / "manifests"
    manifests.mkdir(exist_ok=True)
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": _SERVICE,
            "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": _SERVICE},
        },
        "addressType": "IPv4",
        "ports": [{"port": port, "protocol": "TCP", "name": ""}],
        "endpoints": [{"addresses": [address]}],
    }
    services = ("kueue-controller-manager-metrics-service", "kueue-visibility-server")
    unwanted = [{"kind": kind} for kind in ("Deployment", "APIService", "ConfigMap")]
    unwanted += [{"kind": "Service", "name": name} for name in services]
    kustomization = {
        # Absolute folders are refused.
        "resources": [
            os.path.relpath(sources / "config" / "default", manifests.resolve()),
            "endpoints.yaml",
        ],
        "patches": [
            *({"target": target, "patch": _DELETE} for target in unwanted),
            {
                "target": {"kind": "Service", "name": _SERVICE},
                "patch": json.dumps([{"op": "remove", "path": "/spec/selector"}]),
            },
        ],
    }
    (manifests / "endpoints.yaml").write_text(json.dumps(endpoints))
    (manifests / "kustomization.yaml").write_text(json.dumps(kustomization, indent=2))
    return manifests


_DELETE = json.dumps(
    {"$patch": "delete", "apiVersion": "v1", "kind": "Any", "metadata": {"name": "any"}}
)
"""The target says what is deleted."""


def _configuration(
    folder: Path, slot: Slot, device_classes: Sequence[tuple[str, Sequence[str]]]
) -> dict[str, Any]:
    """Kueue's Configuration (config.kueue.x-k8s.io/v1beta2)."""
    mappings = [{"name": name, "deviceClassNames": list(kinds)} for name, kinds in device_classes]
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{slot.kueue_health_port}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": slot.kueue_webhook_port, "certDir": str(_serving(folder))},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": _SERVICE,
            "webhookSecretName": "kueue-webhook-server-cert",
        },
        "integrations": {"frameworks": ["batch/job", "pod"]},
        **({"resources": {"deviceClassMappings": mappings}} if mappings else {}),
    }


def _serving(folder: Path) -> Path:
    return folder / "serving"


def _wait(cluster: Cluster, slot: Slot, serving: Path) -> None:
    """Until it answers; what it writes into its Secret is given to it as a mounted one would be."""
    server = ApiServer(cluster.state)

    def ready() -> bool:
        _mount(server.json(_SECRET), serving)
        return is_healthy(slot.kueue_health_port, tls=False, path="/readyz")

    def died() -> str | None:
        return processes.death_note(cluster.state.processes[KUEUE])

    wait_for("Kueue", ready, give_up=died)
    wait_for("Kueue's webhooks", lambda: _takes_objects(cluster), give_up=died)


def _takes_objects(cluster: Cluster) -> bool:
    """Whether objects pass its webhooks: the API server hears of their certificate a moment later."""
    probe = {"apiVersion": _API, "kind": "ResourceFlavor", "metadata": {"name": "probe"}}
    try:
        cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(probe))
    except ClusterError:
        return False
    return True


def _mount(secret: dict[str, Any] | None, serving: Path) -> None:
    data = (secret or {}).get("data") or {}
    if not all(data.get(name) for name in _CERTIFICATES):
        return
    serving.mkdir(mode=0o700, exist_ok=True)
    for name in _CERTIFICATES:
        try:
            content = base64.b64decode(data[name])
        except binascii.Error as error:
            raise ClusterError(f"{_SECRET}: {name} is not base64: {error}") from error
        path = serving / name
        if not path.exists() or path.read_bytes() != content:
            scratch = path.with_suffix(".new")
            scratch.write_bytes(content)
            scratch.chmod(0o600)
            scratch.replace(path)
