"""The pods that a Workload will have, and what they are to carry."""

from typing import Any

import pytest

from dragoon.api import gang
from dragoon.errors import InvalidInputError
from dragoon.gang.kueue.members import (
    Found,
    NotThereError,
    gang_label,
    needs,
    pod_asks,
    podset_updates,
)
from dragoon.gang.kueue.reading import workload_of
from tests.unit.gang.kueue.workloads import podset, state, workload

Object = dict[str, Any]
TEMPLATE = {"spec": {"spec": {"devices": {"requests": [{"name": "g"}]}}}}
FLAVOR = {
    "spec": {
        "nodeLabels": {"gpu": "h100"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
}


def found(**more: Any) -> Found:
    read: dict[str, Any] = {
        "templates": {"one": TEMPLATE},
        "claims": {},
        "flavors": {"any": FLAVOR},
    }
    return Found(**(read | more))


def test_every_pod_of_every_set_is_asked_for_with_claims_of_its_own() -> None:
    plain = podset(1, name="driver", template="")
    asks = pod_asks(workload_of(workload("w", podset(2), plain)), found())
    assert [one.name for one in asks] == ["w-main-0", "w-main-1", "w-driver-0"]
    uids = [claim["metadata"]["uid"] for one in asks for claim in one.claims]
    assert len(uids) == len(set(uids)) == 2
    assert asks[0].claims[0]["spec"] == TEMPLATE["spec"]["spec"]
    assert not asks[2].claims


@pytest.mark.parametrize("counts", [(gang.MOST_MEMBERS + 1,), (gang.MOST_MEMBERS, 1), (2**31 - 1,)])
def test_more_pods_than_a_gang_may_have_are_refused_before_any_is_made_up(
    counts: tuple[int, ...],
) -> None:
    podsets = [podset(count, name=f"s{index}") for index, count in enumerate(counts)]
    one = workload_of(workload("w", *podsets))
    with pytest.raises(InvalidInputError, match=f"found {sum(counts)} pods, allowed are 4096"):
        pod_asks(one, found())


def test_as_many_pods_as_a_gang_may_have_are_asked_for() -> None:
    one = workload_of(workload("w", podset(gang.MOST_MEMBERS)))
    assert len(pod_asks(one, found())) == gang.MOST_MEMBERS


def test_the_flavor_decides_about_nodes() -> None:
    (ask,) = pod_asks(workload_of(workload()), found())
    assert ask.node_selector == {"gpu": "h100"}
    assert [one.key for one in ask.tolerations] == ["gpu"]


def test_what_other_checks_add_to_the_pods_counts() -> None:
    update = {"name": "main", "nodeSelector": {"new": "yes"}, "tolerations": [{"key": "t"}]}
    raw = workload(checks=[state(), state("Ready", name="other", podSetUpdates=[update])])
    (ask,) = pod_asks(workload_of(raw), found())
    assert ask.node_selector == {"gpu": "h100", "new": "yes"}
    assert {one.key for one in ask.tolerations} == {"gpu", "t"}


def test_as_many_pods_as_were_admitted_and_not_given_back_are_asked_for() -> None:
    raw = workload("w", podset(4))
    raw["status"]["admission"]["podSetAssignments"][0]["count"] = 3
    raw["status"]["reclaimablePods"] = [{"name": "main", "count": 1}]
    assert len(pod_asks(workload_of(raw), found())) == 2


def test_where_kueue_has_put_pods_itself_is_named_as_not_looked_at() -> None:
    raw = workload()
    raw["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = {"levels": ["rack"]}
    (ask,) = pod_asks(workload_of(raw), found())
    assert ask.unmodelled == ("the topology assignment of Kueue",)


def test_a_claim_that_several_pods_name_is_one() -> None:
    claim: Object = {"metadata": {"name": "shared", "uid": "u"}, "spec": {}}
    asks = pod_asks(
        workload_of(workload("w", podset(2, claim="shared"))), found(claims={"shared": claim})
    )
    assert [one.claims for one in asks] == [(claim,), (claim,)]


@pytest.mark.parametrize(
    ("raw", "more", "told"),
    [
        (workload(), {"templates": {}}, "claim template one is not there"),
        (workload("w", podset(claim="mine")), {}, "claim mine is not there"),
        (workload(), {"flavors": {}}, "ResourceFlavor any is not there"),
    ],
)
def test_what_is_missing_is_named(raw: Object, more: Object, told: str) -> None:
    with pytest.raises(NotThereError, match=told):
        pod_asks(workload_of(raw), found(**more))


def test_what_has_to_be_read_is_named_once() -> None:
    raw = workload("w", podset(2), podset(name="b", template="two"), podset(name="c", claim="mine"))
    wanted = needs(workload_of(raw))
    assert (wanted.templates, wanted.claims, wanted.flavors) == (
        ("one", "two"),
        ("mine",),
        ("any",),
    )


def test_several_pods_become_one_gang_of_their_number() -> None:
    raw = workload(
        "job-train", podset(2), podset(1, name="extra"), podset(name="plain", template="")
    )
    updates = podset_updates(workload_of(raw))
    assert [one["name"] for one in updates] == ["main", "extra"]
    for one in updates:
        assert one["labels"] == {gang.LABEL: "job-train"}
        assert one["annotations"] == {
            gang.ANNOTATION_WORKLOAD: "uid-job-train",
            gang.ANNOTATION_SIZE: "3",
            gang.ANNOTATION_SCOPE: "name",
        }


def test_a_single_pod_is_no_gang_but_says_whose_it_is() -> None:
    (update,) = podset_updates(workload_of(workload()))
    assert "labels" not in update
    assert update["annotations"] == {gang.ANNOTATION_WORKLOAD: "uid-job-train"}


@pytest.mark.parametrize("owner", ["Pod", "StatefulSet", "Deployment", "LeaderWorkerSet"])
def test_pods_that_are_there_already_cannot_be_made_a_gang(owner: str) -> None:
    raw = workload("w", podset(2), owner=owner)
    assert gang_label(workload_of(raw)) == ""
    assert all("labels" not in one for one in podset_updates(workload_of(raw)))


def test_what_the_template_says_of_a_gang_stays() -> None:
    labelled = podset(2, labels={gang.LABEL: "mine"})
    raw = workload("w", labelled, podset(2, name="b"), owner="Pod")
    assert gang_label(workload_of(raw)) == "mine"
    assert all("labels" not in one for one in podset_updates(workload_of(raw)))
    sized = podset(2, annotations={gang.ANNOTATION_SIZE: "1"})
    (update,) = podset_updates(workload_of(workload("w", sized)))
    # With another value of one key Kueue would refuse to admit it.
    assert update["annotations"] == {
        gang.ANNOTATION_WORKLOAD: "uid-w",
        gang.ANNOTATION_SCOPE: "name",
    }


def test_a_name_that_is_too_long_for_a_label_is_cut_and_stays_its_own() -> None:
    one, two = (workload_of(workload("w" * 70 + end, podset(2))) for end in ("a", "b"))
    labels = {gang_label(one), gang_label(two)}
    assert len(labels) == 2
    assert all(len(label) <= 63 for label in labels)
