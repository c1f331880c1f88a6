from typing import Any

from dragoon.gang.discovering import checking
from dragoon.gang.discovering.checking import Fault
from dragoon.gang.records import PodRecord
from dragoon.kube.port import COSCHEDULING_GROUPS
from tests.unit.gang.records_for_tests import Groups, gang, ground, job, pod


def found(
    *pods: PodRecord, made: bool = True, size: int = 2, known: tuple[str, ...] = ()
) -> list[Fault]:
    return list(
        checking.faults(
            gang(made=made, size=size), pods, ground=ground(job()), priority_classes=known
        )
    )


def test_pods_that_agree_have_no_fault() -> None:
    assert found(pod("a"), pod("b")) == []


def test_two_sizes_name_who_says_what() -> None:
    (fault,) = found(pod("a", size="2"), pod("b", size="3"), pod("c", size="3"))
    assert fault.reason == "TwoSizes"
    assert "pod team/a says 2; pods team/b, team/c say 3" in fault.message


def test_dead_pods_say_nothing_any_more() -> None:
    assert (
        found(pod("a"), pod("b", size="3", phase="Failed"), pod("c", size="4", deleting=True)) == []
    )


def test_a_gang_of_a_user_has_its_size_and_pods_may_only_repeat_it() -> None:
    assert found(pod("a", size=None), pod("b", size="2"), made=False) == []
    # The Job's parallelism is another thing: only what the pod itself says counts here.
    assert found(pod("a", size=None, owner="j"), made=False) == []
    (fault,) = found(pod("a", size="3"), made=False)
    assert fault.reason == "TwoSizes"
    assert "Gang team/g says 2" in fault.message


def test_different_schedulers_are_told() -> None:
    (fault,) = found(pod("a"), pod("b", schedulerName="volcano"))
    assert fault.reason == "TwoSchedulers"
    assert "spec.schedulerName" in fault.message


def test_a_priority_class_that_is_not_there_is_told_and_a_resolved_one_is_fine() -> None:
    (fault,) = found(pod("a", priorityClassName="high"))
    assert fault.reason == "UnknownPriorityClass"
    assert "'high'" in fault.message
    assert found(pod("a", priorityClassName="high"), known=("high",)) == []
    assert found(pod("a", priorityClassName="high", priority=5)) == []


def test_pods_without_the_gate_are_told_unless_we_took_it_away() -> None:
    pods = [pod("a", gated=False), pod("b", gated=False), pod("c")]
    fault = checking.ungated(pods, {"pod-b"})
    assert fault is not None
    assert [one.name for one in fault.pods] == ["a"]
    assert "spec.schedulingGates" in fault.message
    assert checking.ungated(pods, {"pod-a", "pod-b"}) is None


def test_a_message_names_a_few_pods_and_counts_the_others() -> None:
    text = checking.names([pod(f"p{index}") for index in range(7)])
    assert text == "pods team/p0, team/p1, team/p2, team/p3, team/p4 and 2 more"


def test_the_size_that_is_wanted_is_the_one_all_living_pods_say() -> None:
    assert checking.wanted_size([pod("a", size="3"), pod("b", size="3")], ground()) == 3
    assert checking.wanted_size([pod("a", size="3"), pod("b", size="2")], ground()) is None
    assert checking.wanted_size([pod("a", size="x")], ground()) is None
    assert checking.wanted_size([], ground()) is None


def kueue(name: str, group: str, **more: Any) -> PodRecord:
    said = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    labels = {"kueue.x-k8s.io/pod-group-name": group, **more.pop("labels", {})}
    return pod(name, size=None, labels=labels, annotations=said)


COSCHEDULING = {"scheduling.x-k8s.io/pod-group": "pg"}


def test_members_in_two_groups_of_another_project_are_told_with_who_is_in_which() -> None:
    groups = ground(groups=Groups({(COSCHEDULING_GROUPS, "pg"): {"minMember": 2}}))
    pods = [kueue("a", "x", labels=COSCHEDULING), kueue("b", "y", labels=COSCHEDULING)]
    (fault,) = checking.faults(gang(), pods, ground=groups, priority_classes=())
    assert fault.reason == "TwoGroups"
    assert (
        "Kueue: found pod team/a in 'x'; pod team/b in 'y'; allowed is one group" in fault.message
    )
    # A Gang that a user wrote is of the label alone.
    assert not checking.faults(gang(made=False), pods, ground=groups, priority_classes=())


def test_a_group_with_pods_in_another_gang_is_told() -> None:
    pods = [kueue("a", "x"), kueue("b", "x")]
    other = pod("c", group="h")
    (fault,) = checking.faults(
        gang(), pods, ground=ground(), priority_classes=(), elsewhere=[other]
    )
    assert fault.reason == "TwoGroups"
    assert fault.pods == (other,)
    assert "pod team/c of the same group: found in another gang, by label dragoon.dev/gang 'h'" in (
        fault.message
    )


def test_a_group_object_that_is_missing_is_waited_for_and_no_fault_of_the_pods() -> None:
    pods = [pod(name, size=None, labels=COSCHEDULING) for name in "ab"]
    (fault,) = checking.faults(gang(), pods, ground=ground(), priority_classes=())
    assert fault.waits
    assert fault.reason == "GroupMissing"
    # Whoever wrote the Gang has said its size.
    assert not checking.faults(gang(made=False), pods, ground=ground(), priority_classes=())


def test_a_pod_that_says_two_things_about_its_group_is_told_alone() -> None:
    one = pod("a")
    fault = checking.bad_group(one, "Kueue: found 'x' and 'y'; allowed is one")
    assert fault.reason == "BadGroup"
    assert fault.message == "pod team/a: Kueue: found 'x' and 'y'; allowed is one"
