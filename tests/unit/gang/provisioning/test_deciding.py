"""Whether nodes are asked for, and what is said of it."""

from typing import Any

import pytest

from dragoon.gang.provisioning.deciding import ANNOTATION_CLASS, Need, class_of, decide, told
from dragoon.gang.provisioning.objects import MOST_SHAPES
from dragoon.gang.records import PodRecord
from tests.unit.gang.records_for_tests import gang, pod

CLASS = "check-capacity.autoscaling.x-k8s.io"


def need(**more: Any) -> Need:
    pods = more.pop("pods", (pod("a"), pod("b")))
    fields: dict[str, Any] = {"class_name": CLASS, "has_no_room": True, **more}
    return Need(gang(size=2), pods, **fields)


def asked(name: str, *conditions: str, created: str = "2026-11-29T19:00:00Z") -> dict[str, Any]:
    found = [
        {"type": one, "status": "True", "reason": f"{one}Reason", "message": "text"}
        for one in conditions
    ]
    meta = {"name": name, "uid": f"uid-{name}", "creationTimestamp": created}
    return {"metadata": meta, "status": {"conditions": found}}


def wanted() -> str:
    found = decide(need()).asking
    assert found is not None
    return found.name


def test_a_gang_without_room_needs_one_request() -> None:
    found = decide(need())
    assert found.asking is not None
    assert found.asking.body["spec"]["provisioningClassName"] == CLASS
    assert decide(need(asked=(asked(wanted()),))).asking is None


def test_what_was_asked_for_another_need_is_withdrawn() -> None:
    found = decide(need(asked=(asked("old"), asked(wanted()))))
    assert found.withdrawn == (("old", "uid-old"),)
    assert found.asking is None


@pytest.mark.parametrize(
    "change",
    [
        {"has_no_room": False},
        {"class_name": ""},
        {"class_name": "Not A Class"},
        {"missing": "the API server does not have it"},
        {"pods": (pod("a", gated=False), pod("b", phase="Failed"))},
    ],
    ids=["room", "no class", "bad class", "not served", "nobody waits"],
)
def test_when_nothing_is_written(change: dict[str, Any]) -> None:
    found = decide(need(**change, asked=(asked("old"),)))
    assert (found.asking, found.withdrawn) == (None, ())


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((), ("Unknown", "Asked")),
        (("Accepted",), ("Unknown", "Accepted")),
        (("Accepted", "Provisioned"), ("True", "Provisioned")),
        (("Provisioned", "BookingExpired"), ("False", "BookingExpired")),
        (("Provisioned", "CapacityRevoked"), ("False", "CapacityRevoked")),
        (("Accepted", "Failed"), ("False", "Failed")),
        (("SomethingNew",), ("Unknown", "Asked")),
    ],
)
def test_what_the_autoscaler_says_is_said_again(
    conditions: tuple[str, ...], expected: tuple[str, str]
) -> None:
    found = told(need(asked=(asked("r", *conditions),)))
    assert found is not None
    assert found[:2] == expected
    assert "ProvisioningRequest r" in found[2]


def test_the_newest_request_counts() -> None:
    old = asked("old", "Failed", created="2026-11-29T18:00:00Z")
    found = told(need(asked=(asked("new", "Accepted"), old)))
    assert found is not None
    assert found[1] == "Accepted"


def test_why_there_is_no_request_is_told() -> None:
    many = tuple(pod(f"p{n}", nodeSelector={"n": str(n)}) for n in range(MOST_SHAPES + 1))
    large = Need(gang(size=len(many)), many, CLASS, has_no_room=True)
    cases = {
        "NotServed": need(missing="the API server does not have it"),
        "BadClass": need(class_name="Not A Class"),
        "TooManyShapes": large,
        "NotCreated": need(failed="it is forbidden"),
    }
    for reason, case in cases.items():
        found = told(case)
        assert found is not None
        assert found[:2] == ("False", reason)
        assert found[2]
    assert f"{ANNOTATION_CLASS}: found 'Not A Class'" in str(told(cases["BadClass"]))
    assert told(need()) == ("Unknown", "Asking", "")
    assert told(need(class_name="")) is None
    assert told(need(has_no_room=False)) is None
    assert told(need(has_no_room=False, asked=(asked("r", "Provisioned"),))) is not None


def test_pods_say_the_class_before_the_setting_does() -> None:
    def of(*said: str) -> tuple[PodRecord, ...]:
        return tuple(
            pod(f"p{n}", annotations={ANNOTATION_CLASS: one} if one else {})
            for n, one in enumerate(said)
        )

    assert class_of(of("", "mine"), "other") == "mine"
    assert class_of(of("", ""), "other") == "other"
    assert class_of(of(""), "") == ""
