"""Who may do what: a real authorizer and the one in this process answer alike."""

import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dragoon.errors import ApiForbiddenError, ApiNotFoundError
from dragoon.kube import rights
from dragoon.kube.connecting import connect
from dragoon.kube.port import CLAIMS, NAMESPACES, SLICES, Api
from dragoon.kube.rights import Right
from dragoon.kube.rights_memory import AuthorizingApi
from tests.contract.kube.accounts import BINDINGS, ROLES, account, as_account, grant
from tests.contract.kube.servers import REAL, Server

NAME = "reader"
RULES = [
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["list"]},
    {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceclaims/driver"],
        "resourceNames": ["gpu.dragoon.dev"],
        "verbs": ["associated-node:patch"],
    },
]
KINDS = [
    "memory",
    *([pytest.param("real", marks=pytest.mark.e2e)] if REAL in os.environ else []),
]


@dataclass
class Granted:
    """A server, and the namespace of an account that has the rules."""

    api: Api
    namespace: str


@pytest.fixture(params=KINDS)
async def granted(request: pytest.FixtureRequest) -> AsyncIterator[Granted]:
    unique = uuid.uuid4().hex[:8]
    namespace = f"dragoon-{unique}"
    role = {"kind": ROLES.kind, "metadata": {"name": f"r-{unique}"}, "rules": RULES}
    binding = {
        "kind": BINDINGS.kind,
        "metadata": {"name": f"r-{unique}"},
        "roleRef": {"apiGroup": ROLES.group, "kind": ROLES.kind, "name": f"r-{unique}"},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }
    if request.param == "memory":
        memory = AuthorizingApi()
        memory.policy += [role, binding]
        yield Granted(memory, namespace)
        return
    api = await connect(Path(os.environ[REAL]))
    server = Server(api, unique)
    await server.create(NAMESPACES, {"metadata": {"name": namespace}})
    await grant(server, (role, binding))
    yield Granted(api, namespace)
    for resource, name in server.made:
        try:
            await api.delete(resource, name)
        except ApiNotFoundError:
            continue
    await api.close()


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        (Right("list", SLICES), True),
        (Right("watch", SLICES), False),
        (Right("list", CLAIMS), False),
        (Right("associated-node:patch", CLAIMS, "driver", name="gpu.dragoon.dev"), True),
        (Right("associated-node:patch", CLAIMS, "driver", name="other.driver"), False),
        (Right("associated-node:patch", CLAIMS, name="gpu.dragoon.dev"), False),
    ],
)
async def test_a_right_is_answered(granted: Granted, right: Right, *, expected: bool) -> None:
    assert await rights.allowed(granted.api, granted.namespace, NAME, right) is expected


@pytest.mark.parametrize(
    ("right", "text"),
    [
        (Right("list", SLICES), "list resourceslices.resource.k8s.io"),
        (Right("get", CLAIMS, namespace="a"), "get resourceclaims.resource.k8s.io -n a"),
        (
            Right("associated-node:patch", CLAIMS, "driver", name="gpu.dragoon.dev"),
            (
                "associated-node:patch resourceclaims.resource.k8s.io/gpu.dragoon.dev "
                "--subresource=driver"
            ),
        ),
    ],
)
def test_a_right_is_written_as_kubectl_takes_it(right: Right, text: str) -> None:
    assert str(right) == text


async def test_nobody_else_has_it(granted: Granted) -> None:
    right = Right("list", SLICES)
    assert not await rights.allowed(granted.api, granted.namespace, "other", right)
    assert not await rights.allowed(granted.api, "elsewhere", NAME, right)


@pytest.mark.e2e
@pytest.mark.skipif(REAL not in os.environ, reason=f"{REAL} is not set")
async def test_a_refusal_of_a_real_server_names_the_missing_right(tmp_path: Path) -> None:
    admin = Path(os.environ[REAL])
    api = await connect(admin)
    server = Server(api, uuid.uuid4().hex[:8])
    await server.create(NAMESPACES, {"metadata": {"name": server.namespace}})
    try:
        await account(server, NAME)
        theirs = await as_account(server, NAME, admin, tmp_path)
        try:
            with pytest.raises(ApiForbiddenError) as everywhere:
                await theirs.list(SLICES)
            with pytest.raises(ApiForbiddenError) as inside:
                await theirs.list(CLAIMS, namespace=server.namespace)
        finally:
            await theirs.close()
        told = [rights.missing_right(one.value.message) for one in (everywhere, inside)]
        assert told == [
            "list resourceslices.resource.k8s.io",
            f"list resourceclaims.resource.k8s.io -n {server.namespace}",
        ]
    finally:
        await api.delete(NAMESPACES, server.namespace)
        await api.close()
