"""What the gang protocol writes is accepted, by the API server in memory and by a real one."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoon.api.gang import GATE
from dragoon.errors import ApiForbiddenError, ApiInvalidError, ApiNotFoundError, DragoonError
from dragoon.gang.protocol.actions import (
    Action,
    AmendRule,
    ClearAllocation,
    CreateRule,
    DeleteRule,
    Mark,
    Nominate,
    Suspend,
    Ungate,
    WriteAllocation,
)
from dragoon.gang.protocol.executing import Executor, Outcome
from dragoon.gang.protocol.model import Kind, Ref
from dragoon.gang.protocol.objects import pinned, rule_facts, rule_name
from dragoon.gang.protocol.viewing import member_of, ref
from dragoon.kube.connecting import connect
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import (
    CLAIMS,
    JOBS,
    PODS,
    TAINT_RULES,
    TEMPLATES,
    Api,
    Object,
    PatchKind,
    Resource,
)
from testbed.waiting import PATIENCE
from tests.contract.kube.servers import REAL
from tests.contract.kube.waiting import becomes

KINDS = [
    "memory",
    *([pytest.param("real", marks=pytest.mark.e2e)] if REAL in os.environ else []),
]
_POLICY = Path(__file__).parents[3] / "deploy/policies/gang-only.yaml"
_PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
_RESULT = {"request": "gpu", "driver": "gpu.dragoon.dev", "pool": "n0/gpu", "device": "gpu-0"}
_ON_N0 = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
_ALLOCATION: Object = {
    "allocationTimestamp": "2026-11-29T12:00:00Z",
    "devices": {"results": [_RESULT]},
    "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [_ON_N0]}]},
}


@dataclass
class Server:
    """A server, names of this test's own, and what is to be removed."""

    api: Api
    unique: str
    made: list[tuple[Resource, str]] = field(default_factory=list)

    async def create(self, resource: Resource, name: str, **body: Any) -> Object:
        meta = {"name": f"{name}-{self.unique}", "namespace": "default"}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        body["metadata"] = {**meta, **body.get("metadata", {})}
        stored = await self.api.create(resource, body)
        self.made.append((resource, stored["metadata"]["name"]))
        return stored

    async def write(self, *actions: Action) -> Object:
        """The stored answer of the last write; none of them may fail."""
        outcome = await self.outcome(*actions)
        assert (outcome.errors, outcome.conflicts) == ((), 0)
        return outcome.written[-1][1]

    async def outcome(self, *actions: Action) -> Outcome:
        return await Executor(self.api).execute(actions)

    async def pod(self, **spec: Any) -> Object:
        containers = [{"name": "main", "image": "none"}]
        return await self.create(PODS, "p", spec={"containers": containers, **spec})

    async def claim(self, name: str = "c", **meta: Any) -> Object:
        exactly = {"deviceClassName": "gpu.dragoon.dev"}
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
        return await self.create(CLAIMS, name, spec=spec, metadata=meta)

    async def remove(self) -> None:
        for resource, name in self.made:
            namespace = "default" if resource.namespaced else None
            try:
                if resource is CLAIMS:
                    none = {"status": {"allocation": None}}
                    await self.api.patch(
                        resource, name, none, namespace=namespace, subresource="status"
                    )
                    free: Object = {"metadata": {"finalizers": None}}
                    await self.api.patch(resource, name, free, namespace=namespace)
                await self.api.delete(resource, name, namespace=namespace)
            except ApiNotFoundError:
                continue


@pytest.fixture(params=KINDS)
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    real = request.param == "real"
    api: Api = await connect(Path(os.environ[REAL])) if real else MemoryApi()
    found = Server(api, uuid.uuid4().hex[:8])
    try:
        yield found
    finally:
        await found.remove()
        await api.close()


