"""Who leaves together, and what wakes a gang that waits."""

from datetime import UTC, datetime
from typing import Any

from dragoon.allocator.gang.concern import Concern
from dragoon.allocator.gang.vacating import Occupant
from dragoon.allocator.model import PoolId
from dragoon.gang.records import PodRecord, pod_record
from dragoon.gang.waiting import freed
from dragoon.gang.waiting.occupants import occupants
from dragoon.gang.waiting.ranking import priority, rank
from tests.unit.gang.records_for_tests import gang
from tests.unit.gang.records_for_tests import pod as member

NOW = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)


def pod(
    name: str,
    *claims: str,
    node: str = "n",
    priority: int = 0,
    owner: str = "",
    phase: str = "Running",
) -> PodRecord:
    meta: dict[str, Any] = {"name": name, "namespace": "team", "uid": f"pod-{name}"}
    if owner:
        meta["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": True}
        ]
    return pod_record(
        {
            "metadata": meta,
            "spec": {
                "nodeName": node,
                "priority": priority,
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
                "resourceClaims": [{"name": one, "resourceClaimName": one} for one in claims],
            },
            "status": {"phase": phase},
        }
    )


def grouped(*pods: PodRecord, gangs: dict[str, str] | None = None) -> dict[str, Occupant]:
    found = occupants(pods, gang_of=lambda one: (gangs or {}).get(one.name, ""), jobs={}, now=NOW)
    return {one.name: one for one in found}


def test_members_of_a_gang_leave_together_with_all_their_claims_and_cpu() -> None:
    crew = {"a": "team/crew", "b": "team/crew"}
    found = grouped(
        pod("a", "ca"), pod("b", "cb", node="m", priority=3), pod("c", "cc"), gangs=crew
    )
    assert set(found) == {"gang team/crew", "pod team/c"}
    one = found["gang team/crew"]
    assert one.pods == ("team/a", "team/b")
    assert set(one.claims) == {"team/ca", "team/cb"}
    assert one.priority == 3
    assert one.counts == {"n": 1, "m": 1}
    assert one.used["m"]["cpu"] == 2000


def test_pods_that_share_a_claim_leave_together_also_over_gangs() -> None:
    found = grouped(
        pod("a", "x"), pod("b", "x", "y"), pod("c", "y"), pod("d", "z"), gangs={"c": "team/crew"}
    )
    assert set(found) == {"gang team/crew", "pod team/d"}
    assert found["gang team/crew"].pods == ("team/a", "team/b", "team/c")


def test_who_has_ended_holds_nothing_and_who_comes_back_at_once_does_not_help() -> None:
    found = grouped(
        pod("done", "c1", phase="Succeeded"),
        pod("daemon", "c2", owner="DaemonSet"),
        pod("static", owner="Node"),
        pod("nowhere", node=""),
        pod("web", owner="ReplicaSet"),
    )
    assert set(found) == {"pod team/web"}


def test_the_higher_priority_is_first_then_the_older_gang() -> None:
    old, new = gang("old"), gang("new")
    assert rank(old, [member("a", priority=1)]) < rank(new, [member("b")])
    assert rank(new, []) < rank(old, [])  # Of one age: by name.
    assert priority([member("a", priority=2), member("b", priority=9, phase="Succeeded")]) == 2


def test_only_what_concerns_a_gang_wakes_it() -> None:
    here = Concern(frozenset({"n"}), frozenset({PoolId("d", "n/gpu")}))
    result = {"driver": "d", "pool": "n/gpu", "device": "gpu-0"}
    claim = freed.by_claim({"devices": {"results": [result]}})
    other = freed.by_claim({"devices": {"results": [{**result, "pool": "m/gpu"}]}})
    assert claim.matters(here, never=False)
    assert not other.matters(here, never=False)
    assert freed.by_node("n").matters(here, never=False)
    assert not freed.by_node("m").matters(here, never=False)
    assert other.matters(None, never=False)


def test_what_no_empty_cluster_has_room_for_is_woken_by_a_change_of_the_fleet_only() -> None:
    here = Concern(frozenset({"n"}), frozenset())
    assert not freed.by_node("n").matters(here, never=True)
    assert freed.FLEET.matters(here, never=True)
