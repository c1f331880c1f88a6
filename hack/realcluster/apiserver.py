"""Ask the API server, and the other components' health endpoints, small questions."""

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from realcluster.credentials import ADMIN, Credentials
from realcluster.failure import ClusterError
from realcluster.state import State

_PATIENCE = 60.0
_TRIES = 10


class ApiServer:
    """GET requests as administrator; for everything else there is kubectl."""

    def __init__(self, state: State) -> None:
        self._url = state.api_url
        self._token = Credentials(Path(state.ca_file).parent).token(ADMIN)
        self._trust = ssl.create_default_context(cafile=state.ca_file)

    def text(self, path: str) -> str | None:
        """The body of a successful answer, else None."""
        headers = {"Authorization": f"Bearer {self._token}"}
        request = urllib.request.Request(self._url + path, headers=headers)
        return _body(request, self._trust)

    def json(self, path: str) -> Any | None:
        """The decoded body of a successful answer, else None."""
        body = self.text(path)
        return None if body is None else json.loads(body)

    def fetch(self, path: str, *, accept: str = "application/json") -> tuple[int, bytes]:
        """Status and body of an answer, also of one that refuses; ClusterError if there is none.

        A server that says when to come again is asked again then, as kubectl does.
        """
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept}
        for _ in range(_TRIES):
            status, body, seconds = self._once(path, headers)
            if not seconds:
                break
            time.sleep(seconds)
        return status, body

    def _once(self, path: str, headers: dict[str, str]) -> tuple[int, bytes, int]:
        """Status, body, and after how many seconds to ask again (0: not at all)."""
        place = self._url.removeprefix("https://")
        connection = http.client.HTTPSConnection(place, context=self._trust, timeout=_PATIENCE)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), int(answer.headers.get("Retry-After", 0))
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(f"GET {path}: no answer: {error}") from error
        finally:
            connection.close()

    def is_ready(self) -> bool:
        # Exactly `ok`: the answer of a server that is not ready contains "ping ok".
        return self.text("/readyz") == "ok"


def is_healthy(port: int, *, tls: bool = True, path: str = "/healthz") -> bool:
    """Whether a component on this machine answers `ok` to a question for its health."""
    # Components make their own certificates, and this is loopback.
    trust = ssl._create_unverified_context()  # noqa: S323, SLF001
    scheme = "https" if tls else "http"
    request = urllib.request.Request(f"{scheme}://127.0.0.1:{port}{path}")
    return _body(request, trust if tls else None) == "ok"


def _body(request: urllib.request.Request, trust: ssl.SSLContext | None) -> str | None:
    # No proxy, whatever the environment says: all of this is one machine.
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if trust is not None:
        handlers.append(urllib.request.HTTPSHandler(context=trust))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=5) as answer:
            body: bytes = answer.read()
    except (urllib.error.URLError, OSError, TimeoutError):
        return None
    return body.decode()
