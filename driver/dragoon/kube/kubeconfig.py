"""Kubeconfig files, read by the loader of `kubernetes.aio`: certificates, tokens, exec plugins.

The only module that imports `kubernetes`.
"""

import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.kube_config import load_kube_config

from dragoon.api.decoding import NOT_YAML
from dragoon.errors import ApiForbiddenError, ConfigError, InvalidInputError
from dragoon.kube.access import (
    Access,
    TokenFile,
    is_url,
    proxy_at,
    proxy_of_environment,
    tls_context,
)
from dragoon.reading import text_of

_PARTS: Final = {
    "clusters": (
        "cluster",
        (
            *("server", "proxy-url", "tls-server-name"),
            *("certificate-authority", "certificate-authority-data"),
        ),
    ),
    "contexts": ("context", ("cluster", "user", "namespace")),
    "users": (
        "user",
        (
            *("token", "tokenFile", "username", "password"),
            *("client-certificate", "client-certificate-data", "client-key", "client-key-data"),
        ),
    ),
}
"""Of each list what an entry has beside its name, and which fields of that are text."""


async def access_from(listed: str, origin: str) -> Access:
    """What one file says, or several joined by the path separator as kubectl does.

    origin says where the list came from. Raises ConfigError.
    """
    try:
        found = [path for path in map(Path, listed.split(os.pathsep)) if path.exists()]
    except OSError as error:
        raise ConfigError(f"{origin}: {error.filename}: {error.strerror}") from error
    if not found:
        raise ConfigError(f"{origin}: {listed}: no such file")
    for path in found:
        _check(path)
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
    server = str(configuration.host)
    if not is_url(server):
        raise ConfigError(
            f"{origin}: {listed}: cluster.server: found {configuration.host!r}, allowed is a URL "
            "with http:// or https://"
        )
    try:
        context = tls_context(
            authority=configuration.ssl_ca_cert,
            certificate=configuration.cert_file,
            key=configuration.key_file,
            verify=configuration.verify_ssl,
        )
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"{origin}: {listed}: certificates cannot be loaded: {error}") from error
    authorization, renew = _credentials(configuration, loader, found[0])
    return Access(
        server,
        tls=context if server.startswith("https://") else None,
        tls_name=configuration.tls_server_name,
        authorization=authorization,
        renew=renew,
        proxy=proxy_at(configuration.proxy, f"{origin}: {listed}: cluster.proxy-url")
        if configuration.proxy
        else proxy_of_environment(server),
    )


def _credentials(
    configuration: Configuration, loader: Any, path: Path
) -> tuple[Callable[[], str], Callable[[], Awaitable[None]] | None]:
    """The Authorization header, and how it is renewed; None where it is fixed."""
    user = loader._user.value if loader._user is not None else {}  # noqa: SLF001
    if user.get("tokenFile") and not user.get("token"):
        file = TokenFile(path.parent / user["tokenFile"])
        return file.header, file.renewed

    def header() -> str:
        return str(configuration.api_key.get("BearerToken") or "")

    if not user.get("exec"):
        return header, None
    if not header() and not configuration.cert_file:
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

    return header, run_again


def _check(path: Path) -> None:
    """Says in our words what the loader would trip over."""
    try:
        found = yaml.safe_load(text_of(path))
    except InvalidInputError as error:
        raise ConfigError(error.message) from error
    except NOT_YAML as error:
        raise ConfigError(
            f"{path}: cannot be read as YAML: {' '.join(str(error).split())}"
        ) from error
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: found {type(found).__name__}, a kubeconfig is a mapping")
    _check_part(f"{path}", found, ("current-context",))
    for field, (part, texts) in _PARTS.items():
        entries = found.get(field) or []
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            raise ConfigError(
                f"{path}: {field}: found {entries!r:.80}, allowed is a list of mappings"
            )
        for number, entry in enumerate(entries):
            _check_part(f"{path}: {field}[{number}].{part}", entry.get(part), texts)


def _check_part(where: str, part: Any, texts: Iterable[str]) -> None:
    """Values are not shown: credentials are among them."""
    if part is None:
        return
    if not isinstance(part, dict):
        raise ConfigError(f"{where}: found {type(part).__name__}, allowed is a mapping")
    for name in texts:
        value = part.get(name)
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{where}.{name}: found {type(value).__name__}, allowed is text")
    if "exec" in part:
        _check_part(f"{where}.exec", part["exec"] or {}, ("command",))
