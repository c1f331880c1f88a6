"""The arbiter: first a rule, then the losers, and nobody's bare pod is deleted."""

from typing import Any

import pytest

from dragoon.allocator import ClusterState
from dragoon.allocator.contention import contentions
from dragoon.api.gang import GATE
from dragoon.gang.arbiter.deciding import arbitrate
from dragoon.gang.arbiter.ranking import Holder, holder_of
from dragoon.gang.protocol.actions import Action, AmendRule, CreateRule, Evict, Mark, Note
from dragoon.gang.protocol.facts import claim_key
from dragoon.gang.protocol.model import Kind, Ref, RuleFacts
from dragoon.gang.protocol.viewing import claim_facts
from tests.property.gang_cluster import claim_body, slice_of

Raw = dict[str, Any]
_DRIVER = "gpu.dragoon.dev"
_POOL = "node-0/gpu"
_MARK = "dragoon.dev/given-twice"


def _claim(name: str, *results: Raw, since: str = "2026-01-01T00:00:00Z") -> Raw:
    claim = claim_body(name, 1, None)
    claim["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
    found = [{"request": "gpu", "driver": _DRIVER, "pool": _POOL, **result} for result in results]
    allocation = {"devices": {"results": found}, "allocationTimestamp": since}
    claim["status"] = {"allocation": allocation}
    return claim


def _pod(name: str, *, owner: bool = True, gated: bool = False, phase: str = "Pending") -> Raw:
    meta: Raw = {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": "1"}
    if owner:
        job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
        meta["ownerReferences"] = [job]
    gates = [{"name": GATE}] if gated else []
    return {"metadata": meta, "spec": {"schedulingGates": gates}, "status": {"phase": phase}}


def _state(*claims: Raw, pool: Raw | None = None) -> ClusterState:
    state = ClusterState()
    for one in pool.get("items", [pool]) if pool else [slice_of("node-0", 2)]:
        state.put_slice(one)
    for claim in claims:
        state.put_claim(claim)
    return state


def _decide(
    claims: dict[str, tuple[Raw, list[Raw]]],
    rules: tuple[RuleFacts, ...] = (),
    pool: Raw | None = None,
) -> tuple[Action, ...]:
    snapshot = _state(*(claim for claim, _ in claims.values()), pool=pool).snapshot()
    holders: dict[str, Holder] = {
        f"team/{name}": holder_of(claim, pods, marked=_MARK)
        for name, (claim, pods) in claims.items()
    }
    facts = {claim_key(f"team/{name}"): claim_facts(claim) for name, (claim, _) in claims.items()}
    return arbitrate(contentions(snapshot, snapshot.usage), rules, facts, holders)


def _rule(*names: str) -> RuleFacts:
    claims = tuple(Ref("team", name, f"uid-{name}") for name in names)
    return RuleFacts(Ref("", "rule", "uid-rule", "7"), Kind.DAMAGE, _DRIVER, _POOL, claims=claims)


_OLD = _claim("old", {"device": "gpu-0"}, since="2026-01-01T00:00:00Z")
_NEW = _claim("new", {"device": "gpu-0"}, since="2026-01-01T00:00:09Z")


def test_before_anything_else_there_is_a_rule_on_the_pool_that_names_all_holders() -> None:
    (rule,) = _decide({"old": (_OLD, [_pod("a")]), "new": (_NEW, [_pod("b")])})

    assert isinstance(rule, CreateRule)
    assert (rule.kind, rule.driver, rule.pool, rule.gang) == (Kind.DAMAGE, _DRIVER, _POOL, None)
    assert {claim.uid for claim in rule.claims} == {"uid-old", "uid-new"}


def test_a_holder_that_came_later_is_named_on_the_rule_before_anybody_is_evicted() -> None:
    claims = {"old": (_OLD, [_pod("a")]), "new": (_NEW, [_pod("b")])}

    (amend,) = _decide(claims, (_rule("old", "gone"),))

    assert isinstance(amend, AmendRule)
    assert {claim.name for claim in amend.claims} == {"old", "gone", "new"}


def test_the_older_one_keeps_the_device_and_the_pod_of_the_other_is_evicted() -> None:
    claims = {"old": (_OLD, [_pod("a")]), "new": (_NEW, [_pod("b")])}

    (evict,) = _decide(claims, (_rule("old", "new"),))

    assert isinstance(evict, Evict)
    assert evict.pod.name == "b"
    assert "gpu-0 was given to claim team/old too" in evict.why


def test_a_prepared_claim_wins_over_an_older_one() -> None:
    claims = {"old": (_OLD, [_pod("a")]), "new": (_NEW, [_pod("b", phase="Running")])}

    (evict,) = _decide(claims, (_rule("old", "new"),))

    assert isinstance(evict, Evict)
    assert evict.pod.name == "a"


def test_a_bare_pod_is_marked_once_and_never_deleted() -> None:
    loser = _pod("b", owner=False)
    claims = {"old": (_OLD, [_pod("a")]), "new": (_NEW, [loser])}

    mark, note = _decide(claims, (_rule("old", "new"),))
    loser["metadata"]["annotations"] = {_MARK: "told"}
    later = _decide(claims, (_rule("old", "new"),))

    assert isinstance(mark, Mark)
    assert isinstance(note, Note)
    assert later == (note,)
    assert "delete it" in note.message


def test_a_gang_that_is_being_placed_takes_its_allocation_back_by_itself() -> None:
    claims = {"old": (_OLD, [_pod("a", gated=True)]), "new": (_NEW, [_pod("b")])}

    assert _decide(claims, (_rule("old", "new"),)) == ()


def test_a_pod_that_is_going_already_is_left_alone() -> None:
    loser = _pod("b")
    loser["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:10Z"

    assert _decide({"old": (_OLD, []), "new": (_NEW, [loser])}, (_rule("old", "new"),)) == ()


def test_a_claim_that_no_pod_uses_is_told_of() -> None:
    (note,) = _decide({"old": (_OLD, [_pod("a")]), "new": (_NEW, [])}, (_rule("old", "new"),))

    assert isinstance(note, Note)
    assert "team/new" in note.message


def test_different_devices_are_no_contention() -> None:
    other = _claim("other", {"device": "gpu-1"})

    assert _decide({"old": (_OLD, []), "other": (other, [])}) == ()


def _shared_pool(memory: str) -> Raw:
    pool = slice_of("node-0", 0)
    policy = {"default": memory, "validRange": {"min": "1Gi"}}
    pool["spec"]["devices"] = [
        {
            "name": "gpu-0-shared",
            "allowMultipleAllocations": True,
            "capacity": {"memory": {"value": memory, "requestPolicy": policy}},
        }
    ]
    return pool


def _share(name: str, memory: str, since: str) -> Raw:
    share = {
        "device": "gpu-0-shared",
        "shareID": f"id-{name}",
        "consumedCapacity": {"memory": memory},
    }
    return _claim(name, share, since=since)


@pytest.mark.parametrize(("memory", "contended"), [("120Gi", False), ("119Gi", True)])
def test_shares_may_fill_a_device_and_no_more(memory: str, contended: bool) -> None:
    claims = [
        _share("a", "60Gi", "2026-01-01T00:00:01Z"),
        _share("b", "60Gi", "2026-01-01T00:00:02Z"),
    ]
    snapshot = _state(*claims, pool=_shared_pool(memory)).snapshot()

    found = contentions(snapshot, snapshot.usage)

    assert [one.claims for one in found] == ([("team/a", "team/b")] if contended else [])


def test_of_shares_that_are_too_many_the_last_goes_first_and_then_it_is_looked_again() -> None:
    claims = {
        name: (_share(name, "60Gi", f"2026-01-01T00:00:0{index}Z"), [_pod(name)])
        for index, name in enumerate(("a", "b", "c"))
    }

    (evict,) = _decide(claims, (_rule("a", "b", "c"),), _shared_pool("80Gi"))

    assert isinstance(evict, Evict)
    assert evict.pod.name == "c"


def _divided_pool() -> list[Raw]:
    counters = slice_of("node-0", 0)
    counters["metadata"]["name"] = "node-0-counters"
    counters["spec"]["pool"]["resourceSliceCount"] = 2
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = [
        {"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}, "slices": {"value": "8"}}}
    ]
    devices = slice_of("node-0", 0)
    devices["spec"]["pool"]["resourceSliceCount"] = 2
    devices["spec"]["devices"] = [
        _counted("gpu-0", "80Gi", "8"),
        _counted("gpu-0-mig-1g-0", "10Gi", "1"),
        _counted("gpu-0-mig-1g-1", "10Gi", "1"),
    ]
    return [counters, devices]


def _counted(name: str, memory: str, slices: str) -> Raw:
    counters = {"memory": {"value": memory}, "slices": {"value": slices}}
    return {"name": name, "consumesCounters": [{"counterSet": "gpu-0", "counters": counters}]}


def test_a_whole_gpu_and_a_part_of_it_are_given_twice() -> None:
    whole, part = _claim("whole", {"device": "gpu-0"}), _claim("part", {"device": "gpu-0-mig-1g-0"})
    snapshot = _state(whole, part, pool={"items": _divided_pool()}).snapshot()

    (found,) = contentions(snapshot, snapshot.usage)

    assert found.claims == ("team/part", "team/whole")
    assert found.devices == ("gpu-0", "gpu-0-mig-1g-0")


def test_two_parts_of_a_gpu_are_not() -> None:
    parts = [_claim("a", {"device": "gpu-0-mig-1g-0"}), _claim("b", {"device": "gpu-0-mig-1g-1"})]
    snapshot = _state(*parts, pool={"items": _divided_pool()}).snapshot()

    assert contentions(snapshot, snapshot.usage) == ()
