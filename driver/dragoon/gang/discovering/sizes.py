"""How many members of a gang have to run together, as its pods say it.

Our own annotation counts first. Without it, groups that others declare are recognised by a table
(gang.md 1.9); two of them with different numbers on one pod are refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from dragoon.api import gang
from dragoon.gang.records import JobRecord, PodRecord

KUEUE_TOTAL: Final = "kueue.x-k8s.io/pod-group-total-count"
_ALLOWED: Final = f"a whole number from 1 to {gang.MOST_MEMBERS}"


@dataclass(frozen=True, slots=True)
class Size:
    """What a pod says. number: None where it says nothing usable; wrong: why, empty if it does.

    source: where it says it.
    """

    number: int | None
    source: str
    wrong: str = ""


_Read = Callable[[PodRecord, JobRecord | None], str | None]

_ADAPTERS: Final[Mapping[str, _Read]] = {
    f"annotation {KUEUE_TOTAL}": lambda pod, _: pod.annotations.get(KUEUE_TOTAL),
    "spec.parallelism of its Job": lambda _, job: None if job is None else str(_at_once(job)),
}


def size_of(pod: PodRecord, jobs: Mapping[str, JobRecord]) -> Size:
    """What a pod says of the size of its gang."""
    own = pod.annotations.get(gang.ANNOTATION_SIZE)
    if own is not None:
        return _parsed(own, f"annotation {gang.ANNOTATION_SIZE}")
    job = None if pod.owner is None else jobs.get(pod.owner.uid)
    found = {source: text for source, read in _ADAPTERS.items() if (text := read(pod, job))}
    if not found:
        return Size(
            None,
            "",
            f"annotation {gang.ANNOTATION_SIZE}: found none, allowed is {_ALLOWED}",
        )
    if len(set(found.values())) > 1:
        said = ", ".join(f"{source} says {text}" for source, text in found.items())
        return Size(
            None,
            "",
            f"two sizes: {said}; write annotation {gang.ANNOTATION_SIZE} to choose",
        )
    source, text = next(iter(found.items()))
    return _parsed(text, source)


def _parsed(text: str, source: str) -> Size:
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit() and 0 < int(stripped[:9]) <= gang.MOST_MEMBERS:
        return Size(int(stripped), source)
    return Size(None, source, f"{source}: found {text[:40]!r}, allowed is {_ALLOWED}")


def _at_once(job: JobRecord) -> int:
    """The pods of a Job that run at the same time."""
    if job.completions is None:
        return job.parallelism
    return min(job.parallelism, job.completions)