async def test_point_6_a_pod_is_pinned_and_ungated_in_one_write(server: Server) -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    field_ = {"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}
    terms = [{"matchExpressions": [zone]}, {"matchFields": [field_]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    gates = [{"name": "example.com/other"}, {"name": GATE}]
    pod = await server.pod(schedulingGates=gates, affinity={"nodeAffinity": required})
    member = member_of(pod, lambda _namespace, _name: None)

    stored = await server.write(Ungate(member.ref, "n0", member.other_gates, member.affinity))

    assert stored["spec"]["schedulingGates"] == gates[:1]
    node = stored["spec"]["affinity"]["nodeAffinity"]
    assert node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] == [
        {"matchExpressions": [zone], "matchFields": [_ON_N0]},
        {"matchFields": [field_, _ON_N0]},
    ]


async def test_the_last_gate_goes_with_the_pin(server: Server) -> None:
    pod = await server.pod(schedulingGates=[{"name": GATE}])

    stored = await server.write(Ungate(ref(pod), "n0"))

    assert not stored["spec"].get("schedulingGates")
    assert stored["spec"]["affinity"] == pinned(None, "n0")


async def test_a_pod_that_changed_since_is_not_ungated(server: Server) -> None:
    pod = await server.pod(schedulingGates=[{"name": GATE}])
    await server.write(Mark(ref(pod), "something else"))

    outcome = await server.outcome(Ungate(ref(pod), "n0"))

    assert outcome.conflicts == 1
    found = await server.api.get(PODS, pod["metadata"]["name"], namespace="default")
    assert found["spec"]["schedulingGates"] == [{"name": GATE}]


async def test_point_10_a_gated_pod_is_nominated_and_the_nomination_taken_back(
    server: Server,
) -> None:
    pod = await server.pod(schedulingGates=[{"name": GATE}])

    there = await server.write(Nominate(ref(pod), "n0"))
    back = await server.write(Nominate(ref(pod), ""))

    assert there["status"]["nominatedNodeName"] == "n0"
    assert "nominatedNodeName" not in back["status"]


async def test_point_3_a_rule_on_a_pool_is_written_amended_and_removed(server: Server) -> None:
    gang = Ref("default", "crew", server.unique, "1")
    claims = (Ref("default", "c", "u"),)
    name = rule_name(Kind.FENCE, "gpu.dragoon.dev", "n0/gpu", gang.uid)
    server.made.append((TAINT_RULES, name))
    rule = CreateRule(name, Kind.FENCE, "gpu.dragoon.dev", "n0/gpu", gang, claims)

    stored = await server.write(rule)
    again = await server.write(rule)
    more = (*claims, Ref("default", "d", "v"))
    amended = rule_facts(await _amended(server, name, more))
    outcome = await server.outcome(DeleteRule(ref(stored)), DeleteRule(ref(stored)))

    assert again["metadata"]["uid"] == stored["metadata"]["uid"]
    assert amended is not None
    assert (amended.kind, amended.gang, amended.claims) == (Kind.FENCE, server.unique, more)
    assert (outcome.errors, outcome.conflicts) == ((), 0)
    with pytest.raises(ApiNotFoundError):
        await server.api.get(TAINT_RULES, name)


async def _amended(server: Server, name: str, claims: tuple[Ref, ...]) -> Object:
    """The controller manager writes the status of a rule meanwhile: then it is looked at again."""
    async with asyncio.timeout(PATIENCE):
        while True:
            seen = await server.api.get(TAINT_RULES, name)
            outcome = await server.outcome(AmendRule(ref(seen), claims))
            assert not outcome.errors
            if outcome.written:
                return outcome.written[0][1]


async def test_point_7_a_claim_is_allocated_and_cleared_only_as_it_was_seen(
    server: Server,
) -> None:
    claim = await server.claim()

    allocated = await server.write(WriteAllocation(ref(claim), _ALLOCATION, protect=True))
    late = await server.outcome(ClearAllocation(ref(claim)))
    cleared = await server.write(ClearAllocation(ref(allocated)))

    assert allocated["status"]["allocation"] == _ALLOCATION
    assert not allocated["status"].get("reservedFor")
    assert "resource.kubernetes.io/delete-protection" in allocated["metadata"]["finalizers"]
    assert late.conflicts == 1
    assert not (cleared.get("status") or {}).get("allocation")


async def test_an_allocation_is_never_changed_into_another(server: Server) -> None:
    claim = await server.claim(finalizers=["resource.kubernetes.io/delete-protection"])
    first = await server.write(WriteAllocation(ref(claim), _ALLOCATION))
    other = {**_ALLOCATION, "devices": {"results": [{**_RESULT, "device": "gpu-1"}]}}

    outcome = await server.outcome(WriteAllocation(ref(first), other))

    assert [type(error) for error in outcome.errors] == [ApiInvalidError]


async def test_point_9_a_job_is_suspended_and_resumed(server: Server) -> None:
    labels = {"app": server.unique}
    container = {"name": "main", "image": "none"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"template": template, "parallelism": 0, "completions": 1}
    job = await server.create(JOBS, "j", spec=spec)

    suspended = await server.write(Suspend(ref(job), suspend=True))
    resumed = await server.write(Suspend(ref(job), suspend=False))

    assert suspended["spec"]["suspend"] is True
    assert resumed["spec"]["suspend"] is False


def _asking(toleration: Object) -> Object:
    exactly = {"deviceClassName": "gpu.dragoon.dev", "tolerations": [toleration]}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def _choosing(toleration: Object) -> Object:
    first = {"name": "a", "deviceClassName": "gpu.dragoon.dev", "tolerations": [toleration]}
    return {"devices": {"requests": [{"name": "gpu", "firstAvailable": [first]}]}}


_REFUSED = [
    {"operator": "Exists"},
    {"key": "dragoon.dev/gang-only", "operator": "Exists"},
    {"key": "dragoon.dev/gang", "operator": "Equal", "value": "crew", "effect": "NoSchedule"},
    {"key": "dragoon.dev/given-twice", "operator": "Exists"},
]


@pytest.mark.skipif(REAL not in os.environ, reason="CEL of admission policies needs a real server")
@pytest.mark.e2e
async def test_claims_that_tolerate_what_is_for_gangs_are_refused() -> None:
    api = await connect(Path(os.environ[REAL]))
    server = Server(api, uuid.uuid4().hex[:8])
    try:
        for body in yaml.safe_load_all(_POLICY.read_text("utf-8")):
            group, version = body["apiVersion"].split("/")
            plural, kind = _PLURALS[body["kind"]], body["kind"]
            await api.patch(
                Resource(group, version, plural, kind, namespaced=False),
                body["metadata"]["name"],
                body,
                kind=PatchKind.APPLY,
                field_manager="dragoon-tests",
            )
        await _until_in_force(server)
        for number, toleration in enumerate(_REFUSED):
            for spec in (_asking(toleration), _choosing(toleration)):
                with pytest.raises(DragoonError, match="these keep devices for gangs"):
                    await server.create(CLAIMS, f"c{number}", spec=spec)
                with pytest.raises(DragoonError, match="these keep devices for gangs"):
                    await server.create(TEMPLATES, f"t{number}", spec={"spec": spec})
        allowed = {"key": "example.com/maintenance", "operator": "Exists"}
        await server.create(CLAIMS, "allowed", spec=_asking(allowed))
        await server.create(TEMPLATES, "allowed", spec={"spec": _choosing(allowed)})
        await server.claim("plain")
    finally:
        await server.remove()
        await api.close()


async def _until_in_force(server: Server) -> None:
    """Returns when the policy has taken effect."""

    async def refuses() -> bool:
        try:
            body = _asking(_REFUSED[0])
            await server.create(CLAIMS, f"probe-{uuid.uuid4().hex[:6]}", spec=body)
        except (ApiForbiddenError, ApiInvalidError):
            return True
        return False

    await becomes("the policy is in force", refuses)
