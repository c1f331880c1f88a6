"""Ports of this machine, and what listens on them."""

import socket
import urllib.request
from http import HTTPStatus
from typing import Final

_ANSWER_SECONDS: Final = 5.0


def free_port() -> int:
    """A port on the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_ready(endpoint: str) -> bool:
    """Whether a process of ours says so at `/readyz`."""
    try:
        with urllib.request.urlopen(f"http://{endpoint}/readyz", timeout=_ANSWER_SECONDS) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False
