"""How the API server is reached without a client of ours: from the administrator's kubeconfig."""

import base64
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml


@dataclass(frozen=True)
class Reach:
    """config: the kubeconfig as read."""

    server: str
    tls: ssl.SSLContext
    token: str
    config: dict[str, Any]

    @classmethod
    def of(cls, kubeconfig: Path) -> "Reach":
        config = yaml.safe_load(kubeconfig.read_text("utf-8"))
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return cls(
            cluster["server"],
            ssl.create_default_context(cadata=authority),
            config["users"][0]["user"]["token"],
            config,
        )

    def session(self) -> aiohttp.ClientSession:
        """A session with the administrator's rights."""
        return aiohttp.ClientSession(
            self.server,
            connector=aiohttp.TCPConnector(ssl=self.tls),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
            },
        )


async def delete(session: aiohttp.ClientSession, path: str, **options: Any) -> None:
    """Deletes with options that the port does not have: a grace period, a propagation policy."""
    async with session.delete(path, data=json.dumps(options)) as answer:
        await answer.read()
