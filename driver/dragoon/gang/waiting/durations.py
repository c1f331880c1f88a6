"""Until when a pod runs, where somebody has said so. Pure.

A deadline of the pod or of its Job is kept by Kubernetes (core/v1 and batch/v1
`activeDeadlineSeconds`, from the start of the pod or the Job); an expected duration is only a
promise. Who has outlived what was said has said nothing, and neither has who says more than ten years:
of a Job Kubernetes takes any number of seconds up to 2**63 - 1, and no calendar goes as far.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from dragoon import quantity
from dragoon.errors import InvalidInputError
from dragoon.gang.records import JobRecord, PodRecord, Raw

ANNOTATION_DURATION: Final = "dragoon.dev/expected-duration"
"""On a pod: how long it is going to run, in seconds or as `90m`, `36h`, `2d`."""
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST_S: Final = 10 * 365 * 86400


def duration(text: str) -> timedelta | None:
    """A duration as the annotation has it, None for anything else."""
    number, unit = (text[:-1], text[-1:]) if text[-1:] in _UNITS else (text, "s")
    try:
        seconds = quantity.parse(number).as_approximate_float() * _UNITS[unit]
    except InvalidInputError:
        return None
    return timedelta(seconds=seconds) if 0 < seconds <= _LONGEST_S else None


def lasts(pod: PodRecord) -> timedelta | None:
    """How long a pod runs once it has started; None where nobody has said so."""
    spec: Raw = (pod.raw or {}).get("spec") or {}
    meta: Raw = (pod.raw or {}).get("metadata") or {}
    said = duration(str((meta.get("annotations") or {}).get(ANNOTATION_DURATION) or ""))
    known = [one for one in (said, _length(spec.get("activeDeadlineSeconds"))) if one is not None]
    return min(known) if known else None


def job_end(pod: PodRecord, jobs: Mapping[str, JobRecord]) -> datetime | None:
    """When the Job of a pod is ended by its deadline, None where it has none or has not started."""
    job = None if pod.owner is None else jobs.get(pod.owner.uid)
    length = None if job is None or not job.started else _length(job.deadline)
    return None if job is None or length is None else datetime.fromisoformat(job.started) + length


def ends(pod: PodRecord, jobs: Mapping[str, JobRecord], now: datetime) -> datetime | None:
    """When a pod that runs has ended, None where that is not known or was said wrong."""
    status: Raw = (pod.raw or {}).get("status") or {}
    started, length = status.get("startTime"), lasts(pod)
    found = [job_end(pod, jobs)]
    if started and length is not None:
        found.append(datetime.fromisoformat(started) + length)
    end = min((one for one in found if one is not None), default=None)
    return end if end is not None and end > now else None


def _length(deadline: int | None) -> timedelta | None:
    """A deadline in seconds, None for one that says nothing."""
    if deadline is None or deadline > _LONGEST_S:
        return None
    return timedelta(seconds=deadline)


def latest(found: Iterable[datetime | None]) -> datetime | None:
    """When all have ended, None where that is not known of one."""
    known = list(found)
    if not known or None in known:
        return None
    return max(one for one in known if one is not None)
