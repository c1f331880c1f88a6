"""Which pods are of one family, on one node, of one owner, and name one claim."""

from typing import Any

from dragoon.gang.pod_index import FamilyKey, PodIndex
from dragoon.gang.records import PodRecord, pod_record
from dragoon.kube.mirror import Change, Key, Mirror
from dragoon.kube.port import PODS

CREW = FamilyKey("team", "crew")
SHARED = Key("team", "shared")


class Bed:
    """An index that is told what the copies are told."""

    def __init__(self) -> None:
        self.pods: Mirror[PodRecord] = Mirror(PODS, pod_record)
        self.index = PodIndex(self.pods)
        self.pods.subscribe(self._changed)
        self._version = 0

    def _changed(self, change: Change[PodRecord]) -> None:
        if change.old is not None:
            self.index.drop(change.key, change.old)
        if change.new is not None:
            self.index.add(change.key, change.new)

    def put(
        self,
        name: str,
        *,
        group: str = "",
        gated: bool = False,
        phase: str = "Pending",
        **spec: Any,
    ) -> None:
        """A pod of one Job with the claim `shared`, as it is from now on."""
        self._version += 1
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job"}
        meta = {
            "namespace": "team",
            "name": name,
            "uid": name,
            "resourceVersion": str(self._version),
            "labels": {"dragoon.dev/gang": group} if group else {},
            "ownerReferences": [{**owner, "controller": True}],
        }
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
        spec["schedulingGates"] = [{"name": "somebody/gate"}] if gated else []
        self.pods.observe({"metadata": meta, "spec": spec, "status": {"phase": phase}})

    def goes(self, name: str) -> None:
        found = self.pods.get(name, "team")
        assert found is not None
        self.index.drop(Key("team", name), found)


def _names(pods: tuple[PodRecord, ...]) -> list[str]:
    return [pod.name for pod in pods]


def test_a_pod_is_found_by_all_that_it_says() -> None:
    bed = Bed()
    bed.put("a", group="crew", nodeName="n")
    bed.put("stranger")
    assert _names(bed.index.family(CREW)) == ["a"]
    assert list(bed.index.families()) == [CREW]
    assert bed.index.namespaces_with("crew") == {"team": 1}
    assert _names(bed.index.users(SHARED)) == ["a", "stranger"]
    assert list(bed.index.claims()) == [SHARED]
    assert _names(bed.index.on_node("n")) == ["a"]
    assert bed.index.families_on("n") == bed.index.families_of_owner("job") == (CREW,)


def test_kube_scheduler_may_take_pods_without_gate_and_node() -> None:
    bed = Bed()
    bed.put("gated", gated=True)
    bed.put("bound", nodeName="n")
    bed.put("over", phase="Failed")
    bed.put("waiting")
    assert _names(bed.index.schedulable()) == ["waiting"]


def test_a_pod_that_has_ended_takes_nothing_of_its_node() -> None:
    bed = Bed()
    bed.put("a", nodeName="n")
    bed.put("a", nodeName="n", phase="Succeeded")
    assert bed.index.on_node("n") == ()


def test_a_family_that_shares_a_claim_with_a_pod_is_one_of_its_families() -> None:
    bed = Bed()
    bed.put("a", group="crew")
    bed.put("b", group="crew")
    bed.put("stranger")
    stranger = bed.pods.get("stranger", "team")
    assert stranger is not None
    assert list(bed.index.families_of(stranger)) == [CREW]


def test_of_a_pod_that_goes_or_changes_nothing_is_left() -> None:
    bed = Bed()
    bed.put("a", group="crew", nodeName="n")
    bed.put("a", group="others", nodeName="m")
    assert list(bed.index.families()) == [FamilyKey("team", "others")]
    assert bed.index.on_node("n") == ()
    bed.goes("a")
    assert not list(bed.index.families())
    assert not list(bed.index.claims())
    assert not bed.index.on_node("m")
    assert not bed.index.families_of_owner("job")
