"""ServiceAccounts of a real API server, and clients that ask with their tokens."""

import asyncio
import json
from pathlib import Path

import yaml

from dragoon.kube.connecting import connect
from dragoon.kube.port import Api, Resource
from tests.contract.kube.servers import Server

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)


async def account(server: Server, name: str) -> None:
    """Makes a ServiceAccount in the namespace of the test."""
    meta = {"name": name, "namespace": server.namespace}
    await server.create(ACCOUNTS, {"apiVersion": "v1", "kind": ACCOUNTS.kind, "metadata": meta})


async def as_account(
    server: Server, name: str, admin: Path, folder: Path, *, node: str | None = None
) -> Api:
    """A client with a token of the account; with `node` the token is bound to it, as a pod's is."""
    # TokenRequest is a subresource that is created: authentication.k8s.io/v1.
    tokens = Resource("", "v1", f"{ACCOUNTS.plural}/{name}/token", "TokenRequest", namespaced=True)
    bound = {"apiVersion": "v1", "kind": "Node", "name": node}
    answer = await server.api.create(
        tokens,
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": tokens.kind,
            "metadata": {"name": name, "namespace": server.namespace},
            "spec": {"expirationSeconds": 3600} | ({"boundObjectRef": bound} if node else {}),
        },
    )
    config = yaml.safe_load(await asyncio.to_thread(admin.read_text))
    user = {"name": name, "user": {"token": answer["status"]["token"]}}
    config["users"] = [user]
    config["contexts"][0]["context"]["user"] = name
    path = folder / f"{name}-{node}.kubeconfig"
    await asyncio.to_thread(path.write_text, json.dumps(config))
    return await connect(path)
