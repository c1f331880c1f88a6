"""Where claims would be placed: place, wait, never; which nodes, and why not the others."""

import itertools

import pytest

from dragoon.diagnose.cluster import Cluster
from dragoon.diagnose.placing import Verdict, place
from dragoon.diagnose.pods import PodClaims, claims_of
from tests.unit.diagnose.cases import Raw, claim, exactly, gpu, pod, slice_, template
from tests.unit.diagnose.scenes import gpus, holding, node, one_node, pending, snapshot, wanting


def test_a_claim_that_fits_is_placed_on_the_first_node_by_name_and_nodes_are_counted() -> None:
    cluster = Cluster(
        snapshot(
            slice_(*gpus(2), node="b"), slice_(*gpus(2), node="a"), node("b"), node("a"), node("c")
        )
    )
    found = place(cluster, pending(wanting(exactly(count=2))))
    assert (found.verdict, found.node, found.fitting, found.looked) == (Verdict.PLACE, "a", 2, 3)
    results = found.allocations[0]["devices"]["results"]
    assert [one["device"] for one in results] == ["gpu-0", "gpu-1"]
    assert any("chosen" in line for line in found.funnel())


def test_a_claim_for_which_others_have_to_let_go_waits() -> None:
    found = place(
        one_node(*gpus(2), held=[holding("x", "gpu-0")]), pending(wanting(exactly(count=2)))
    )
    assert found.verdict is Verdict.WAIT
    assert "held by claim default/x" in found.message


def test_a_claim_that_would_not_fit_in_an_empty_cluster_never_fits() -> None:
    found = place(one_node(*gpus(2)), pending(wanting(exactly(count=3))))
    assert found.verdict is Verdict.NEVER
    assert "needs 3 devices" in found.message


def test_the_nearest_node_is_explained_and_the_others_are_counted() -> None:
    cluster = Cluster(
        snapshot(
            slice_(*gpus(1), node="a"),
            slice_(*gpus(3), node="b"),
            slice_(*gpus(1), node="c"),
            *(node(name) for name in "abc"),
        )
    )
    found = place(cluster, pending(wanting(exactly(count=4))))
    assert (found.node, found.looked, found.fitting) == ("b", 3, 0)
    assert [count for _, count in found.others] == [2]


def test_a_selector_that_fails_on_a_device_is_told_with_the_device() -> None:
    text = "device.attributes['gpu.dragoon.dev'].model == 'H100'"
    wish = exactly(selectors=[{"cel": {"expression": text}}])
    found = place(one_node(*gpus(1)), pending(wanting(wish)))
    assert found.verdict is Verdict.NEVER
    assert "gpu-0" in found.message
    assert "no such key: model" in found.message


def test_a_claim_that_the_api_would_refuse_is_an_answer_and_no_fault() -> None:
    found = place(one_node(*gpus(1)), pending(wanting({"name": "g", "deviceClassName": "x"})))
    assert found.verdict is Verdict.NEVER
    assert "exactly" in found.message


def test_a_class_that_is_not_there_is_told() -> None:
    found = place(one_node(*gpus(1)), pending(wanting(exactly(class_name="gone"))))
    assert "gone" in found.message


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"nodeSelector": {"zone": "z"}}, "nodeSelector zone=z"),
        ({"nodeName": "elsewhere"}, "the pod is bound to node elsewhere"),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
                            ]
                        }
                    }
                }
            },
            "node affinity",
        ),
        ({}, "node taint team=a"),
        ({"tolerations": [{"key": "team", "value": "b"}]}, "node taint team=a"),
    ],
)
def test_a_node_that_the_pod_may_not_run_on_is_counted_with_the_reason(
    spec: Raw, reason: str
) -> None:
    tainted = node(taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}])
    made = pod([{"name": "g", "resourceClaimName": "want"}], [])
    made["spec"] |= spec
    cluster = Cluster(snapshot(slice_(*gpus(1)), tainted, wanting(exactly())))
    found = place(cluster, claims_of(made, cluster.snapshot), made)
    assert (found.verdict, found.refused, found.looked) == (Verdict.NEVER, ((reason, 1),), 0)


@pytest.mark.parametrize(
    "toleration",
    [{"key": "team", "value": "a"}, {"operator": "Exists"}, {"key": "team", "operator": "Exists"}],
)
def test_a_tolerated_node_can_be_used(toleration: Raw) -> None:
    tainted = node(taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}])
    made = pod([{"name": "g", "resourceClaimName": "want"}], [])
    made["spec"]["tolerations"] = [toleration]
    cluster = Cluster(snapshot(slice_(*gpus(1)), tainted, wanting(exactly())))
    found = place(cluster, claims_of(made, cluster.snapshot), made)
    assert found.verdict is Verdict.PLACE


def test_a_claim_that_is_allocated_pins_the_pod_to_its_node() -> None:
    held = holding("has", "gpu-0", at="a")
    cluster = Cluster(
        snapshot(slice_(*gpus(1), node="a"), slice_(*gpus(1), node="b"), node("a"), node("b"), held)
    )
    found = place(cluster, PodClaims(pending=(wanting(exactly()),), allocated=(held,)))
    assert found.refused == (("claim default/has has devices of another node", 1),)
    assert (found.verdict, found.node) == (Verdict.WAIT, "a")


