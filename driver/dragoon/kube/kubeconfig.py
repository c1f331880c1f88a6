"""Kubeconfig files, read by the loader of `kubernetes.aio`: certificates, tokens, logins.

The only module that imports `kubernetes`.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.kube_config import FileOrData, KubeConfigLoader, KubeConfigMerger

from dragoon.api.decoding import NOT_YAML
from dragoon.errors import ApiForbiddenError, ApiUnavailableError, ConfigError, InvalidInputError
from dragoon.kube.access import (
    Access,
    TokenFile,
    is_url,
    proxy_at,
    proxy_of_environment,
    tls_context,
)
from dragoon.kube.exec_plugin import credentials
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


class _Loader(KubeConfigLoader):  # type: ignore[misc]
    """The loader with exec plugins that are run by us: its own run on after whoever waits has gone."""

    @property
    def user(self) -> dict[str, Any]:
        """The user of the context, empty for none."""
        return {} if self._user is None else dict(self._user.value)

    @property
    def folder(self) -> Path:
        """Where the file lies that has the user."""
        return Path(self._user.path).parent.absolute()

    async def load_from_exec_plugin(self) -> bool:
        """Runs the plugin, if there is one, and keeps what it gave. Raises ConfigError."""
        plugin = self.user.get("exec")
        if not plugin:
            return False
        told = await credentials(plugin, self.folder)
        if isinstance(told.get("token"), str):
            self.token = f"Bearer {told['token']}"
        elif {"clientCertificateData", "clientKeyData"} <= told.keys():
            self.cert_file, self.key_file = (
                FileOrData(told, None, data_key_name=name, base64_file_content=False).as_file()
                for name in ("clientCertificateData", "clientKeyData")
            )
        else:
            raise ConfigError(
                f"exec plugin {plugin['command']}: gave neither a token nor a certificate and its key"
            )
        return True


async def access_from(listed: str, origin: str, *, patience: float) -> Access:
    """What one file says, or several joined by the path separator as kubectl does.

    origin says where the list came from. patience: seconds for a login, each time there is one.
    Raises ConfigError, and ApiUnavailableError where a login takes longer.
    """
    try:
        found = [path for path in map(Path, listed.split(os.pathsep)) if path.exists()]
    except OSError as error:
        raise ConfigError(f"{origin}: {error.filename}: {error.strerror}") from error
    if not found:
        raise ConfigError(f"{origin}: {listed}: no such file")
    configuration = Configuration()
    configuration.host = ""
    loader = await _loaded(found, configuration, f"{origin}: {listed}", patience)
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
    authorization, renew = _authorization(configuration, loader, origin, patience)
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


async def _loaded(
    found: list[Path], configuration: Configuration, where: str, patience: float
) -> _Loader:
    """The loader after its work. Raises as `access_from`."""
    # Of several files the first that says it wins, as in client-go; the loader takes the last.
    current = next(filter(None, [_checked(path).get("current-context") for path in found]), None)
    try:
        merged = KubeConfigMerger(os.pathsep.join(map(str, found)))
        loader = _Loader(merged.config, current, config_base_path=None)
        async with asyncio.timeout(patience):
            await loader.load_and_set(configuration)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", hint=error.hint) from error
    except TimeoutError as error:
        raise _too_late(where, patience) from error
    except (ConfigException, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise ConfigError(f"{where}: {error}") from error
    return loader


def _authorization(
    configuration: Configuration, loader: _Loader, where: str, patience: float
) -> tuple[Callable[[], str], Callable[[], Awaitable[None]] | None]:
    """The Authorization header, and how it is renewed; None where it is fixed."""
    user = loader.user
    if user.get("tokenFile") and not user.get("token"):
        file = TokenFile(loader.folder / user["tokenFile"])
        return file.header, file.renewed

    def header() -> str:
        return str(configuration.api_key.get("BearerToken") or "")

    if not user.get("exec") or not header():
        return header, None

    async def run_again() -> None:
        try:
            async with asyncio.timeout(patience):
                await loader.load_from_exec_plugin()
        except TimeoutError as error:
            raise _too_late(where, patience) from error
        except ConfigError as error:
            raise ApiForbiddenError(f"{where}: {error.message}", status=401) from error
        configuration.api_key["BearerToken"] = loader.token

    return header, run_again


def _too_late(where: str, seconds: float) -> ApiUnavailableError:
    return ApiUnavailableError(
        f"{where}: no credentials within {seconds:g} s",
        hint="the user's exec or auth-provider waits for something: run that program by hand",
    )


def _checked(path: Path) -> Mapping[str, Any]:
    """What the file says. Says in our words what the loader would trip over."""
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
    return found


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
        _check_exec(f"{where}.exec", part["exec"] or {})


def _check_exec(where: str, plugin: Any) -> None:
    _check_part(where, plugin, ("command", "apiVersion"))
    for name, kind in (("args", str), ("env", dict)):
        entries = plugin.get(name) or []
        if not isinstance(entries, list) or not all(isinstance(each, kind) for each in entries):
            raise ConfigError(f"{where}.{name}: found no list of {kind.__name__}")
    for number, entry in enumerate(plugin.get("env") or []):
        if not all(isinstance(entry.get(key), str) for key in ("name", "value")):
            raise ConfigError(f"{where}.env[{number}]: found no name and value, both are text")
