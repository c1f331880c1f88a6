"""What the protocol writes and reads: rules, pins, facts of raw objects, patches."""

from typing import Any

import pytest

from dragoon.api.gang import gang_of
from dragoon.api.gang_plan import PLAN_VERSION, Plan, PlannedMember, PlannedPool, Step
from dragoon.errors import ApiNotFoundError
from dragoon.gang.protocol.actions import (
    Action,
    AmendRule,
    ClearAllocation,
    CreateRule,
    DeleteRule,
    Evict,
    Journal,
    Mark,
    Nominate,
    Note,
    Suspend,
    Ungate,
    WaitUntil,
    WriteAllocation,
)
from dragoon.gang.protocol.executing import Executor
from dragoon.gang.protocol.model import Kind, Ref
from dragoon.gang.protocol.objects import pinned, rule_body, rule_facts, rule_name
from dragoon.gang.protocol.viewing import member_of, ref
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, GANGS, JOBS, PODS, TAINT_RULES
from tests.property.gang_cluster import claim_body

Raw = dict[str, Any]
_PIN = {"key": "metadata.name", "operator": "In", "values": ["node-0"]}
_GANG = Ref("team", "crew", "uid-gang", "3")
_CLAIMS = (Ref("team", "c", "uid-c"), Ref("team", "d", "uid-d"))


def _rule(kind: Kind = Kind.FENCE, gang: Ref | None = _GANG) -> CreateRule:
    name = rule_name(kind, "gpu.dragoon.dev", "node-0/gpu", gang.uid if gang else "")
    return CreateRule(name, kind, "gpu.dragoon.dev", "node-0/gpu", gang, _CLAIMS)


@pytest.mark.parametrize("rule", [_rule(), _rule(Kind.DAMAGE, None)], ids=["fence", "damage"])
async def test_a_rule_is_read_as_it_was_written(rule: CreateRule) -> None:
    stored = await MemoryApi().create(TAINT_RULES, rule_body(rule))

    found = rule_facts(stored)

    assert found is not None
    assert (found.kind, found.driver, found.pool) == (rule.kind, rule.driver, rule.pool)
    assert found.gang == (rule.gang.uid if rule.gang else "")
    assert found.claims == _CLAIMS


def test_rules_of_others_are_not_ours() -> None:
    raw = rule_body(_rule())
    raw["metadata"] |= {"uid": "u", "resourceVersion": "1", "labels": {}}

    assert rule_facts(raw) is None


@pytest.mark.parametrize(
    "text", ["", "no json", "{}", '[["one"]]', "[[1, 2, 3]]", "[" * 100_000, "9" * 100_000]
)
def test_an_edited_annotation_names_no_claims(text: str) -> None:
    raw = rule_body(_rule())
    raw["metadata"] |= {
        "uid": "u",
        "resourceVersion": "1",
        "annotations": {"dragoon.dev/claims": text},
    }

    found = rule_facts(raw)

    assert found is not None
    assert found.claims == ()


def test_a_gang_name_that_is_too_long_for_a_label_is_cut_where_a_label_may_end() -> None:
    body = rule_body(_rule(gang=Ref("team", "a" * 62 + "-" + "b" * 60, "uid")))

    assert body["metadata"]["labels"]["dragoon.dev/gang"] == "a" * 62


def test_names_of_rules_differ_by_gang_and_pool() -> None:
    names = {
        rule_name(kind, "d", pool, gang)
        for kind in Kind
        for pool in ("a/gpu", "b/gpu")
        for gang in ("", "x")
    }

    assert len(names) == 8
    assert all(len(name) <= 63 for name in names)


def test_a_pod_without_affinity_is_pinned_by_the_name_of_the_node() -> None:
    required = {"nodeSelectorTerms": [{"matchFields": [_PIN]}]}

    assert pinned(None, "node-0") == {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }


def test_the_pin_stands_in_every_term_and_nothing_else_changes() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    field = {"key": "metadata.name", "operator": "NotIn", "values": ["node-9"]}
    terms = [{"matchExpressions": [zone]}, {"matchFields": [field]}, {}]
    preferred = [{"weight": 1, "preference": {"matchExpressions": [zone]}}]
    affinity = {
        "podAntiAffinity": {"kept": True},
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        },
    }

    found = pinned(affinity, "node-0")

    assert found["podAntiAffinity"] == {"kept": True}
    node = found["nodeAffinity"]
    assert node["preferredDuringSchedulingIgnoredDuringExecution"] == preferred
    assert node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] == [
        {"matchExpressions": [zone], "matchFields": [_PIN]},
        {"matchFields": [field, _PIN]},
        {},
    ]
    assert pinned(found, "node-0") == found


