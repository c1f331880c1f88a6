"""Finding the API server and its credentials.

Order: the given file, $KUBECONFIG, the pod's ServiceAccount, ~/.kube/config. Tokens in files are
read again when they grow old and after a 401: the kubelet rotates them.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dragoon.errors import ConfigError
from dragoon.kube.access import Access, TokenFile, proxy_of_environment, tls_context
from dragoon.kube.client import KubeClient

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
LOGIN_SECONDS: Final = 120.0
"""How long a login may take where nobody says otherwise: a person may have to type."""


async def connect(
    kubeconfig: Path | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
    patience: float = LOGIN_SECONDS,
) -> KubeClient:
    """A client for the API server that is configured here; no call is made yet.

    patience: seconds for a program or an identity provider that a kubeconfig asks for credentials.
    Raises ConfigError, naming the file and what is wrong with it, or every place that was looked
    at; ApiUnavailableError where credentials take longer.
    """
    if kubeconfig is not None:
        return await _from_file(str(kubeconfig), "--kubeconfig", patience)
    listed = environ.get("KUBECONFIG")
    if listed:
        return await _from_file(listed, "$KUBECONFIG", patience)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return KubeClient(_in_cluster(environ, service_account))
    own = Path(environ.get("HOME") or "/") / ".kube" / "config"
    if own.exists():
        return await _from_file(str(own), "~/.kube/config", patience)
    raise ConfigError(
        f"no API server is configured: no --kubeconfig, no $KUBECONFIG, not in a pod, no {own}",
        hint="give a kubeconfig file with --kubeconfig FILE",
    )


async def _from_file(listed: str, origin: str, patience: float) -> KubeClient:
    # Here, for a pod has no such file: the import costs it 18 MiB and half a second.
    from dragoon.kube.kubeconfig import access_from  # noqa: PLC0415

    return KubeClient(await access_from(listed, origin, patience=patience))


def _in_cluster(environ: Mapping[str, str], folder: Path) -> Access:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    authority = folder / "ca.crt"
    if not authority.is_file():
        raise ConfigError(
            f"{authority}: no such file",
            hint="the pod needs a mounted ServiceAccount token (automountServiceAccountToken)",
        )
    token = TokenFile(folder / "token")
    try:
        context = tls_context(authority=str(authority))
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"{folder}: certificates cannot be loaded: {error}") from error
    return Access(
        server,
        tls=context,
        authorization=token.header,
        renew=token.renewed,
        proxy=proxy_of_environment(server),
    )
