"""Whether a gang may use what is kept for another one. Pure.

EASY backfilling: only what ends before all that the other one waits for has ended. Where nobody
has said how long something runs there is no estimate, and nothing is used.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from dragoon.gang.records import JobRecord, PodRecord
from dragoon.gang.waiting import durations

MARGIN: Final = timedelta(seconds=60)
"""From the plan until the pods have started: a pod's deadline counts from its start."""


def may_use(end: datetime | None, estimate: datetime | None) -> bool:
    """Whether something that has ended by `end` does not delay what waits until `estimate`."""
    return end is not None and estimate is not None and end <= estimate


def end_if_started(
    pods: Iterable[PodRecord], jobs: Mapping[str, JobRecord], now: datetime
) -> datetime | None:
    """When these pods have ended if they are placed now, None where that is not known of one."""
    return durations.latest(_end(pod, jobs, now) for pod in pods if pod.is_alive)


def _end(pod: PodRecord, jobs: Mapping[str, JobRecord], now: datetime) -> datetime | None:
    found: list[datetime] = []
    length = durations.lasts(pod)
    if length is not None:
        found.append(now + MARGIN + length)
    job = durations.job_end(pod, jobs)
    if job is not None:
        found.append(job)
    return min(found, default=None)
