"""Gangs in simulate and explain: the planner's answers for what files and snapshots show."""

from typing import Any

import pytest

from dragoon.api import gang as api
from dragoon.diagnose import answers
from dragoon.diagnose.documents import read_text
from dragoon.diagnose.explaining import explain_gang
from dragoon.diagnose.manifests import Manifests
from dragoon.diagnose.placing import Verdict
from dragoon.diagnose.simulating import simulate
from dragoon.errors import InvalidInputError
from tests.unit.diagnose.cases import (
    Raw,
    case_text,
    exactly,
    manifests,
    needs_case_files,
    pod,
    slice_,
    template,
)
from tests.unit.diagnose.scenes import gpus, holding, node, snapshot


def job(count: int, *, size: str | None = None, **spec: Any) -> Raw:
    """A Job whose pods are a gang, each with a claim from template t."""
    made = pod([{"name": "g", "resourceClaimTemplateName": "t"}], [{"name": "g"}])
    annotations = {} if size is None else {api.ANNOTATION_SIZE: size}
    metadata = {"labels": {api.LABEL: "ddp"}, "annotations": annotations}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "ddp", "namespace": "default"},
        "spec": {
            "parallelism": count,
            "template": {"metadata": metadata, "spec": {**made["spec"], **spec}},
        },
    }


def two_nodes(*more: Raw) -> Any:
    return snapshot(
        slice_(*gpus(4), node="a"), slice_(*gpus(3), node="b"), node("a"), node("b"), *more
    )


class TestSimulate:
    def test_all_members_are_placed_together_and_hold_their_devices(self) -> None:
        files = manifests(template(exactly(count=2)), job(3))
        found = simulate(two_nodes(), files)
        (group,) = found.groups
        assert (group.verdict, len(group.placed), group.wanted) == (Verdict.PLACE, 3, 3)
        devices = {(one.node, device.device) for one in group.placed for device in one.devices}
        assert len(devices) == 6
        assert found.is_fine

    def test_none_is_placed_where_not_all_fit_and_what_would_help_is_said(self) -> None:
        files = manifests(template(exactly(count=2)), job(4), job(1))
        known = two_nodes(holding("x", "gpu-0", at="a"))
        (group,) = simulate(known, manifests(template(exactly(count=2)), job(3))).groups
        assert (group.verdict, group.placed) == (Verdict.WAIT, ())
        assert group.gang is not None
        assert group.gang.message.startswith("2 of 3 members fit; default/ddp-2 lacks: ")
        assert group.gang.change == "it fits when default/x has let go"
        never = simulate(two_nodes(), files).groups[0]
        assert never.verdict is Verdict.NEVER

    def test_members_beyond_the_size_are_placed_where_there_is_room(self) -> None:
        files = manifests(template(exactly(count=2)), job(5, size="2"))
        (group,) = simulate(two_nodes(), files).groups
        assert (group.verdict, len(group.placed), group.wanted) == (Verdict.PLACE, 3, 5)

    def test_a_size_that_is_no_number_is_named(self) -> None:
        files = manifests(template(exactly(count=2)), job(2, size="many"))
        (group,) = simulate(two_nodes(), files).groups
        assert group.gang is not None
        assert group.gang.message == (
            "annotation dragoon.dev/gang-size: found 'many', allowed is a whole number from 1 to 4096"
        )

    def test_a_gang_in_the_files_says_more_than_the_labels(self) -> None:
        level = {"nodeLabel": "rack"}
        written = {
            "apiVersion": api.API_VERSION,
            "kind": api.KIND,
            "metadata": {"name": "ddp", "namespace": "default"},
            "spec": {"size": 3, "topology": {"required": [level]}},
        }
        known = snapshot(
            slice_(*gpus(4), node="a"),
            slice_(*gpus(2), node="b"),
            node("a", rack="r"),
            node("b", rack="s"),
        )
        files = manifests(template(exactly(count=2)), job(3), written)
        (group,) = simulate(known, files).groups
        assert group.gang is not None
        assert group.gang.change == "it fits where rack is preferred, not required"

    def test_cpu_counts_where_nodes_say_what_they_have(self) -> None:
        small = {**node("a"), "status": {"allocatable": {"cpu": "3", "pods": "110"}}}
        known = snapshot(slice_(*gpus(4), node="a"), small)
        asking = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]
        files = manifests(template(exactly()), job(2, containers=asking))
        (group,) = simulate(known, files).groups
        assert group.gang is not None
        assert (
            group.gang.message
            == "1 of 2 members fit; default/ddp-1 lacks: 1 node: cpu: 2 wanted, 1 left"
        )

    def test_a_template_that_is_missing_is_waited_for(self) -> None:
        (group,) = simulate(two_nodes(), manifests(job(2))).groups
        assert group.gang is not None
        assert group.gang.message == "template default/t is not there"

    @needs_case_files
    def test_c44_m10_the_master_does_not_take_a_card_that_a_worker_could_use(self) -> None:
        labelled = case_text("m10").replace(
            "      template:\n        spec:",
            "      template:\n        metadata: {labels: {dragoon.dev/gang: tune}}\n        spec:",
        )
        files = Manifests.of(read_text("m10", labelled))
        cards = [*gpus(3, "81559Mi")]
        small = {**gpus(4, "16Gi")[3]}
        known = snapshot(slice_(*cards, small), node())
        groups = simulate(known, files).groups
        assert [(group.role, len(group.placed)) for group in groups] == [
            ("master", 1),
            ("worker", 3),
        ]
        assert groups[0].placed[0].devices[0].device == "gpu-3"