def test_nodes_are_taken_from_the_slices_where_there_are_no_node_objects() -> None:
    found = place(Cluster(snapshot(slice_(*gpus(1), node="a"))), pending(wanting(exactly())))
    assert (found.verdict, found.node) == (Verdict.PLACE, "a")


def test_an_object_that_cannot_be_read_is_noted_and_the_others_count() -> None:
    broken = {"kind": "ResourceSlice", "metadata": {"name": "broken"}, "spec": {}}
    cluster = Cluster(snapshot(slice_(*gpus(1)), broken, node()))
    assert len(cluster.problems) == 1
    assert "broken" in cluster.problems[0]
    assert place(cluster, pending(wanting(exactly()))).verdict is Verdict.PLACE


def test_c15_slices_that_disagree_give_one_reason_in_every_order() -> None:
    one = slice_(gpus(2)[0], resourceSliceCount=1)
    two = slice_(gpus(2)[1], resourceSliceCount=2)
    two["metadata"]["name"] = "other"
    old = slice_(gpu("old", "x", "1Gi"), generation=0)
    messages = set()
    for slices in itertools.permutations((one, two, old)):
        found = place(Cluster(snapshot(*slices, node())), pending(wanting(exactly())))
        assert found.verdict is Verdict.WAIT
        assert found.explanation is not None
        messages.add(found.explanation.pools)
    ((note,),) = messages
    assert note.pool == "gpu.dragoon.dev/n/gpu"
    assert "generation 1" in note.problem
    assert "2 slices" in note.problem
    assert "1 or 2" in note.problem


def test_c15_a_duplicate_device_name_makes_the_pool_invalid_for_good() -> None:
    found = place(one_node(gpu("a", "x", "1Gi"), gpu("a", "x", "1Gi")), pending(wanting(exactly())))
    assert found.verdict is Verdict.NEVER
    assert found.explanation is not None
    assert "duplicate device name a" in found.explanation.pools[0].problem


def test_slices_of_two_drivers_with_one_pool_name_are_two_pools() -> None:
    other = slice_({"name": "gpu-0"}, driver="dra.net")
    cluster = Cluster(snapshot(slice_(*gpus(1)), other, node()))
    found = place(cluster, pending(wanting(exactly())))
    (result,) = found.allocations[0]["devices"]["results"]
    assert result["driver"] == "gpu.dragoon.dev"


def test_counters_that_do_not_resolve_are_told_as_a_problem_of_the_pool() -> None:
    counted = {
        **gpus(1)[0],
        "consumesCounters": [{"counterSet": "gone", "counters": {"memory": {"value": "1"}}}],
    }
    found = place(one_node(counted), pending(wanting(exactly())))
    assert found.verdict is Verdict.NEVER
    assert found.explanation is not None
    assert "gone" in found.explanation.pools[0].problem


def test_a_taint_rule_keeps_devices_from_being_placed() -> None:
    rule = {
        "kind": "DeviceTaintRule",
        "metadata": {"name": "drain"},
        "spec": {
            "deviceSelector": {"driver": "gpu.dragoon.dev"},
            "taint": {"key": "drain", "effect": "NoSchedule"},
        },
    }
    found = place(Cluster(snapshot(slice_(*gpus(1)), node(), rule)), pending(wanting(exactly())))
    assert found.verdict is Verdict.NEVER
    assert "drain" in found.message


def test_claims_of_a_pod_come_by_name_by_status_and_from_templates() -> None:
    entries = [
        {"name": "by-name", "resourceClaimName": "one"},
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "to-make", "resourceClaimTemplateName": "t"},
        {"name": "none", "resourceClaimTemplateName": "t"},
        {"name": "gone", "resourceClaimName": "gone"},
        {"name": "no-template", "resourceClaimTemplateName": "gone"},
        {"name": "empty"},
    ]
    made = pod(entries, [])
    made["status"] = {
        "resourceClaimStatuses": [
            {"name": "made", "resourceClaimName": "p-made-abc"},
            {"name": "none"},
        ]
    }
    known = snapshot(
        wanting(exactly(), name="one"),
        holding("p-made-abc", "gpu-0"),
        template(exactly(count=3)),
        claim(exactly(), name="other"),
    )
    found = claims_of(made, known)
    assert [one["metadata"]["name"] for one in found.pending] == ["one", "p-to-make"]
    assert found.pending[1]["spec"]["devices"]["requests"] == [exactly(count=3)]
    assert [one["metadata"]["name"] for one in found.allocated] == ["p-made-abc"]
    assert found.missing == (
        "claim default/gone is not there",
        "template default/gone is not there",
        "entry empty names neither a claim nor a template",
    )
    waiting = place(Cluster(known), found)
    assert waiting.verdict is Verdict.WAIT
    assert "default/gone is not there" in waiting.message
