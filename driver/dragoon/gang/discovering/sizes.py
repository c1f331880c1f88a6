"""How many members of a gang have to run together, as its pods say it.

Our own annotation counts first. Without it, what other projects say of their groups counts
(`table`); two different numbers on one pod are refused. What nobody says is the parallelism of the
pod's Job.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoon.api import gang
from dragoon.errors import InvalidInputError
from dragoon.gang.discovering.answers import Answer, Ground, count
from dragoon.gang.discovering.grouping import answers_of
from dragoon.gang.discovering.table import JOB
from dragoon.gang.records import PodRecord


@dataclass(frozen=True, slots=True)
class Size:
    """What a pod says. number: None where it says nothing usable.

    source: where it says it. wrong: why it is not usable. waits: what has to come before it can be
    told; then nothing is wrong.
    """

    number: int | None
    source: str
    wrong: str = ""
    waits: str = ""


def size_of(pod: PodRecord, ground: Ground) -> Size:
    """What a pod says of the size of its gang."""
    own = pod.annotations.get(gang.ANNOTATION_SIZE)
    if own is not None:
        return _own(own)
    answers = answers_of(pod, ground)
    wrong = next((one for one in answers if one.wrong), None)
    if wrong is not None:
        return Size(None, wrong.source, wrong.wrong)
    waits = next((one for one in answers if one.numbers.waits), None)
    if waits is not None:
        return Size(None, waits.source, waits=waits.numbers.waits)
    told = [one for one in answers if one.numbers.minimum is not None]
    if told:
        return _agreed(told)
    if ground.job_of(pod) is not None:
        return _of_job(pod, ground)
    return Size(None, "", f"annotation {gang.ANNOTATION_SIZE}: found none, allowed is {gang.SIZES}")


def _own(text: str) -> Size:
    where = f"annotation {gang.ANNOTATION_SIZE}"
    try:
        return Size(count(text, where), where)
    except InvalidInputError as error:
        return Size(None, where, error.message)


def _agreed(answers: Sequence[Answer]) -> Size:
    """The number that all say; the first source's name."""
    first = answers[0]
    if len({one.numbers.minimum for one in answers}) > 1:
        said = ", ".join(f"{one} says {one.numbers.minimum}" for one in answers)
        return Size(
            None,
            first.source,
            f"two sizes: {said}; write annotation {gang.ANNOTATION_SIZE} to choose a number, or "
            f"{gang.ANNOTATION_SOURCE} to choose a group",
        )
    return Size(first.numbers.minimum, first.source)


def _of_job(pod: PodRecord, ground: Ground) -> Size:
    try:
        return Size(JOB.numbers(pod, "", ground).minimum, JOB.minimum)
    except InvalidInputError as error:
        return Size(None, JOB.name, error.message)