def gang_object(size: int, **status: Any) -> Raw:
    return {
        "apiVersion": api.API_VERSION,
        "kind": api.KIND,
        "metadata": {"name": "ddp", "namespace": "default", "uid": "u"},
        "spec": {"size": size},
        "status": status,
    }


def gang_pod(name: str, **spec: Any) -> Raw:
    made = pod([{"name": "g", "resourceClaimTemplateName": "t"}], [{"name": "g"}], name=name)
    made["metadata"] |= {"uid": f"uid-{name}", "labels": {api.LABEL: "ddp"}}
    made["spec"] |= spec
    return made


class TestExplain:
    def test_a_gang_that_waits_says_what_it_lacks_and_what_would_help(self) -> None:
        known = two_nodes(
            holding("x", "gpu-0", at="a"),
            template(exactly(count=2)),
            gang_object(3, phase="Waiting", waitingFor="room"),
            *(gang_pod(f"p{number}") for number in range(3)),
        )
        found = explain_gang(known, "default", "ddp")
        assert (found.kind, found.state, found.is_fine) == ("Gang", "wait", False)
        assert found.message.startswith("2 of 3 members fit; default/p2 lacks: ")
        assert found.gang is not None
        assert found.gang.change == "it fits when default/x has let go"
        assert found.notes == ("phase Waiting", "waits for room")
        data = answers.explained(found)["gang"]
        assert data["reasons"] == list(found.gang.reasons)

    def test_a_gang_for_which_there_is_room(self) -> None:
        pods = [gang_pod(f"p{number}") for number in range(2)]
        found = explain_gang(
            two_nodes(template(exactly(count=2)), gang_object(2), *pods), "default", "ddp"
        )
        assert (found.state, found.message) == ("place", "2 members fit on 1 node")
        assert found.is_fine

    def test_c49_finished_and_leaving_pods_are_no_members(self) -> None:
        ended = {**gang_pod("p1"), "status": {"phase": "Succeeded"}}
        leaving = gang_pod("p2")
        leaving["metadata"]["deletionTimestamp"] = "2026-11-29T00:00:00Z"
        known = two_nodes(template(exactly()), gang_object(2), gang_pod("p0"), ended, leaving)
        found = explain_gang(known, "default", "ddp")
        assert (found.state, found.message) == ("wait", "1 of 2 members are there")

    def test_a_gang_whose_members_all_run(self) -> None:
        bound = gang_pod("p0", nodeName="a", resourceClaims=[])
        found = explain_gang(two_nodes(gang_object(1), bound), "default", "ddp")
        assert (found.state, found.message) == ("allocated", "every member has its place")

    def test_a_gang_that_is_not_there_gives_near_names(self) -> None:
        with pytest.raises(InvalidInputError, match="Gang default/dpp is not there"):
            explain_gang(two_nodes(gang_object(1)), "default", "dpp")
