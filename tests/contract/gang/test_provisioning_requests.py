"""ProvisioningRequests and PodTemplates as we make them, against the API that autoscalers read.

The CRD is the autoscaler project's own, from its Go module, where Go has it.
"""

import asyncio
import functools
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoon.errors import ApiInvalidError, ApiNotFoundError, ApiUnavailableError
from dragoon.gang.provisioning.objects import MOST_SHAPES, Request, request_of
from dragoon.gang.records import PodRecord
from dragoon.kube.connecting import connect
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import (
    NAMESPACES,
    POD_TEMPLATES,
    PROVISIONING_REQUESTS,
    Api,
    Object,
    PatchKind,
    Resource,
)
from tests.contract.kube.servers import REAL
from tests.contract.kube.waiting import becomes
from tests.unit.gang.records_for_tests import gang, pod

CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CRDS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
_MODULE = "k8s.io/autoscaler/cluster-autoscaler/apis"
_MODULES = Path(__file__).parents[3] / "hack" / "realcluster" / "modules"
_NAME = f"dragoon-{uuid.uuid4().hex[:8]}"
_made: list[str] = []


@functools.cache
def crd() -> Object | None:
    """The CRD of the autoscaler project; None where Go or its module is not here."""
    go = shutil.which("go")
    for file in sorted(_MODULES.glob("kueue-*/go.mod")) if go else ():
        command = [
            go or "",
            "list",
            "-mod=mod",
            f"-modfile={file}",
            "-m",
            "-f",
            "{{.Dir}}",
            _MODULE,
        ]
        offline = {**os.environ, "GOPROXY": "off", "GOFLAGS": ""}
        found = subprocess.run(
            command, cwd=file.parent, env=offline, capture_output=True, text=True, check=False
        )
        folder = Path(found.stdout.strip() or "nowhere", "config", "crd")
        for one in folder.glob("*_provisioningrequests.yaml"):
            raw: Object = yaml.safe_load(one.read_text("utf-8"))
            return raw
    return None


needs_crd = pytest.mark.skipif(crd() is None, reason="the autoscaler's Go module is not here")


