"""One request to the API server over aiohttp: headers, credentials, proxy, TLS.

`kubernetes.aio` has a transport too; it spends as much time on a request as the request
takes, and importing it costs every node 18 MiB. Errors of aiohttp pass through.
"""

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from yarl import URL

from dragoon import __version__
from dragoon.kube.access import Access

USER_AGENT: Final = f"dragoon/{__version__}"
JSON: Final = "application/json"

_HEADERS: Final = {"User-Agent": USER_AGENT, "Accept": JSON}
_CONNECTIONS = 100
# Objects in a watch are long lines: with aiohttp's 64 KiB the reading would be stopped and started.
_READ_BUFFER = 2**21

Query = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. The path is encoded; body is JSON, None for none."""

    method: str
    path: str
    query: Query = field(default_factory=list)
    body: Any = None
    content_type: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Transport:
    """The connections to one API server; belongs to one event loop."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None
        self._headers = dict(_HEADERS)
        self._options: dict[str, Any] = {}
        if access.tls_name:
            self._options["server_hostname"] = access.tls_name
        if access.proxy:
            self._go_through(URL(access.proxy))

    @property
    def server(self) -> str:
        """The URL of the API server, for messages."""
        return self._access.server

    async def send(
        self, request: Request, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """The head of the answer; the caller reads the body and closes it.

        Credentials that are refused are renewed once, where they can be, and the request is made
        again.
        """
        response = await self._once(request, timeout)
        if response.status == 401 and self._access.renew is not None:
            response.close()
            await self._access.renew()
            response = await self._once(request, timeout)
        return response

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _once(
        self, request: Request, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        headers = dict(self._headers)
        authorization = self._access.authorization()
        if authorization:
            headers["Authorization"] = authorization
        data = None
        if request.body is not None:
            headers["Content-Type"] = request.content_type
            data = msgspec.json.encode(request.body)
        url = self._access.server + request.path
        if request.query:
            url += "?" + urlencode(request.query, quote_via=quote)
        return await self._opened().request(
            request.method,
            URL(url, encoded=True),
            headers=headers,
            data=data,
            timeout=timeout,
            **self._options,
        )

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=_CONNECTIONS, ssl=True if self._access.tls is None else self._access.tls
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=_READ_BUFFER,
            )
        return self._session

    def _go_through(self, proxy: URL) -> None:
        """Sends requests through a proxy, as the user that stands in its URL."""
        self._options["proxy"] = proxy.with_user(None)
        if proxy.user is not None:
            secret = b64encode(f"{proxy.user}:{proxy.password or ''}".encode()).decode()
            proven = {"Proxy-Authorization": f"Basic {secret}"}
            # What is encrypted the proxy cannot read: then it is told when the connection is made.
            if self._access.tls is None:
                self._headers |= proven
            else:
                self._options["proxy_headers"] = proven
