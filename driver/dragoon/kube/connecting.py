"""Finding the API server and its credentials: kubeconfig files and the pod's ServiceAccount.

Order: the given file, $KUBECONFIG, the pod's ServiceAccount, ~/.kube/config. Tokens in files are
read again when they grow old and after a 401: the kubelet rotates them.
"""

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.kube_config import load_kube_config

from dragoon.errors import ApiForbiddenError, ConfigError
from dragoon.kube.client import KubeClient

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

# As client-go: the kubelet rotates a token long before it expires.
_TOKEN_AGE_S = 60.0


async def connect(
    kubeconfig: Path | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> KubeClient:
    """A client for the API server that is configured here; no call is made yet.

    Raises ConfigError, naming the file and what is wrong with it, or every place that was looked
    at.
    """
    if kubeconfig is not None:
        return await _from_file(str(kubeconfig), "--kubeconfig")
    listed = environ.get("KUBECONFIG")
    if listed:
        return await _from_file(listed, "$KUBECONFIG")
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(environ, service_account)
    own = Path(environ.get("HOME") or "/") / ".kube" / "config"
    if own.exists():
        return await _from_file(str(own), "~/.kube/config")
    raise ConfigError(
        f"no API server is configured: no --kubeconfig, no $KUBECONFIG, not in a pod, no {own}",
        hint="give a kubeconfig file with --kubeconfig FILE",
    )


class TokenFile:
    """A bearer token that somebody else keeps fresh in a file.

    The file is small and in memory (a projected volume): it is read on the event loop.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._read_at = 0.0
        self._token = ""
        self.renew()

    def header(self) -> str:
        """The value of the Authorization header; read again once a minute."""
        if self._clock() - self._read_at >= _TOKEN_AGE_S:
            self.renew()
        return f"Bearer {self._token}"

    def renew(self) -> None:
        """Reads the file now. Raises ConfigError when that is impossible and no token is known."""
        try:
            found = self._path.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            if not self._token:
                raise ConfigError(f"token file {self._path}: cannot be read: {error}") from error
            return
        if found:
            self._token = found
            self._read_at = self._clock()
        elif not self._token:
            raise ConfigError(f"token file {self._path}: found nothing in it")


def _in_cluster(environ: Mapping[str, str], folder: Path) -> KubeClient:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    configuration = Configuration()
    configuration.host = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    authority = folder / "ca.crt"
    if not authority.is_file():
        raise ConfigError(
            f"{authority}: no such file",
            hint="the pod needs a mounted ServiceAccount token (automountServiceAccountToken)",
        )
    configuration.ssl_ca_cert = str(authority)
    renew = _use_token_file(configuration, TokenFile(folder / "token"))
    return _client(configuration, str(folder), renew)


async def _from_file(listed: str, origin: str) -> KubeClient:
    """A client from one file, or from several joined by the path separator as kubectl does."""
    found = [path for path in map(Path, listed.split(os.pathsep)) if path.exists()]
    if not found:
        raise ConfigError(f"{origin}: {listed}: no such file")
    for path in found:
        _check_kubeconfig(path)
    configuration = Configuration()
    configuration.host = ""
    try:
        loader = await load_kube_config(
            config_file=os.pathsep.join(map(str, found)),
            client_configuration=configuration,
            persist_config=False,
        )
    except (ConfigException, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise ConfigError(f"{origin}: {listed}: {error}") from error
    if not str(configuration.host).startswith(("http://", "https://")):
        raise ConfigError(
            f"{origin}: {listed}: cluster.server: found {configuration.host!r}, allowed is a URL "
            "with http:// or https://"
        )
    renew = _renewal(configuration, loader, found[0])
    return _client(configuration, f"{origin}: {listed}", renew)


def _renewal(
    configuration: Configuration, loader: Any, path: Path
) -> Callable[[], Awaitable[None]] | None:
    """How the user's credentials are renewed; None where they are fixed."""
    user = loader._user.value if loader._user is not None else {}  # noqa: SLF001
    if user.get("tokenFile") and not user.get("token"):
        file = TokenFile(path.parent / user["tokenFile"])
        return _use_token_file(configuration, file)
    if "exec" not in user:
        return None
    if not configuration.api_key and not configuration.cert_file:
        # The loader only logs what went wrong.
        raise ConfigError(
            f"{path}: the exec plugin {user['exec'].get('command')} gave no credentials"
        )

    async def run_again() -> None:
        loader.__dict__.pop("exec_plugin_expiry", None)
        await loader.load_from_exec_plugin()
        if "token" not in loader.__dict__:
            raise ApiForbiddenError("the exec plugin of the kubeconfig gave no token", status=401)
        configuration.api_key["BearerToken"] = loader.token

    return run_again


def _use_token_file(configuration: Configuration, file: TokenFile) -> Callable[[], Awaitable[None]]:
    def refresh(target: Configuration) -> None:
        target.api_key["BearerToken"] = file.header()

    async def renew() -> None:
        file.renew()

    refresh(configuration)
    configuration.refresh_api_key_hook = refresh
    return renew


def _check_kubeconfig(path: Path) -> None:
    """Says in our words what the loader would trip over."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read as YAML: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: found {type(found).__name__}, a kubeconfig is a mapping")
    for field in ("clusters", "contexts", "users"):
        entries = found.get(field) or []
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            raise ConfigError(
                f"{path}: {field}: found {entries!r:.80}, allowed is a list of mappings"
            )


def _client(
    configuration: Configuration,
    origin: str,
    reauthenticate: Callable[[], Awaitable[None]] | None,
) -> KubeClient:
    # Since Python 3.13 "strict" refuses CAs without key identifiers, which Go accepts and many
    # clusters have. Chain, dates and host name are verified all the same.
    configuration.disable_strict_ssl_verification = True
    try:
        client = ApiClient(configuration)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"{origin}: certificates cannot be loaded: {error}") from error
    return KubeClient(client, reauthenticate=reauthenticate)