def member(index: int, **spec: Any) -> PodRecord:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "pair"}]
    container = {
        "name": "main",
        "image": "train:1",
        "resources": {"requests": {"cpu": "4"}, "claims": [{"name": "gpu"}]},
        "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}],
        "env": [{"name": "A", "value": "secret"}],
    }
    parts = {
        "containers": [container],
        "initContainers": [{"name": "side", "image": "s:1", "restartPolicy": "Always"}],
        "resourceClaims": claims,
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "volumes": [
            {"name": f"token-{index}", "projected": {"sources": []}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ],
        "priorityClassName": "high",
        **spec,
    }
    return pod(f"p{index}", **parts)


def request() -> Request:
    found = request_of(gang("train", size=3), CLASS, [member(index) for index in range(3)])
    assert found is not None
    return found


def test_pods_that_are_alike_have_one_template_with_what_decides_where_they_fit() -> None:
    found = request()
    (only,) = found.templates
    assert found.body["spec"]["podSets"] == [
        {"count": 3, "podTemplateRef": {"name": only["metadata"]["name"]}}
    ]
    spec = only["template"]["spec"]
    assert spec["containers"] == [
        {
            "name": "main",
            "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": {"cpu": "4"}, "claims": [{"name": "gpu"}]},
            "ports": [{"containerPort": 81, "hostPort": 81}],
        }
    ]
    assert spec["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    assert "schedulingGates" not in spec
    assert "secret" not in repr(found)


def test_the_same_need_has_the_same_name_and_another_one_another() -> None:
    pods = [member(index) for index in range(3)]
    owner = gang("train", size=3)
    first = request_of(owner, CLASS, pods)
    assert first == request_of(owner, CLASS, list(reversed(pods)))
    names = {
        one.name
        for one in (
            first,
            request_of(owner, "other.example.com", pods),
            request_of(owner, CLASS, pods[:2]),
            request_of(gang("other", size=3), CLASS, pods),
        )
        if one is not None
    }
    assert len(names) == 4


def test_more_shapes_than_a_request_takes_are_none() -> None:
    pods = [member(index, nodeSelector={"n": str(index)}) for index in range(MOST_SHAPES + 1)]
    owner = gang("train", size=len(pods))
    assert request_of(owner, CLASS, pods) is None
    assert request_of(owner, CLASS, pods[:-1]) is not None
    assert request_of(owner, CLASS, []) is None


@needs_crd
def test_every_field_of_a_request_is_in_the_autoscalers_own_crd() -> None:
    found = crd()
    assert found is not None
    (version,) = (
        one for one in found["spec"]["versions"] if one["name"] == PROVISIONING_REQUESTS.version
    )
    assert found["spec"]["group"] == PROVISIONING_REQUESTS.group
    assert found["spec"]["names"]["plural"] == PROVISIONING_REQUESTS.plural
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    body = request().body
    assert list(problems(schema, body["spec"], "spec")) == []
    limits = schema["properties"]["podSets"]
    assert limits["maxItems"] == MOST_SHAPES
    broken = {**body["spec"], "podSets": [{"count": 0, "podTemplate": "x"}]}
    assert len(list(problems(schema, broken, "spec"))) == 3


def problems(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    """Where a value is not what a structural schema says, as far as we need it."""
    kinds = {"object": dict, "array": list, "string": str, "integer": int}
    if not isinstance(value, kinds[schema["type"]]):
        yield f"{path}: found {type(value).__name__}"
    elif isinstance(value, dict):
        yield from _of_object(schema, value, path)
    elif isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{path}: {len(value)} items"
        for part in value:
            yield from problems(schema["items"], part, f"{path}[]")
    elif isinstance(value, str):
        fits = re.search(schema.get("pattern", ""), value)
        if not fits or len(value) > schema.get("maxLength", len(value)):
            yield f"{path}: {value}"
    elif value < schema.get("minimum", value):
        yield f"{path}: {value}"


def _of_object(schema: Mapping[str, Any], value: Object, path: str) -> Iterator[str]:
    known = schema.get("properties", {})
    yield from (f"{path}.{name}: missing" for name in {*schema.get("required", ())} - {*value})
    for name, part in value.items():
        if name in known:
            yield from problems(known[name], part, f"{path}.{name}")
        elif "additionalProperties" not in schema:
            yield f"{path}.{name}: not known"


KINDS = [
    "memory",
    *([pytest.param("real", marks=[pytest.mark.e2e, needs_crd])] if REAL in os.environ else []),
]


@pytest.fixture(params=KINDS)
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    if request.param == "memory":
        yield MemoryApi()
        return
    found = await connect(Path(os.environ[REAL]))
    try:
        if not _made:
            await _install(found)
            _made.append(_NAME)
        yield found
    finally:
        await found.close()


async def _install(api: Api) -> None:
    body = crd()
    assert body is not None
    await api.patch(
        CRDS,
        body["metadata"]["name"],
        body,
        kind=PatchKind.APPLY,
        field_manager="dragoon-tests",
    )
    await api.create(NAMESPACES, {"metadata": {"name": _NAME}})

    async def served() -> bool:
        try:
            await api.list(PROVISIONING_REQUESTS, namespace=_NAME)
        except (ApiNotFoundError, ApiUnavailableError):
            return False
        return True

    await becomes("the CRD is served", served)


@pytest.fixture(scope="module", autouse=True)
def _tidy() -> Iterator[None]:
    yield
    if _made:
        asyncio.run(_remove())


async def _remove() -> None:
    api = await connect(Path(os.environ[REAL]))
    try:
        await api.delete(NAMESPACES, _NAME)
    finally:
        await api.close()


async def test_a_server_stores_all_of_a_request_and_its_templates(api: Api) -> None:
    wanted = request()
    for resource, bodies in (
        (POD_TEMPLATES, wanted.templates),
        (PROVISIONING_REQUESTS, (wanted.body,)),
    ):
        for body in bodies:
            stored = await api.create(resource, _here(body))
            part = "template" if resource is POD_TEMPLATES else "spec"
            assert _covers(stored[part], body[part])
            assert stored["metadata"]["labels"] == body["metadata"]["labels"]
    name, change = wanted.name, {"spec": {"provisioningClassName": "another"}}
    if not isinstance(api, MemoryApi):
        # The rule is the CRD's: another need has to be another request.
        with pytest.raises(ApiInvalidError):
            await api.patch(PROVISIONING_REQUESTS, name, change, namespace=_NAME)


def _here(body: Mapping[str, Any]) -> Object:
    """In the test's namespace, and without an owner: there is no such Gang here."""
    meta = {**body["metadata"], "namespace": _NAME}
    del meta["ownerReferences"]
    return {**body, "metadata": meta}


def _covers(stored: Any, sent: Any) -> bool:
    """Whether all that was sent is stored; a server adds defaults."""
    if isinstance(sent, dict):
        return all(name in stored and _covers(stored[name], part) for name, part in sent.items())
    if isinstance(sent, list):
        return len(stored) == len(sent) and all(map(_covers, stored, sent))
    return bool(stored == sent)
