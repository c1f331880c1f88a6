from typing import Any

from dragoon.api.gang import GangObject, Source
from dragoon.gang.discovering.families import Family, belongs, body, owner_references, sort
from dragoon.gang.records import JobRecord, PodRecord
from tests.unit.gang.records_for_tests import gang, job, pod


def sorted_(
    *pods: PodRecord,
    gangs: tuple[GangObject, ...] = (),
    jobs: tuple[JobRecord, ...] = (),
    taken: frozenset[str] = frozenset(),
    group: str = "g",
) -> Family:
    return sort(
        "team", group, pods=pods, gangs=gangs, jobs={one.uid: one for one in jobs}, taken=taken
    )


def owned(name: str, by: str) -> GangObject:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": by, "uid": f"job-{by}"}
    return gang(name, group="g", owner=owner)


def test_pods_of_one_job_are_one_new_gang_named_after_the_label() -> None:
    found = sorted_(pod("a", owner="j"), pod("b", owner="j"), jobs=(job("j"),))
    (new,) = found.missing
    assert (new.name, new.group) == ("g", "g")
    assert new.owner is not None
    assert new.owner.uid == "job-j"
    assert [one.name for one in new.pods] == ["a", "b"]


def test_two_owners_are_two_gangs_and_the_second_has_another_name() -> None:
    found = sorted_(pod("a", owner="j"), pod("b", owner="k"), jobs=(job("j"), job("k")))
    first, second = found.missing
    assert first.name == "g"
    assert second.name.startswith("g-")
    assert second.owner is not None
    assert second.owner.uid == "job-k"


def test_a_gang_is_found_again_by_its_owner_whatever_its_name() -> None:
    found = sorted_(
        pod("a", owner="j"),
        pod("b", owner="k"),
        gangs=(owned("g", "j"), owned("g-1234", "k")),
        jobs=(job("j"), job("k")),
    )
    assert not found.missing
    assert {name: [one.name for one in pods] for name, pods in found.members.items()} == {
        "g": ["a"],
        "g-1234": ["b"],
    }


def test_a_job_made_anew_is_another_gang_though_the_old_one_is_still_there() -> None:
    again = JobRecord("team", "j", "job-j-2", suspended=False)
    new_pod = pod("b", owner="j-2")
    found = sorted_(
        pod("a", owner="j", phase="Failed"),
        new_pod,
        gangs=(owned("g", "j"),),
        jobs=(job("j"), again),
    )
    (new,) = found.missing
    assert new.pods == (new_pod,)
    assert [one.name for one in found.members["g"]] == ["a"]


def test_a_gang_without_owner_takes_every_pod_that_has_no_gang_of_its_owner() -> None:
    found = sorted_(
        pod("a", owner="j"),
        pod("b", owner="k"),
        pod("bare"),
        gangs=(gang("g", made=False), owned("g-1", "k")),
        jobs=(job("j"), job("k")),
    )
    assert not found.missing
    assert {one.name for one in found.members["g"]} == {"a", "bare"}
    assert [one.name for one in found.members["g-1"]] == ["b"]


def test_the_owner_is_who_made_the_job_but_not_a_cron_job() -> None:
    above = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "s", "uid": "set"}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "cron"}
    found = sorted_(
        pod("a", owner="j"),
        pod("b", owner="k"),
        jobs=(job("j", owner=above), job("k", owner=above)),
    )
    (new,) = found.missing
    assert new.owner is not None
    assert new.owner.uid == "set"
    found = sorted_(pod("a", owner="j"), jobs=(job("j", owner=cron),))
    assert found.missing[0].owner is not None
    assert found.missing[0].owner.uid == "job-j"


def test_pods_of_a_job_that_was_not_seen_yet_wait_for_it() -> None:
    found = sorted_(pod("a", owner="j"))
    assert not found.missing
    assert [one.name for one in found.unknown] == ["a"]


def test_pods_with_the_scope_name_have_no_owner() -> None:
    scope = {"dragoon.dev/gang-scope": "name"}
    found = sorted_(
        pod("a", owner="j", annotations=scope),
        pod("b", owner="k", annotations=scope),
        jobs=(job("j"), job("k")),
    )
    (new,) = found.missing
    assert new.owner is None
    assert len(new.pods) == 2
    assert "owner" not in body(new, 2, {})["spec"]


def test_pods_that_have_ended_or_are_going_make_no_gang() -> None:
    assert sorted_(pod("a", phase="Succeeded"), pod("b", deleting=True)).missing == ()


def test_a_name_that_another_group_has_is_not_taken() -> None:
    (new,) = sorted_(pod("a"), taken=frozenset(("g",))).missing
    assert new.name != "g"
    assert new.name.startswith("g-")


def test_a_label_value_that_can_be_no_name_makes_no_gang() -> None:
    for value in ("Upper", "under_score", "", "x" * 64):
        found = sorted_(pod("a", group=value), group=value)
        assert not found.missing
        assert [one.name for one in found.unnamed] == ["a"]


def test_the_same_pods_in_another_order_give_the_same_answer() -> None:
    pods = [pod("a", owner="j"), pod("b", owner="k"), pod("c", owner="j")]
    jobs = (job("j"), job("k"))
    assert sorted_(*pods, jobs=jobs) == sorted_(*reversed(pods), jobs=jobs)


