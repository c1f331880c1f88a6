"""Which pods of a gang may be placed now, where its source tells parts or attempts apart. Pure."""

from collections.abc import Collection, Mapping, Sequence

from dragoon.api import gang
from dragoon.errors import InvalidInputError
from dragoon.gang.discovering.answers import Ground
from dragoon.gang.discovering.grouping import answers_of, source_of
from dragoon.gang.discovering.marks import Mark
from dragoon.gang.records import PodRecord


def eligible(
    pods: Sequence[PodRecord], ground: Ground, *, planned: Collection[str]
) -> list[PodRecord]:
    """The pods that count. planned: UIDs of those with a place, which always do while they run.

    Of a group that was started again (JobSet) those of the last attempt: one of an attempt before
    is not placed any more, and has done no work of this one. A successor in the same attempt
    replaces one member and is not held up by this. Of a group with parts and nothing placed yet: of
    each part as many as it needs, so that a minimum of pods is a minimum of each part too.
    """
    source = next((found for pod in pods if (found := source_of(pod)) is not None), None)
    if source is None:
        return list(pods)
    kept = list(pods) if source.attempt is None else _last_attempt(pods, source.attempt, planned)
    parts = {} if planned else _parts(kept, ground)
    return kept if source.part is None or not parts else _needed(kept, source.part, parts)


def _last_attempt(
    pods: Sequence[PodRecord], mark: Mark, planned: Collection[str]
) -> list[PodRecord]:
    attempts = {pod.uid: _number(mark, pod) for pod in pods}
    last = max(attempts.values(), default=0)
    return [
        pod for pod in pods if attempts[pod.uid] == last or (pod.uid in planned and not pod.ended)
    ]


def _parts(pods: Sequence[PodRecord], ground: Ground) -> Mapping[str, int]:
    """What each part needs; nothing where the pods say a number of their own."""
    if any(gang.ANNOTATION_SIZE in pod.annotations for pod in pods):
        return {}
    said = (answer.numbers.parts for pod in pods for answer in answers_of(pod, ground)[:1])
    return next((parts for parts in said if parts), {})


def _needed(pods: Sequence[PodRecord], part: Mark, parts: Mapping[str, int]) -> list[PodRecord]:
    left = dict(parts)
    kept: list[PodRecord] = []
    for pod in pods:
        name = _text(part, pod)
        if not pod.is_alive or left.get(name, 0) > 0:
            kept.append(pod)
            left[name] = left.get(name, 0) - pod.is_alive
    return kept


def _number(mark: Mark, pod: PodRecord) -> int:
    text = _text(mark, pod)
    return int(text[:9]) if text.isascii() and text.isdigit() else 0


def _text(mark: Mark, pod: PodRecord) -> str:
    """What a mark says, empty if it cannot be read: the group itself is then told to be wrong."""
    try:
        return mark.read(pod)
    except InvalidInputError:
        return ""
