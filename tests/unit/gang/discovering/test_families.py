from dragoon.api.gang import GangObject
from dragoon.gang.discovering.families import Family, body, owner_references, sort
from dragoon.gang.records import JobRecord, PodRecord
from tests.unit.gang.records_for_tests import gang, ground, job, pod


def sorted_(
    *pods: PodRecord,
    gangs: tuple[GangObject, ...] = (),
    jobs: tuple[JobRecord, ...] = (),
    taken: frozenset[str] = frozenset(),
    group: str = "g",
) -> Family:
    return sort("team", group, pods=pods, gangs=gangs, ground=ground(*jobs), taken=taken)


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
    assert [one["uid"] for one in owner_references(new, new.pods, {})] == ["pod-a", "pod-b"]
    many = [pod(f"p{index}") for index in range(257)]
    assert owner_references(new, many, {}) == []


def test_a_gang_of_a_job_goes_with_the_job() -> None:
    (new,) = sorted_(pod("a", owner="j"), jobs=(job("j"),)).missing
    assert body(new, 3, {})["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-j"}
    ]
