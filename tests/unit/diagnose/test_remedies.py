"""The smallest change with which a claim fits; each was tried before it is offered."""

import copy
from typing import Any

import pytest

from dragoon.diagnose.cluster import Cluster
from dragoon.diagnose.remedies import Remedies, remedies
from dragoon.diagnose.remedies.change import edited
from tests.unit.diagnose.cases import GPU_CLASS, Raw, class_, exactly, gpu, pod, slice_
from tests.unit.diagnose.scenes import gpus, holding, node, one_node, pending, snapshot, wanting

D = "device.attributes['gpu.dragoon.dev']"
MEMORY = "device.capacity['gpu.dragoon.dev'].memory"


def selecting(*texts: str, **fields: Any) -> Raw:
    return exactly(selectors=[{"cel": {"expression": text}} for text in texts], **fields)


def kinds(found: Remedies) -> list[tuple[str, str]]:
    return [(one.kind, one.after) for one in found.offered]


def test_fewer_devices_are_offered_as_many_as_fit() -> None:
    found = remedies(one_node(*gpus(3)), pending(wanting(exactly(count=5))))
    (only,) = found.offered
    assert (only.kind, only.before, only.after, only.node) == ("count", "5", "3", "n")
    assert only.path == "spec.devices.requests[0].exactly.count"
    assert str(only) == (
        "claim default/want, spec.devices.requests[0].exactly.count: 3 instead of 5; "
        "then it fits on node n"
    )


def test_80_gi_becomes_79_gi() -> None:
    text = f"{MEMORY}.compareTo(quantity('80Gi')) >= 0"
    found = remedies(one_node(*gpus(1)), pending(wanting(selecting(text))))
    assert kinds(found)[0] == ("amount", text.replace("80Gi", "79Gi"))


def test_an_upper_bound_is_raised() -> None:
    text = f"{MEMORY}.compareTo(quantity('40Gi')) <= 0"
    found = remedies(one_node(gpu("a", "x", "48Gi")), pending(wanting(selecting(text))))
    assert kinds(found)[0] == ("amount", text.replace("40Gi", "48Gi"))


def test_less_of_a_shared_capacity_is_offered_as_much_as_is_left() -> None:
    shared = {
        **gpu("s", "x", "24Gi"),
        "allowMultipleAllocations": True,
    }
    holder = holding("x", "s")
    holder["status"]["allocation"]["devices"]["results"][0] |= {
        "shareID": "00000000-0000-0000-0000-000000000001",
        "consumedCapacity": {"memory": "20Gi"},
    }
    wish = exactly(capacity={"requests": {"memory": "8Gi"}})
    found = remedies(one_node(shared, held=[holder]), pending(wanting(wish)))
    assert kinds(found) == [("amount", "4Gi"), ("holder", "")]
    assert found.offered[1].claim == "default/x"


def test_one_clause_less_is_offered_with_the_text_that_is_left() -> None:
    text = f"{D}.type == 'gpu' && ({D}.productName == 'x' || {D}.productName == 'y')"
    found = remedies(one_node(*gpus(1)), pending(wanting(selecting(text))))
    assert kinds(found) == [("clause", f"{D}.type == 'gpu'")]


def test_a_selector_that_can_be_left_out_as_a_whole() -> None:
    found = remedies(one_node(*gpus(1)), pending(wanting(selecting(f"{D}.type == 'mig'"))))
    assert kinds(found) == [("clause", "")]
    assert "leave this selector out" in str(found.offered[0])


def test_a_read_that_fails_is_guarded_where_that_is_enough() -> None:
    text = f"{D}.architecture == 'Hopper'"
    devices = (gpu("a", "x", "1Gi"), gpu("b", "x", "1Gi", architecture="Hopper"))
    found = remedies(one_node(*devices), pending(wanting(selecting(text))))
    assert kinds(found)[0] == ("guard", f"has({D}.architecture) && {text}")


def test_a_constraint_that_can_be_left_out() -> None:
    devices = (gpu("a", "x", "1Gi", nvlinkDomain="1"), gpu("b", "x", "1Gi", nvlinkDomain="2"))
    wish = wanting(
        exactly(count=2), constraints=[{"matchAttribute": "gpu.dragoon.dev/nvlinkDomain"}]
    )
    found = remedies(one_node(*devices), pending(wish))
    assert kinds(found) == [("count", "1"), ("constraint", "")]


@pytest.mark.parametrize("value", ["", "v"])
def test_a_toleration_for_the_taint_that_is_there(value: str) -> None:
    taint = {"key": "dragoon.dev/other-owner", "value": value, "effect": "NoSchedule"}
    tainted = {**gpus(1)[0], "taints": [taint]}
    found = remedies(one_node(tainted), pending(wanting(exactly())))
    shown = f"dragoon.dev/other-owner{'=' if value else ''}{value}:NoSchedule"
    assert kinds(found) == [("toleration", shown)]


