"""What `explain` says of claims and pods."""

import pytest

from dragoon.diagnose import answers
from dragoon.diagnose.explaining import explain_claim, explain_pod
from dragoon.diagnose.placing import Verdict
from dragoon.errors import InvalidInputError
from tests.unit.diagnose.cases import Raw, exactly, pod, slice_
from tests.unit.diagnose.scenes import gpus, holding, node, snapshot, wanting

USE: Raw = {"name": "g", "resourceClaimName": "want"}


def test_an_allocated_claim_is_told_with_devices_node_users_and_reasons() -> None:
    held = holding("has", "gpu-0", "gpu-1")
    held["status"]["reservedFor"] = [{"resource": "pods", "name": "p", "uid": "u"}]
    held["status"]["devices"] = [
        {
            "driver": "gpu.dragoon.dev",
            "pool": "n/gpu",
            "device": "gpu-1",
            "conditions": [{"type": "Ready", "status": "False", "message": "busy"}],
        }
    ]
    found = explain_claim(snapshot(slice_(*gpus(4)), node(), held), "default", "has")
    assert (found.state, found.is_fine, found.placement) == ("allocated", True, None)
    (given,) = found.given
    assert given.nodes == ("n",)
    assert given.users == ("pods p",)
    assert [str(one) for one in given.devices] == [
        "request gpu: gpu-0, NVIDIA H100 80GB HBM3, memory 81559Mi",
        "request gpu: gpu-1, NVIDIA H100 80GB HBM3, memory 81559Mi, Ready=False (busy)",
    ]
    assert any("chosen, first fit" in line for line in given.why)


def test_devices_that_would_not_be_chosen_today_are_told() -> None:
    found = explain_claim(
        snapshot(slice_(*gpus(4)), node(), holding("has", "gpu-3")), "default", "has"
    )
    assert found.given[0].why[0].startswith("today it would get gpu-0")


def test_an_allocated_device_that_no_slice_has_any_more_is_told() -> None:
    found = explain_claim(snapshot(node(), holding("has", "gpu-9")), "default", "has")
    assert "no slice has it any more" in str(found.given[0].devices[0])
    assert found.given[0].why[0].startswith("today it would not get devices there")


def test_a_claim_that_no_pod_uses_is_explained_and_told_so() -> None:
    found = explain_claim(snapshot(slice_(*gpus(1)), node(), wanting(exactly())), "default", "want")
    assert (found.state, found.is_fine) == (Verdict.PLACE, True)
    assert "no pod uses it" in found.notes[0]


def test_a_waiting_claim_has_a_reason_a_funnel_and_what_would_help() -> None:
    found = explain_claim(
        snapshot(slice_(*gpus(2)), node(), holding("x", "gpu-0"), wanting(exactly(count=2))),
        "default",
        "want",
    )
    assert (found.state, found.is_fine) == (Verdict.WAIT, False)
    assert "held by claim default/x" in found.message
    assert found.remedies is not None
    assert [one.kind for one in found.remedies.offered] == ["count", "holder"]


def test_a_waiting_claim_is_explained_with_the_pod_that_uses_it() -> None:
    user = pod([USE], [{"name": "g"}])
    user["spec"]["nodeSelector"] = {"zone": "z"}
    known = snapshot(
        slice_(*gpus(1), node="a"),
        slice_(*gpus(1), node="b"),
        node("a"),
        node("b", zone="z"),
        wanting(exactly()),
        user,
    )
    found = explain_claim(known, "default", "want")
    assert found.placement is not None
    assert (found.state, found.placement.node) == (Verdict.PLACE, "b")
    assert "pod default/p" in found.notes[0]


def test_a_waiting_pod_is_told_with_what_it_says_itself() -> None:
    user = pod([USE], [{"name": "g"}])
    user["spec"] |= {"schedulingGates": [{"name": "dragoon.dev/gang"}], "schedulerName": "volcano"}
    user["status"] = {
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}]
    }
    found = explain_pod(
        snapshot(slice_(*gpus(1)), node(), wanting(exactly(count=2)), user), "default", "p"
    )
    assert found.state == Verdict.NEVER
    assert found.pending == ("default/want",)
    for words in ("dragoon.dev/gang", "scheduler volcano", "0/3 nodes", "not looked at: CPU"):
        assert any(words in note for note in found.notes), words


def test_c48_a_pod_bound_past_kube_scheduler_is_told_that_nobody_allocates_for_it() -> None:
    user = pod([USE], [{"name": "g"}])
    user["spec"] |= {"nodeName": "n", "schedulerName": "yunikorn"}
    known = snapshot(slice_(*gpus(1)), node(), wanting(exactly()), user)
    found = explain_pod(known, "default", "p")
    assert (found.state, found.is_fine) == ("stranded", False)
    for words in ("node n past kube-scheduler", "dragoon.dev/gang"):
        assert words in found.message
    assert explain_claim(known, "default", "want").state == "stranded"

    user["metadata"]["labels"] = {"dragoon.dev/gang": "g"}
    assert (
        explain_pod(
            snapshot(*map(dict, known.objects("ResourceSlice")), node(), wanting(exactly()), user),
            "default",
            "p",
        ).state
        == Verdict.PLACE
    )


def test_a_container_that_names_a_request_that_does_not_exist_is_told() -> None:
    user = pod([{"name": "g", "resourceClaimName": "has"}], [{"name": "g", "request": "gpus"}])
    found = explain_pod(
        snapshot(slice_(*gpus(1)), node(), holding("has", "gpu-0"), user), "default", "p"
    )
    (finding,) = found.findings
    assert (finding.code, finding.instead) == ("DRG305", "did you mean gpu?")
    assert (found.state, found.is_fine) == ("allocated", False)


def test_a_pod_without_claims_uses_none() -> None:
    found = explain_pod(snapshot(node(), pod([], [])), "default", "p")
    assert (found.message, found.is_fine) == ("uses no claim", True)


def test_what_is_missing_in_the_snapshot_is_a_note() -> None:
    known = snapshot(node(), pod([], [])).replacing(missing=("devicetaintrules: not served",))
    assert "left out: devicetaintrules: not served" in explain_pod(known, "default", "p").notes


@pytest.mark.parametrize(
    ("namespace", "name", "hint"),
    [
        ("default", "wnat", "did you mean want?"),
        ("team-a", "want", "it is in namespace default"),
        ("team-a", "x", "there is none"),
    ],
)
def test_a_name_that_is_not_there_is_wrong_input_with_a_near_one(
    namespace: str, name: str, hint: str
) -> None:
    with pytest.raises(InvalidInputError, match="is not there") as caught:
        explain_claim(snapshot(wanting(exactly())), namespace, name)
    assert caught.value.hint == hint


def test_the_data_holds_all_that_is_known() -> None:
    found = explain_claim(
        snapshot(slice_(*gpus(2)), node(), holding("x", "gpu-0"), wanting(exactly(count=2))),
        "default",
        "want",
    )
    data = answers.explained(found)
    assert (data["apiVersion"], data["kind"]) == ("diagnose.dragoon.dev/v1", "Explanation")
    (request,) = data["placement"]["funnel"]["requests"]
    in_use = next(step for step in request["steps"] if step["lost"])
    assert in_use["losers"][0]["device"] == "gpu.dragoon.dev/n/gpu/gpu-0"
    assert data["remedies"]["offered"][0]["kind"] == "count"
