"""ServiceAccounts of a real API server, and clients that ask with their tokens."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import yaml

from dragoon.kube import rights
from dragoon.kube.connecting import connect
from dragoon.kube.port import Api, Object, Resource
from dragoon.kube.rights import Right
from tests.contract.kube.servers import Server
from tests.contract.kube.waiting import becomes

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)


async def account(server: Server, name: str) -> None:
    """Makes a ServiceAccount in the namespace of the test."""
    meta = {"name": name, "namespace": server.namespace}
    await server.create(ACCOUNTS, {"apiVersion": "v1", "kind": ACCOUNTS.kind, "metadata": meta})


async def grant(server: Server, bodies: Sequence[Object]) -> None:
    """Writes ClusterRoles and their bindings, and returns when the authorizer knows them."""
    kinds = {ROLES.kind: ROLES, BINDINGS.kind: BINDINGS}
    for body in bodies:
        resource = kinds[body["kind"]]
        await server.create(resource, {"apiVersion": resource.api_version, **body})
    rules = {one["metadata"]["name"]: one["rules"] for one in bodies if "rules" in one}
    for binding in bodies:
        for subject in binding.get("subjects", ()):
            if subject["kind"] == ACCOUNTS.kind:
                right = _first_right(rules[binding["roleRef"]["name"]])
                await _known(server.api, subject["namespace"], subject["name"], right)


def _first_right(rules: Sequence[Object]) -> Right:
    """One right of a role; the authorizer learns the others at the same moment."""
    rule = rules[0]
    plural, _, subresource = rule["resources"][0].partition("/")
    resource = Resource(rule["apiGroups"][0], "v1", plural, "", namespaced=True)
    name = next(iter(rule.get("resourceNames", ())), "")
    return Right(rule["verbs"][0], resource, subresource, name=name)


async def _known(api: Api, namespace: str, name: str, right: Right) -> None:
    await becomes(
        f"the authorizer lets {name} {right}", lambda: rights.allowed(api, namespace, name, right)
    )


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
