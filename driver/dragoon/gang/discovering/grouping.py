"""Which group a pod belongs to, and what its sources say of it. Pure."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
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

_BY_NAME: Final = {source.name: source for source in SOURCES}
_KEEP_ROOM: Final = [one.stays_out for one in SOURCES if one.stays_out is not None]


@dataclass(frozen=True, slots=True)
class Group:
    """The group that a pod is in, as one source has it.

    source: its name. name: empty where it cannot be read; wrong says why.
    """

    source: str
    name: str
    wrong: str = ""


def groups_of(pod: PodRecord) -> tuple[Group, ...]:
    """The groups that a pod says to be in, in the order of the table.

    None where the pod says that its label alone counts. An annotation of ours chooses one source.
    """
    chosen = pod.annotations.get(gang.ANNOTATION_SOURCE)
    if _by_label_alone(pod) or (chosen is None and not _may_be_known(pod)):
        return ()
    found = tuple(group for _, group in _groups(pod))
    if chosen is None or found:
        return found
    wrong = (
        f"annotation {gang.ANNOTATION_SOURCE}: found {chosen[:40]!r}, which does not know this pod; "
        f"allowed is one that does, of {_NAMES}"
    )
    return (Group(chosen[:40], "", wrong),)


def answers_of(pod: PodRecord, ground: Ground) -> tuple[Answer, ...]:
    """What the sources that know a pod say of its groups, in the order of the table."""
    groups = groups_of(pod)
    if not groups:
        return ()
    known = ground.remembered.get(id(pod))
    if known is None:
        found = tuple(_answer(group, pod, ground) for group in groups)
        known = ground.remembered[id(pod)] = pod, found
    return known[1]


def _answer(group: Group, pod: PodRecord, ground: Ground) -> Answer:
    if group.wrong:
        return Answer(group.source, group.name, wrong=group.wrong)
    try:
        numbers = _BY_NAME[group.source].numbers(pod, group.name, ground)
    except InvalidInputError as error:
        return Answer(group.source, group.name, wrong=f"{group.source}: {error.message}")
    return Answer(group.source, group.name, numbers)


def source_of(pod: PodRecord) -> Source | None:
    """The source that names the group of a pod, None where no other project does."""
    return next((source for source, group in _groups(pod) if group.name), None)


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


def _groups(pod: PodRecord) -> Iterator[tuple[Source, Group]]:
    """What the sources that are asked know."""
    if not _may_be_known(pod) or _by_label_alone(pod):
        return
    chosen = pod.annotations.get(gang.ANNOTATION_SOURCE)
    for source in SOURCES:
        if chosen not in {None, source.name}:
            continue
        try:
            name = joined(source.group, pod)
        except InvalidInputError as error:
            yield source, Group(source.name, "", f"{source.name}: {error.message}")
        else:
            if name:
                yield source, Group(source.name, name)


def _may_be_known(pod: PodRecord) -> bool:
    spec = (pod.raw or {}).get("spec") or {}
    return not all(map(_PLACES.isdisjoint, (pod.labels, pod.annotations, spec)))


def _by_label_alone(pod: PodRecord) -> bool:
    return pod.annotations.get(gang.ANNOTATION_SCOPE) == "name"


def _said(pod: PodRecord, name: str) -> str:
    """What a label, or else an annotation, says."""
    return pod.labels.get(name) or pod.annotations.get(name) or ""