def test_a_toleration_for_a_rule() -> None:
    rule = {
        "kind": "DeviceTaintRule",
        "metadata": {"name": "gang"},
        "spec": {
            "deviceSelector": {"driver": "gpu.dragoon.dev", "pool": "n/gpu"},
            "taint": {"key": "dragoon.dev/gang", "value": "g", "effect": "NoSchedule"},
        },
    }
    cluster = Cluster(snapshot(slice_(*gpus(1)), node(), rule))
    assert kinds(remedies(cluster, pending(wanting(exactly())))) == [
        ("toleration", "dragoon.dev/gang=g:NoSchedule")
    ]


def test_another_class() -> None:
    cluster = Cluster(snapshot(slice_(*gpus(1)), node(), class_("none", "false")))
    found = remedies(cluster, pending(wanting(exactly(class_name="none"))))
    assert kinds(found) == [("class", "gpu.dragoon.dev")]
    found = remedies(cluster, pending(wanting(exactly(class_name="misspelt"))))
    assert kinds(found) == [("class", "gpu.dragoon.dev")]


def test_a_holder_that_would_be_enough_is_named_with_its_pods() -> None:
    user = pod([{"name": "g", "resourceClaimName": "y"}], [], name="trainer")
    held = [holding("x", "gpu-0"), holding("y", "gpu-1", "gpu-2")]
    cluster = Cluster(snapshot(slice_(*gpus(3)), node(), *held, user))
    found = remedies(cluster, pending(wanting(exactly(count=2))))
    (only,) = found.offered
    assert (only.kind, only.claim, only.pods) == ("holder", "default/y", ("default/trainer",))
    assert str(only) == "claim default/y gone (used by pod default/trainer); then it fits on node n"


def test_holders_of_which_none_can_stay() -> None:
    held = [holding(name, f"gpu-{i}") for i, name in enumerate("abc")]
    found = remedies(one_node(*gpus(3), held=held), pending(wanting(exactly(count=2))))
    assert [(one.kind, one.claim) for one in found.offered] == [("holder", "default/b, default/c")]


def test_the_smallest_change_comes_first_and_each_field_once() -> None:
    held = [holding("x", "gpu-0")]
    wish = wanting(selecting(f"{D}.type == 'gpu'", count=3))
    found = remedies(one_node(*gpus(3), held=held), pending(wish))
    assert [one.kind for one in found.offered] == ["count", "holder"]


def test_all_of_which_one_is_held_becomes_a_number() -> None:
    wish = wanting(exactly(allocationMode="All"))
    found = remedies(one_node(*gpus(3), held=[holding("x", "gpu-1")]), pending(wish))
    assert kinds(found) == [("count", "count: 2"), ("holder", "")]


def test_an_alternative_is_changed_where_it_stands() -> None:
    request = {
        "name": "g",
        "firstAvailable": [
            {"name": "large", "deviceClassName": "gpu.dragoon.dev", "count": 4},
            {"name": "small", "deviceClassName": "gpu.dragoon.dev", "count": 3},
        ],
    }
    found = remedies(one_node(*gpus(2)), pending(wanting(request)))
    assert [(one.path, one.after) for one in found.offered] == [
        ("spec.devices.requests[0].firstAvailable[1].count", "2"),
        ("spec.devices.requests[0].firstAvailable[0].count", "2"),
    ]


def test_where_nothing_helps_it_says_so() -> None:
    found = remedies(one_node(), pending(wanting(exactly())))
    assert (found.offered, found.complete) == ((), True)
    assert "would help" in found.summary()


def test_the_search_ends_at_its_limit_and_says_so() -> None:
    held = [holding(f"h{i}", f"gpu-{i}") for i in range(8)]
    found = remedies(one_node(*gpus(8), held=held), pending(wanting(exactly(count=20))), trials=10)
    assert not found.complete
    assert "stopped at the limit" in found.summary()


def test_a_claim_that_cannot_be_read_has_no_remedy() -> None:
    assert remedies(one_node(*gpus(1)), pending(wanting({"name": "g"}))) == Remedies()


def test_the_same_question_has_the_same_answer_and_changes_nothing() -> None:
    held = [holding("x", "gpu-0")]
    wish = wanting(selecting(f"{MEMORY}.compareTo(quantity('80Gi')) >= 0", count=4))
    before = copy.deepcopy((wish, held, GPU_CLASS))
    cluster = one_node(*gpus(3), held=held)
    first = remedies(cluster, pending(wish))
    assert remedies(cluster, pending(wish)) == first
    assert (wish, held, GPU_CLASS) == before


def test_a_change_is_made_in_a_copy() -> None:
    raw: Raw = {"a": [{"b": 1}, {"b": 2}]}
    assert edited(raw, ("a", 1, "b"), 3) == {"a": [{"b": 1}, {"b": 3}]}
    assert edited(raw, ("a", 0), None) == {"a": [{"b": 2}]}
    assert edited(raw, ("c", "d"), 1) == {**raw, "c": {"d": 1}}
    assert edited(raw, ("a",), None) == {}
    assert raw == {"a": [{"b": 1}, {"b": 2}]}
