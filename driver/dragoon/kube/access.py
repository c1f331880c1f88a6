"""How an API server is reached, and as whom: what a kubeconfig or a pod's account comes to."""

import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from dragoon.errors import ConfigError

# As client-go: the kubelet rotates a token long before it expires.
_TOKEN_AGE_S = 60.0


def nobody() -> str:
    """The Authorization header of a client without a token."""
    return ""


@dataclass(frozen=True, slots=True)
class Access:
    """One API server and one user.

    server is its URL. authorization answers the value of the Authorization header for each request,
    empty for none; renew is awaited after an answer 401. tls is None for plain HTTP; tls_name is
    the name that the server's certificate must have, if another than in the URL. proxy is the URL
    of a proxy, which may hold its user and password.
    """

    server: str
    tls: ssl.SSLContext | None = None
    tls_name: str | None = None
    authorization: Callable[[], str] = nobody
    renew: Callable[[], Awaitable[None]] | None = None
    proxy: str | None = None


def tls_context(
    *,
    authority: str | None = None,
    certificate: str | None = None,
    key: str | None = None,
    verify: bool = True,
) -> ssl.SSLContext:
    """TLS as client-go does it, from PEM files. Raises OSError or ValueError."""
    context = ssl.create_default_context(cafile=authority)
    # Since Python 3.13 "strict" refuses CAs without key identifiers, which Go accepts and many
    # clusters have. Chain, dates and host name are verified all the same.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if certificate:
        context.load_cert_chain(certificate, keyfile=key)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def is_url(text: str) -> bool:
    """Whether it is a URL with http:// or https://, a host, and a port that there is."""
    try:
        url = urlsplit(text)
        # Reading a port raises where it is out of range.
        return text.startswith(("http://", "https://")) and bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def proxy_at(text: str, where: str) -> str:
    """The URL of a proxy; without a scheme it is http, as for client-go and curl.

    Raises ConfigError, which does not show the text: a password may stand in it.
    """
    url = text if "://" in text else f"http://{text}"
    if not is_url(url):
        raise ConfigError(
            f"{where}: found a proxy of another form, allowed is HOST:PORT or a URL with http:// "
            "or https://"
        )
    return url


def proxy_of_environment(server: str) -> str | None:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY give for a server.

    Found once: asked for every request, as aiohttp does, it costs more than the rest of the
    request. Raises ConfigError.
    """
    url = urlsplit(server)
    if not url.hostname or proxy_bypass(url.hostname):
        return None
    found = getproxies().get(url.scheme)
    return proxy_at(found, f"environment variable {url.scheme.upper()}_PROXY") if found else None


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

    async def renewed(self) -> None:
        """`renew` as `Access.renew` wants it."""
        self.renew()
