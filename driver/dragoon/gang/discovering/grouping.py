"""Which group a pod belongs to, and what its sources say of it. Pure."""

import contextlib
from collections.abc import Iterator
from typing import Final

from dragoon.api import gang
from dragoon.errors import InvalidInputError
from dragoon.gang.discovering.answers import Answer, Ground, Source
from dragoon.gang.discovering.marks import joined
from dragoon.gang.discovering.table import INDEX, SOURCES
from dragoon.gang.records import PodRecord

_NAMES: Final = ", ".join(source.name for source in SOURCES)
_PLACES: Final = {place for one in SOURCES for place in one.group[0].places}
"""Labels, annotations and fields by which a pod may be known: most pods have none of them."""

_KEEP_ROOM: Final = [one.stays_out for one in SOURCES if one.stays_out is not None]


def answers_of(pod: PodRecord, ground: Ground) -> tuple[Answer, ...]:
    """What the sources that know a pod say of it, in the order of the table.

    None where the pod says that its label alone counts. An annotation of ours chooses one source.
    """
    if not _may_be_known(pod) and gang.ANNOTATION_SOURCE not in pod.annotations:
        return ()
    known = ground.remembered.get(id(pod))
    if known is None:
        known = ground.remembered[id(pod)] = pod, _answers_of(pod, ground)
    return known[1]


def _answers_of(pod: PodRecord, ground: Ground) -> tuple[Answer, ...]:
    chosen = pod.annotations.get(gang.ANNOTATION_SOURCE)
    found = tuple(_answers(pod, ground))
    if chosen is not None and not found and not _by_label_alone(pod):
        wrong = (
            f"annotation {gang.ANNOTATION_SOURCE}: found {chosen[:40]!r}, which does not know this "
            f"pod; allowed is one that does, of {_NAMES}"
        )
        return (Answer(chosen[:40], "", wrong=wrong),)
    return found


def source_of(pod: PodRecord) -> Source | None:
    """The source that names the group of a pod, None where no other project does."""
    for source in _asked(pod):
        with contextlib.suppress(InvalidInputError):
            if joined(source.group, pod):
                return source
    return None


def stays_out(pod: PodRecord) -> bool:
    """Whether a pod is never a member: it only keeps room for one."""
    return any(mark.read(pod) == "true" for mark in _KEEP_ROOM)


def slot_of(pod: PodRecord) -> str:
    """Which member a pod is, the same for its successor; empty where members are alike.

    Of a group of several owners an index of one of them is not enough.
    """
    source = source_of(pod)
    if source is not None and source.slot:
        with contextlib.suppress(InvalidInputError):
            return joined(source.slot, pod)
    index = next((text for name in INDEX if (text := _said(pod, name))), "")
    alone = source is None and not _by_label_alone(pod)
    return index if alone or not index or pod.owner is None else f"{pod.owner.name}/{index}"


def groups_of(pod: PodRecord) -> tuple[tuple[str, str], ...]:
    """The source and the name of each group that a pod says to be in, as far as they can be read."""
    found: list[tuple[str, str]] = []
    for source in _asked(pod):
        with contextlib.suppress(InvalidInputError):
            group = joined(source.group, pod)
            if group:
                found.append((source.name, group))
    return tuple(found)


def _asked(pod: PodRecord) -> tuple[Source, ...]:
    """The sources that may know a pod, in the order of the table."""
    if not _may_be_known(pod) or _by_label_alone(pod):
        return ()
    chosen = pod.annotations.get(gang.ANNOTATION_SOURCE)
    return tuple(one for one in SOURCES if chosen in {None, one.name})


def _may_be_known(pod: PodRecord) -> bool:
    spec = (pod.raw or {}).get("spec") or {}
    return not all(map(_PLACES.isdisjoint, (pod.labels, pod.annotations, spec)))


def _by_label_alone(pod: PodRecord) -> bool:
    return pod.annotations.get(gang.ANNOTATION_SCOPE) == "name"


def _answers(pod: PodRecord, ground: Ground) -> Iterator[Answer]:
    for source in _asked(pod):
        group = ""
        try:
            group = joined(source.group, pod)
            if group:
                yield Answer(source.name, group, source.numbers(pod, group, ground))
        except InvalidInputError as error:
            yield Answer(source.name, group, wrong=f"{source.name}: {error.message}")


def _said(pod: PodRecord, name: str) -> str:
    """What a label, or else an annotation, says."""
    return pod.labels.get(name) or pod.annotations.get(name) or ""