def _pod(**spec: Any) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "team"},
        "spec": spec,
    }


async def _stored(api: MemoryApi, pod: Raw, **status: Any) -> Raw:
    await api.create(PODS, pod)
    return await api.patch(PODS, "p", {"status": status}, namespace="team", subresource="status")


async def test_c49_names_of_claims_come_from_the_status_only() -> None:
    api = MemoryApi()
    templates = [
        {"name": "a", "resourceClaimTemplateName": "t"},
        {"name": "b", "resourceClaimTemplateName": "t"},
        {"name": "c", "resourceClaimName": "shared"},
    ]
    made = [{"name": "a", "resourceClaimName": "p-a-x7"}, {"name": "b"}]
    pod = await _stored(api, _pod(resourceClaims=templates), resourceClaimStatuses=made)
    claims = {name: claim_body(name, 1, None) for name in ("p-a-x7", "shared", "p-a", "p-b")}

    found = member_of(pod, lambda _namespace, name: claims.get(name))

    assert found.claims == ("p-a-x7", "shared")
    assert found.complete


async def test_c49_a_claim_of_another_pod_with_the_expected_name_is_not_there() -> None:
    api = MemoryApi()
    templates = [{"name": "a", "resourceClaimTemplateName": "t"}]
    made = [{"name": "a", "resourceClaimName": "p-a"}]
    pod = await _stored(api, _pod(resourceClaims=templates), resourceClaimStatuses=made)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "before", "controller": True}

    found = member_of(pod, lambda _namespace, name: claim_body(name, 1, owner))

    assert not found.complete


async def test_a_member_whose_claims_are_not_made_yet_is_not_complete() -> None:
    templates = [{"name": "a", "resourceClaimTemplateName": "t"}]
    pod = await _stored(MemoryApi(), _pod(resourceClaims=templates))

    assert not member_of(pod, lambda _namespace, _name: None).complete


async def test_what_kube_scheduler_says_counts_and_nothing_else_does() -> None:
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    stuck = {**gated, "reason": "Unschedulable", "message": "no CPU"}
    stuck["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    api = MemoryApi()

    first = member_of(await _stored(api, _pod(), conditions=[gated]), lambda _a, _b: None)
    await api.delete(PODS, "p", namespace="team")
    second = member_of(await _stored(api, _pod(), conditions=[stuck]), lambda _a, _b: None)

    assert first.unschedulable == ""
    assert second.unschedulable == "no CPU"
    assert second.unschedulable_since is not None


async def test_a_pod_is_ungated_and_pinned_in_one_write_and_other_gates_stay() -> None:
    api = MemoryApi()
    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "dragoon.dev/gang"}]
    pod = await api.create(PODS, _pod(schedulingGates=gates, nodeSelector={"a": "b"}))
    member = member_of(pod, lambda _namespace, _name: None)

    outcome = await Executor(api).execute([Ungate(member.ref, "node-0", member.other_gates)])

    ((_, written),) = outcome.written
    assert written["spec"]["schedulingGates"] == gates[:1]
    assert written["spec"]["nodeSelector"] == {"a": "b"}
    assert written["spec"]["affinity"] == pinned(None, "node-0")
    patches = [call for call in api.faults.calls if call.verb == "patch"]
    assert len(patches) == 1


async def test_an_allocation_is_written_with_the_finalizer_where_that_is_missing() -> None:
    api = MemoryApi()
    body = claim_body("c", 1, None)
    body["metadata"]["finalizers"] = ["somebody.example.com/else"]
    claim = await api.create(CLAIMS, body)

    outcome = await Executor(api).execute([WriteAllocation(ref(claim), _ALLOCATION, protect=True)])

    ((_, written),) = outcome.written
    assert written["metadata"]["finalizers"] == [
        "somebody.example.com/else",
        "resource.kubernetes.io/delete-protection",
    ]
    assert written["status"]["allocation"] == _ALLOCATION


_ALLOCATION: Raw = {
    "devices": {
        "results": [{"request": "gpu", "driver": "gpu.dragoon.dev", "pool": "p", "device": "gpu-0"}]
    }
}


async def test_what_was_decided_on_something_older_is_a_conflict_and_changes_nothing() -> None:
    api = MemoryApi()
    claim = await api.create(CLAIMS, claim_body("c", 1, None))
    await Executor(api).execute([WriteAllocation(ref(claim), _ALLOCATION)])

    outcome = await Executor(api).execute([ClearAllocation(ref(claim))])

    assert outcome.conflicts == 1
    assert not outcome.errors
    found = await api.get(CLAIMS, "c", namespace="team")
    assert found["status"]["allocation"] == _ALLOCATION