def test_a_gang_of_bare_pods_goes_with_them_unless_they_are_too_many() -> None:
    (new,) = sorted_(pod("a"), pod("b")).missing
    references = owner_references(new, new.pods, {})
    assert references is not None
    assert [one["uid"] for one in references] == ["pod-a", "pod-b"]
    many = [pod(f"p{index}") for index in range(257)]
    assert owner_references(new, many, {}) == []


def test_a_gang_of_a_job_goes_with_the_job() -> None:
    (new,) = sorted_(pod("a", owner="j"), jobs=(job("j"),)).missing
    assert body(new, 3, {})["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-j"}
    ]


def lws(name: str, index: int, *, group: str = "g", **more: Any) -> PodRecord:
    """A pod of replica `index` of a LeaderWorkerSet: the leader and the workers have two owners."""
    return pod(
        name,
        group=group,
        size=None,
        owner=more.pop("owner", f"llm-{index}"),
        kind="StatefulSet",
        labels={
            "leaderworkerset.sigs.k8s.io/name": "llm",
            "leaderworkerset.sigs.k8s.io/group-index": str(index),
            "leaderworkerset.sigs.k8s.io/worker-index": name[-1],
        },
        annotations={"leaderworkerset.sigs.k8s.io/size": "2", **more.pop("annotations", {})},
    )


def test_groups_of_another_project_are_gangs_whoever_owns_the_pods() -> None:
    pods = [
        lws("a0", 0, owner="llm"),
        lws("a1", 0),
        lws("b0", 1, owner="llm"),
        lws("b1", 1),
    ]
    first, second = sorted_(*pods).missing
    assert [one.name for one in first.pods] == ["a0", "a1"]
    assert [one.name for one in second.pods] == ["b0", "b1"]
    assert (first.name, second.name) == ("g", "llm-1")
    assert (first.owner, first.source) == (None, Source(name="LeaderWorkerSet", group="llm/0"))
    assert body(second, 2, {})["spec"] == {
        "size": 2,
        "source": {"name": "LeaderWorkerSet", "group": "llm/1"},
    }


def test_a_gang_of_a_group_is_found_again_whatever_its_name() -> None:
    source = {"name": "LeaderWorkerSet", "group": "llm/1"}
    found = sorted_(lws("b0", 1), gangs=(gang("other", group="g", source=source),))
    assert not found.missing
    assert [one.name for one in found.members["other"]] == ["b0"]


def test_a_gang_of_a_user_takes_all_groups_under_its_name() -> None:
    found = sorted_(lws("a0", 0), lws("b0", 1), gangs=(gang("g", made=False),))
    assert not found.missing
    assert len(found.members["g"]) == 2


def test_a_pod_whose_group_cannot_be_read_is_in_no_gang_and_others_go_on() -> None:
    torn = lws("a0", 0, annotations={"dragoon.dev/gang-source": "Nobody"})
    found = sorted_(torn, lws("a1", 0))
    assert [one.name for one in found.missing[0].pods] == ["a1"]
    ((one, wrong),) = found.unsorted
    assert one is torn
    assert "found 'Nobody'" in wrong


def test_a_placeholder_is_in_no_gang() -> None:
    said = {
        "yunikorn.apache.org/task-group-name": "t",
        "yunikorn.apache.org/placeholder": "true",
    }
    holder = pod("h", labels={"applicationId": "a"}, annotations=said)
    found = sorted_(holder, pod("p"))
    assert [one.name for one in found.missing[0].pods] == ["p"]
    assert not found.unsorted


def test_a_gang_of_a_group_goes_with_what_made_the_jobs_of_its_pods() -> None:
    above = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "s", "uid": "set"}
    labels = {"jobset.sigs.k8s.io/jobset-name": "s"}
    jobs = (job("j", owner=above), job("k", owner=above))
    pods = [pod("a", owner="j", labels=labels), pod("b", owner="k", labels=labels)]
    (new,) = sorted_(*pods, jobs=jobs).missing
    references = owner_references(new, new.pods, {one.uid: one for one in jobs})
    assert references is not None
    assert [one["kind"] for one in references] == ["JobSet"]


def test_what_a_gang_goes_with_is_not_known_while_the_job_of_a_pod_is_not() -> None:
    """A Job that is gone before its pods must not take the Gang with it."""
    labels = {"jobset.sigs.k8s.io/jobset-name": "s"}
    pods = [pod("a", owner="j", labels=labels, deleting=True), pod("b", owner="k", labels=labels)]
    (new,) = sorted_(*pods).missing
    known = job("k")
    assert owner_references(new, pods, {known.uid: known}) is None
    assert body(new, 2, {})["metadata"]["ownerReferences"] == []


def test_a_pod_belongs_to_a_gang_by_its_label_and_its_group() -> None:
    source = {"name": "LeaderWorkerSet", "group": "llm/0"}
    one = gang("g", source=source)
    assert belongs(lws("a0", 0), one, {})
    assert not belongs(lws("a0", 0, group="h"), one, {})
    assert not belongs(lws("b0", 1), one, {})
