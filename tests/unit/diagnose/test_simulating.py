"""What would be placed if files were applied."""

from dragoon.diagnose import answers
from dragoon.diagnose.placing import Verdict
from dragoon.diagnose.simulating import simulate
from tests.unit.diagnose.cases import (
    Raw,
    case,
    class_,
    exactly,
    gpu,
    manifests,
    needs_case_files,
    pod,
    slice_,
    template,
)
from tests.unit.diagnose.scenes import gpus, holding, node, snapshot, wanting


def workload(kind: str, spec: Raw, version: str = "apps/v1") -> Raw:
    made = pod([{"name": "g", "resourceClaimTemplateName": "t"}], [{"name": "g"}])
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {**spec, "template": {"spec": made["spec"]}},
    }


def test_pods_are_placed_one_after_the_other_until_one_does_not_fit() -> None:
    files = manifests(template(exactly(count=2)), workload("Deployment", {"replicas": 4}))
    known = snapshot(slice_(*gpus(4), node="a"), slice_(*gpus(3), node="b"), node("a"), node("b"))
    found = simulate(known, files)
    (group,) = found.groups
    assert (group.verdict, len(group.placed), group.wanted) == (Verdict.WAIT, 3, 4)
    assert group.nodes == (("a", 2), ("b", 1))
    devices = [(one.node, device.device) for one in group.placed for device in one.devices]
    assert len(set(devices)) == 6
    assert group.remedies is not None
    assert group.remedies.offered[0].after == "1"
    assert not found.is_fine
    assert len(known.claims) == 0


def test_a_daemon_set_wants_one_pod_on_each_node() -> None:
    files = manifests(template(exactly()), workload("DaemonSet", {}))
    known = snapshot(slice_(*gpus(1), node="a"), node("a"), slice_(*gpus(1), node="b"), node("b"))
    (group,) = simulate(known, files).groups
    assert (group.verdict, group.nodes) == (Verdict.PLACE, (("a", 1), ("b", 1)))


def test_a_claim_that_two_pods_share_is_allocated_once() -> None:
    uses = [{"name": "g", "resourceClaimName": "want"}]
    files = manifests(wanting(exactly()), pod(uses, [], name="p1"), pod(uses, [], name="p2"))
    found = simulate(snapshot(slice_(*gpus(2)), node()), files)
    assert [len(group.placed) for group in found.groups] == [1, 1]
    assert [len(group.placed[0].devices) for group in found.groups] == [1, 0]


def test_a_claim_that_no_pod_uses_is_placed_alone() -> None:
    found = simulate(
        snapshot(slice_(*gpus(1)), node()),
        manifests(wanting(exactly()), wanting(exactly(), name="b")),
    )
    assert [group.verdict for group in found.groups] == [Verdict.PLACE, Verdict.WAIT]


def test_what_the_cluster_holds_already_is_not_given_away() -> None:
    found = simulate(
        snapshot(slice_(*gpus(1)), node(), holding("x", "gpu-0")), manifests(wanting(exactly()))
    )
    assert found.groups[0].verdict is Verdict.WAIT


def test_files_may_bring_slices_and_classes_of_their_own() -> None:
    files = manifests(
        slice_(*gpus(1)), node(), class_("mine", "true"), wanting(exactly(class_name="mine"))
    )
    assert simulate(snapshot(), files).is_fine


def test_files_without_anything_to_place_say_so() -> None:
    found = simulate(snapshot(), manifests({"apiVersion": "v1", "kind": "ConfigMap"}))
    assert found.is_fine
    assert found.notes == ("no pod with claims and no claim in these files: nothing to place",)


def test_a_document_that_is_not_kubernetes_is_a_note_and_the_others_are_simulated() -> None:
    found = simulate(
        snapshot(slice_(*gpus(1)), node()), manifests("a: 1", "b: [", wanting(exactly()))
    )
    assert found.groups[0].verdict is Verdict.PLACE
    assert len(found.notes) == 2
    assert "document 1" in found.notes[1]
    assert not found.is_fine


def test_shares_of_one_device_have_share_ids_of_their_own() -> None:
    shared = {**gpu("s", "x", "24Gi"), "allowMultipleAllocations": True}
    shared["capacity"]["memory"]["requestPolicy"] = {
        "default": "24Gi",
        "validRange": {"min": "512Mi", "step": "1Mi"},
    }
    wish = exactly(capacity={"requests": {"memory": "4Gi"}})
    files = manifests(template(wish), workload("Deployment", {"replicas": 8}))
    (group,) = simulate(snapshot(slice_(shared), node()), files).groups
    assert len(group.placed) == 6
    assert {one.devices[0].consumed for one in group.placed} == {(("memory", "4Gi"),)}


@needs_case_files
def test_c26_m05_four_quarters_of_a_card_are_placed_and_two_wait() -> None:
    shared = {
        **gpu("s", "x", "24576Mi"),
        "allowMultipleAllocations": True,
    }
    shared["capacity"]["cores"] = {
        "value": "100",
        "requestPolicy": {"default": "0", "validRange": {"min": "0", "step": "1"}},
    }
    known = snapshot(slice_(shared), node(), class_("shared.dragoon.dev", "true"))
    (group,) = simulate(known, case("m05")).groups
    assert (len(group.placed), group.wanted, group.verdict) == (4, 6, Verdict.WAIT)
    assert group.placed[0].devices[0].consumed == (("memory", "4Gi"), ("cores", "25"))


def test_the_data_names_every_pod_node_and_device() -> None:
    data = answers.simulated(
        simulate(snapshot(slice_(*gpus(1)), node()), manifests(wanting(exactly())))
    )
    assert (data["apiVersion"], data["kind"]) == ("diagnose.dragoon.dev/v1", "Simulation")
    (item,) = data["items"]
    assert (item["verdict"], item["placed"][0]["node"]) == ("place", "n")
    assert item["placed"][0]["devices"][0]["device"] == "gpu-0"


def test_a_pod_that_names_no_namespace_finds_the_template_beside_it() -> None:
    made = template(exactly())
    alone = pod([{"name": "gpu", "resourceClaimTemplateName": "t"}], [{"name": "gpu"}])
    for one in (made, alone):
        del one["metadata"]["namespace"]
    (group,) = simulate(snapshot(slice_(*gpus(1)), node()), manifests(made, alone)).groups
    assert (group.verdict, len(group.placed)) == (Verdict.PLACE, 1)
