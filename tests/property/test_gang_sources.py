"""No shape of a pod or of a group object makes discovery fail, and sources that disagree are refused."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from dragoon.gang.discovering import checking, families
from dragoon.gang.discovering.answers import Ground
from dragoon.gang.discovering.eligible import eligible
from dragoon.gang.discovering.grouping import answers_of, groups_of, slot_of, stays_out
from dragoon.gang.discovering.sizes import size_of
from dragoon.gang.discovering.table import OBJECTS, SOURCES
from dragoon.gang.records import PodRecord
from dragoon.kube.port import Resource
from tests.unit.gang.discovering.shapes import SHAPES, Shape
from tests.unit.gang.records_for_tests import Groups, gang, pod

_MARKS = [mark for source in SOURCES for mark in (*source.group, *source.slot)]
_MARKS += [
    mark
    for source in SOURCES
    for mark in (source.part, source.attempt, source.stays_out)
    if mark is not None
]
_NAMES = sorted(
    {
        *(name for mark in _MARKS for name in (*mark.label, *mark.annotation)),
        *(name for shape in SHAPES for name in (*shape.labels, *shape.annotations)),
        *("dragoon.dev/gang-size", "dragoon.dev/gang-scope", "dragoon.dev/gang-source"),
    }
)
_TEXTS = st.sampled_from(
    ["", "0", "1", "2", "-1", "4096", "9" * 40, "²", "name", "a/b", "true", "JobSet", "x" * 400]
) | st.text(max_size=8)
_TASKS = st.sampled_from(["[", "[]", "[[]]", "{}", '[{"name": 1}]', "[" * 5000, '"\\ud800"'])
_SAID = st.dictionaries(st.sampled_from(_NAMES), _TEXTS | _TASKS, max_size=6)
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_KEYS = st.sampled_from(
    sorted(
        {
            *("schedulingPolicy", "gang", "basic", "minCount", "minMember", "minTaskMember"),
            *("minSubGroup", "subGroups", "name", "parent", "podgroups", "minReplicas"),
            *("podReferences", "replicas", "maxReplicas", "numOfHosts", "workerGroupSpecs"),
            *("suspend", "enableInTreeAutoscaling", "replicatedJobs", "groupName", "template"),
            *("spec", "parallelism", "completions", "dependsOn", "startupPolicy"),
        }
    )
)
_SPECS = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


class Anything(Groups):
    """One spec for every object that is asked for."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self._spec = spec

    def find(self, resource: Resource, namespace: str, name: str) -> dict[str, Any] | None:
        return {"spec": self._spec}


@st.composite
def pods(draw: st.DrawFn) -> PodRecord:
    name = draw(st.sampled_from(["p0", "p1", "p2"]))
    more: dict[str, Any] = {}
    if draw(st.booleans()):
        more["schedulingGroup"] = draw(st.sampled_from([{}, {"podGroupName": "pg"}, None, "x"]))
    return pod(
        name,
        size=draw(st.none() | _TEXTS),
        labels=draw(_SAID),
        annotations=draw(_SAID),
        owner=draw(st.sampled_from(["", "j"])),
        phase=draw(st.sampled_from(["Pending", "Running", "Failed"])),
        **more,
    )


@settings(deadline=None)
@given(st.lists(pods(), min_size=1, max_size=3), _SPECS)
def test_no_pod_and_no_group_object_makes_discovery_fail(found: list[PodRecord], spec: Any) -> None:
    ground = Ground(Anything(spec), {})
    for one in found:
        for answer in answers_of(one, ground):
            assert answer.group or answer.wrong
            said = answer.numbers.minimum is not None
            event(f"{answer.source}: {'wrong' if answer.wrong else said}")
        size = size_of(one, ground)
        assert [size.number is not None, bool(size.wrong), bool(size.waits)].count(True) == 1
        assert size.number is None or 1 <= size.number <= 4096
        slot_of(one)
        stays_out(one)
        assert [(group.source, group.name) for group in groups_of(one)] == [
            (answer.source, answer.group) for answer in answers_of(one, ground)
        ]
    family = families.sort("team", "g", pods=found, gangs=(), jobs={})
    sorted_ = [
        *(one for new in family.missing for one in new.pods),
        *family.unknown,
        *(one for one, _ in family.unsorted),
    ]
    assert len(sorted_) <= len(found)
    for new in family.missing:
        families.body(new, 1, {})
        eligible(new.pods, ground, planned=())
        checking.faults(gang(), new.pods, ground=ground, priority_classes=())


def _both(one: Shape, other: Shape) -> tuple[PodRecord, Ground]:
    """A pod that two sources know, and their objects."""
    objects = {**one.objects, **other.objects}
    both = pod(
        "p",
        size=None,
        labels={**one.labels, **other.labels},
        annotations={**one.annotations, **other.annotations},
        **{**one.spec, **other.spec},
    )
    return both, Ground(Groups(objects), {})


_PAIRS = [
    (one, other)
    for one, other in combinations(SHAPES, 2)
    if one.source != other.source and one.minimum != other.minimum
]


@pytest.mark.parametrize(("one", "other"), _PAIRS, ids=str)
def test_two_sources_that_disagree_are_always_refused(one: Shape, other: Shape) -> None:
    both, ground = _both(one, other)
    size = size_of(both, ground)
    assert size.number is None
    assert "two sizes" in size.wrong
    assert str(one.minimum) in size.wrong
    assert str(other.minimum) in size.wrong
    faults = checking.faults(gang(), [both], ground=ground, priority_classes=())
    assert [fault.reason for fault in faults] == ["BadSize"]
    assert not any(fault.waits for fault in faults)


def test_every_kind_of_object_is_in_a_shape() -> None:
    assert {kind for shape in SHAPES for kind, _ in shape.objects} == set(OBJECTS.values())
