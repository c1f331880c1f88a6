"""Pods that ask for devices by number: the claim that kube-scheduler would make (KEP-5004)."""

from dragoon.diagnose.counting import counted_claim
from dragoon.diagnose.explaining import explain_claim, explain_pod
from dragoon.diagnose.placing import Verdict
from dragoon.diagnose.simulating import simulate
from tests.unit.diagnose.cases import GPU_CLASS, Raw, class_, exactly, manifests, slice_
from tests.unit.diagnose.scenes import gpus, holding, node, snapshot

GPU = "example.com/gpu"
COUNTED = class_("counted", "device.driver == 'gpu.dragoon.dev'", extendedResourceName=GPU)
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu.dragoon.dev"


def container(limits: Raw, name: str = "main", *, always: bool = False) -> Raw:
    made: Raw = {"name": name, "image": "none", "resources": {"limits": limits}}
    return {**made, "restartPolicy": "Always"} if always else made


def counting(*containers: Raw, first: list[Raw] | None = None, claim: str = "") -> Raw:
    made = {"extendedResourceClaimStatus": {"resourceClaimName": claim}} if claim else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": list(containers), "initContainers": first or []},
        "status": made,
    }


def requests(pod: Raw, *objects: Raw) -> dict[str, int]:
    """The requests of the claim that is made up, and how many devices each asks for."""
    found = counted_claim(pod, snapshot(COUNTED, node(), *objects))
    if found is None:
        return {}
    assert isinstance(found, dict)
    return {one["name"]: one["exactly"]["count"] for one in found["spec"]["devices"]["requests"]}


def test_each_container_has_a_request_for_each_resource() -> None:
    limits = {"cpu": "1", GPU: "2", IMPLICIT: 1}
    found = counted_claim(counting(container(limits)), snapshot(COUNTED, node()))
    assert isinstance(found, dict)
    assert found["spec"]["devices"]["requests"] == [
        exactly("container-0-request-1", IMPLICIT.partition("/")[2], count=1),
        exactly("container-0-request-2", "counted", count=2),
    ]


def test_init_containers_that_end_use_the_devices_of_those_after_them() -> None:
    first = [container({GPU: "3"}, "a"), container({GPU: "5"}, "b")]
    pod = counting(container({GPU: "2"}), container({GPU: "1"}, "more"), first=first)
    assert requests(pod) == {
        "container-1-request-0": 2,
        "container-2-request-0": 2,
        "container-3-request-0": 1,
    }
    small = counting(container({GPU: "2"}), first=[container({GPU: "2"}, "a")])
    assert requests(small) == {"container-1-request-0": 2}


def test_a_sidecar_keeps_its_devices_and_later_ones_cannot_use_those_before_them() -> None:
    first = [container({GPU: "2"}, "side", always=True), container({GPU: "2"}, "a")]
    pod = counting(container({GPU: "1"}), first=first)
    assert requests(pod) == {
        "container-0-request-0": 2,
        "container-1-request-0": 1,
        "container-2-request-0": 1,
    }


def test_c52_what_a_device_plugin_offers_is_not_turned_into_a_claim() -> None:
    offering = {**node("other"), "status": {"allocatable": {GPU: "8"}}}
    assert requests(counting(container({GPU: "1"})), offering) == {}
    none_left = {**node("other"), "status": {"allocatable": {GPU: "0"}}}
    assert requests(counting(container({GPU: "1"})), none_left) == {"container-0-request-0": 1}


def test_what_is_no_number_and_resources_of_no_class_ask_for_nothing() -> None:
    assert requests(counting(container({GPU: "many", "example.com/nic": "1"}))) == {}


def test_a_waiting_pod_is_explained_as_if_its_claim_were_there() -> None:
    pod = counting(container({GPU: "3"}))
    known = snapshot(COUNTED, slice_(*gpus(4)), node(), pod, holding("x", "gpu-0", "gpu-1"))
    found = explain_pod(known, "default", "p")
    assert (found.state, found.is_fine) == (Verdict.WAIT, False)
    assert found.pending == ("default/p-extended-resources",)


def test_c49_the_claim_of_a_pod_is_the_one_that_its_status_names() -> None:
    pod = counting(container({GPU: "1"}), claim="has")
    known = snapshot(COUNTED, slice_(*gpus(1)), node(), pod, holding("has", "gpu-0"))
    found = explain_pod(known, "default", "p")
    assert [one.claim for one in found.given] == ["default/has"]
    assert explain_claim(known, "default", "has").state == "allocated"

    gone = explain_pod(snapshot(COUNTED, node(), pod), "default", "p")
    assert (gone.state, gone.message) == (Verdict.WAIT, "claim default/has is not there")


def test_a_member_that_counts_is_refused_with_the_template_to_use_whatever_nodes_say() -> None:
    member = counting(container({GPU: "2"}))
    member["metadata"]["labels"] = {"dragoon.dev/gang": "g"}
    for with_node in (node(), {**node(), "status": {"allocatable": {"cpu": "8"}}}):
        (group,) = simulate(
            snapshot(GPU_CLASS, slice_(*gpus(4)), with_node), manifests(COUNTED, member)
        ).groups
        assert group.gang is not None
        assert (group.gang.verdict, group.placed) == (Verdict.NEVER, ())
        assert "deviceClassName: counted" in group.gang.instead


def test_simulate_places_pods_that_count() -> None:
    files = manifests(COUNTED, counting(container({GPU: "2"})))
    (group,) = simulate(snapshot(GPU_CLASS, slice_(*gpus(4)), node()), files).groups
    assert group.verdict is Verdict.PLACE
    assert [len(one.devices) for one in group.placed] == [2]
