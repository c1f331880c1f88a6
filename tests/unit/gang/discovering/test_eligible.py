"""Attempts of a group that was started again, and the minima of its parts."""

from typing import Any

from dragoon.gang.discovering.eligible import eligible
from dragoon.gang.records import PodRecord
from dragoon.kube.port import VOLCANO_GROUPS
from tests.unit.gang.records_for_tests import Groups, ground, pod


def job_set(name: str, attempt: str, **more: Any) -> PodRecord:
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "s",
        "jobset.sigs.k8s.io/restart-attempt": attempt,
        "jobset.sigs.k8s.io/job-global-index": "0",
        "batch.kubernetes.io/job-completion-index": name[-1],
    }
    return pod(name, size=None, labels=labels, **more)


def names(pods: list[PodRecord]) -> list[str]:
    return [one.name for one in pods]


def test_pods_of_an_attempt_before_are_not_placed_any_more() -> None:
    pods = [job_set("a0", "0"), job_set("b0", "1"), job_set("b1", "1")]
    assert names(eligible(pods, ground(), planned=())) == ["b0", "b1"]


def test_work_of_an_attempt_before_is_not_work_of_this_one() -> None:
    pods = [job_set("a0", "0", phase="Succeeded"), job_set("b0", "1")]
    assert names(eligible(pods, ground(), planned={"pod-a0"})) == ["b0"]


def test_a_pod_of_an_attempt_before_that_still_runs_counts_until_it_is_gone() -> None:
    pods = [
        job_set("a0", "0", phase="Running"),
        job_set("a1", "0", phase="Running", deleting=True),
        job_set("b0", "1"),
    ]
    found = eligible(pods, ground(), planned={"pod-a0", "pod-a1"})
    assert names(found) == ["a0", "a1", "b0"]


def test_a_replacement_in_the_same_attempt_keeps_what_others_have_done() -> None:
    pods = [
        job_set("a0", "1", phase="Succeeded"),
        job_set("a1", "1", phase="Failed"),
        job_set("c1", "1"),
    ]
    assert names(eligible(pods, ground(), planned=())) == ["a0", "a1", "c1"]


def volcano(name: str, task: str, **more: Any) -> PodRecord:
    said = {"scheduling.k8s.io/group-name": "pg", "volcano.sh/task-spec": task}
    return pod(name, size=more.pop("size", None), annotations=said, **more)


SPEC = {"minMember": 3, "minTaskMember": {"ps": 1, "worker": 2}}
GROUND = ground(groups=Groups({(VOLCANO_GROUPS, "pg"): SPEC}))


def test_before_the_first_plan_each_part_has_as_many_members_as_it_needs() -> None:
    pods = [volcano(f"w{index}", "worker") for index in range(4)]
    assert names(eligible(pods, GROUND, planned=())) == ["w0", "w1"]
    pods.append(volcano("p", "ps"))
    assert names(eligible(pods, GROUND, planned=())) == ["w0", "w1", "p"]
    # A dead one does not stand for its part.
    pods[0] = volcano("w0", "worker", phase="Failed")
    assert names(eligible(pods, GROUND, planned=())) == ["w0", "w1", "w2", "p"]


def test_once_the_parts_have_their_minimum_all_pods_count() -> None:
    pods = [volcano(f"w{index}", "worker") for index in range(4)]
    assert names(eligible(pods, GROUND, planned={"pod-w0"})) == ["w0", "w1", "w2", "w3"]


def test_a_size_of_ours_is_not_of_parts() -> None:
    pods = [volcano(f"w{index}", "worker", size="3") for index in range(4)]
    assert len(eligible(pods, GROUND, planned=())) == 4


def test_pods_of_nobody_else_all_count() -> None:
    pods = [pod("a"), pod("b")]
    assert eligible(pods, ground(), planned=()) == pods
