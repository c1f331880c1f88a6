"""Labels and annotations of gangs with anything in them: a Gang that can exist, or a short answer."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.api import gang as api
from dragoon.api import limits
from dragoon.gang.discovering.checking import bad_group, bad_name, faults
from dragoon.gang.discovering.families import body, sort
from dragoon.gang.discovering.grouping import slot_of
from dragoon.gang.discovering.marks import Mark
from dragoon.gang.discovering.sizes import size_of
from dragoon.gang.discovering.table import SOURCES
from dragoon.gang.provisioning.deciding import ANNOTATION_CLASS, class_of
from dragoon.gang.records import PodRecord
from dragoon.gang.waiting.durations import ANNOTATION_DURATION, lasts
from tests.unit.gang.records_for_tests import gang, ground, pod

_LONGEST = 2_000
"""Characters of a message: it stands in a condition and in an Event."""


def _places() -> tuple[str, ...]:
    """Every label and annotation that is read anywhere."""
    marks = [mark for one in SOURCES for mark in (*one.group, *one.slot, one.part, one.stays_out)]
    said = {name for mark in marks if isinstance(mark, Mark) for name in mark.places}
    return (
        *sorted(said),
        *(api.ANNOTATION_SIZE, api.ANNOTATION_SCOPE, api.ANNOTATION_SOURCE),
        *(ANNOTATION_CLASS, ANNOTATION_DURATION, "yunikorn.apache.org/task-groups"),
        *("kueue.x-k8s.io/pod-group-total-count", "leaderworkerset.sigs.k8s.io/size"),
        *("gang.scheduling.koordinator.sh/min-available",),
    )


_TEXT = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        (
            *(
                "3",
                "0",
                "-1",
                "4097",
                "9" * 5_000,
                "1e9",
                "٣",
                " 3 ",
                "0x10",
                "nan",
                "inf",
                "1e400d",
            ),
            *("../../etc", "a/b", "\x1b[2J", "a\nb", "g" * 64, "x" * 100_000, "\u202e", "{}", "[]"),
            *("[" * 20_000, '[{"name": "g", "minMember": 1e99}]', '[{"name": "g"}]', '{"a": 1}'),
            *("g", "worker", "true", "owner", "name", "PodGroup", "JobSet"),
        )
    ),
)
_SAID = st.dictionaries(st.sampled_from(_places()), _TEXT, max_size=6)
_LABEL = _TEXT.map(lambda text: text[:63])
"""The API server takes no longer value; an annotation may have 256 KiB."""
_LABELS = st.dictionaries(st.sampled_from(_places()), _LABEL, max_size=6)


@given(st.lists(st.tuples(_LABELS, _SAID, _LABEL), min_size=1, max_size=4))
@settings(max_examples=150)
def test_a_gang_that_can_exist_or_a_short_answer(said: list[tuple[Any, Any, str]]) -> None:
    pods = [
        pod(f"p{number}", group=group, owner="j", size=None, labels=labels, annotations=annotations)
        for number, (labels, annotations, group) in enumerate(said)
    ]
    for group in {one.group for one in pods if one.group}:
        _check(group, [one for one in pods if one.group == group])


def _check(group: str, pods: list[PodRecord]) -> None:
    family = sort("team", group, pods=pods, gangs=[], jobs={})
    for new in family.missing:
        made = body(new, 1, {})
        assert limits.is_subdomain(made["metadata"]["name"], 63)
        assert {one.uid for one in new.pods} <= {one.uid for one in pods}
    for one, wrong in family.unsorted:
        assert len(bad_group(one, wrong).message) < _LONGEST
    if family.unnamed:
        assert len(bad_name(family.unnamed).message) < _LONGEST
    for one in pods:
        size = size_of(one, ground())
        assert size.number is None or 0 < size.number <= api.MOST_MEMBERS
        slot_of(one)
    for fault in faults(gang(group="g"), pods, ground=ground(), priority_classes=()):
        assert len(fault.message) < _LONGEST


@given(_TEXT, _TEXT)
def test_a_duration_and_a_class_are_read_or_left_out(length: str, name: str) -> None:
    one = pod("p", annotations={ANNOTATION_DURATION: length, ANNOTATION_CLASS: name})
    found = lasts(one)
    assert found is None or found.total_seconds() > 0
    assert class_of([one], "") == name