async def test_what_is_gone_is_a_conflict_and_a_rule_that_is_gone_is_done() -> None:
    gone = Ref("team", "p", "uid", "1")
    actions: list[Action] = [
        Nominate(gone, "node-0"),
        Ungate(gone, "node-0"),
        Evict(gone, "why"),
        DeleteRule(Ref("", "r", "uid")),
    ]

    outcome = await Executor(MemoryApi()).execute(actions)

    assert (outcome.conflicts, outcome.errors, outcome.written) == (2, (), ())


async def test_one_write_that_fails_does_not_stop_the_others() -> None:
    api = MemoryApi()
    pod = await api.create(PODS, _pod())
    api.faults.fail(resource=JOBS, times=None)

    outcome = await Executor(api).execute(
        [Suspend(Ref("team", "j", "uid"), suspend=True), Mark(ref(pod), "why"), WaitUntil(1.0)]
    )

    assert [error.code for error in outcome.errors] == ["ApiUnavailable"]
    assert len(outcome.written) == 1


async def test_a_rule_that_stands_already_is_the_answer() -> None:
    api = MemoryApi()
    stored = await api.create(TAINT_RULES, rule_body(_rule()))

    outcome = await Executor(api).execute([_rule()])

    assert outcome.written == ((TAINT_RULES, stored),)


async def test_an_api_without_rules_is_an_error_and_no_reason_to_look_again_at_once() -> None:
    api = MemoryApi()
    api.faults.fail(resource=TAINT_RULES, verb="create", error=_missing)

    outcome = await Executor(api).execute([_rule()])

    assert [error.code for error in outcome.errors] == ["ApiNotFound"]


def _missing() -> ApiNotFoundError:
    return ApiNotFoundError("the server could not find the requested resource", status=404)


async def test_claims_are_added_to_a_rule() -> None:
    api = MemoryApi()
    stored = await api.create(TAINT_RULES, rule_body(_rule(Kind.DAMAGE, None)))
    more = (*_CLAIMS, Ref("team", "e", "uid-e"))

    outcome = await Executor(api).execute([AmendRule(ref(stored), more)])

    found = rule_facts(outcome.written[0][1])
    assert found is not None
    assert found.claims == more


async def test_a_journal_leaves_nothing_of_the_plan_before() -> None:
    api = MemoryApi()
    gang = await api.create(GANGS, _gang())
    long = Plan(
        version=PLAN_VERSION,
        serial=1,
        step=Step.WAIT,
        since="2026-01-01T00:00:00Z",
        fenced="2026-01-01T00:00:00Z",
        pools=(PlannedPool(driver="d", pool="p"),),
        members=(PlannedMember(pod="p", uid="u", node="n"),),
        packed="text",
        reason="because",
    )
    short = Plan(version=PLAN_VERSION, serial=2, step=Step.HOLD, since="2026-01-01T00:00:01Z")

    first = await Executor(api).execute([Journal(ref(gang), long)])
    second = await Executor(api).execute([Journal(ref(first.written[0][1]), short)])
    stale = await Executor(api).execute([Journal(ref(first.written[0][1]), long)])
    third = await Executor(api).execute([Journal(ref(second.written[0][1]), None)])

    assert second.written[0][1]["status"]["plan"] == {
        "version": PLAN_VERSION,
        "serial": 2,
        "step": "Hold",
        "since": "2026-01-01T00:00:01Z",
    }
    assert stale.conflicts == 1
    assert "plan" not in third.written[0][1]["status"]


@pytest.mark.parametrize(("before", "after"), [(2, 40), (40, 2), (40, 50)])
async def test_a_plan_that_grows_or_shrinks_is_read_as_it_was_journaled(
    before: int, after: int
) -> None:
    api = MemoryApi()
    gang = await api.create(GANGS, _gang())
    for size in (before, after):
        plan = Plan(
            version=PLAN_VERSION,
            serial=size,
            step=Step.FENCE,
            since="2026-01-01T00:00:00Z",
            pools=(PlannedPool(driver="d", pool="p"),),
            members=tuple(PlannedMember(pod=f"p{n}", uid=f"u{n}", node="n") for n in range(size)),
        )
        ((_, gang),) = (await Executor(api).execute([Journal(ref(gang), plan)])).written
        assert gang_of(gang).status.plan == plan


def _gang() -> Raw:
    return {
        "apiVersion": "dragoon.dev/v1alpha1",
        "kind": "Gang",
        "metadata": {"name": "crew", "namespace": "team"},
        "spec": {"size": 1},
    }


async def test_notes_and_waits_write_nothing() -> None:
    api = MemoryApi()

    await Executor(api).execute([Note("Stuck", "why"), WaitUntil(2.0)])

    assert api.faults.calls == []
