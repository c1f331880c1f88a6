"""Who holds devices, or room on nodes, that a gang waits for. Pure.

Pods that are of no use without each other leave together: the members of a gang, and pods that
share a claim.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

from dragoon.allocator.gang.model import Amounts
from dragoon.allocator.gang.vacating import Occupant
from dragoon.gang.records import JobRecord, PodRecord
from dragoon.gang.waiting import durations

_MADE_AGAIN_AT_ONCE: Final = frozenset(("DaemonSet", "Node"))
"""Owners of pods that come back to the node that they left."""
_NAMED: Final = 3


class _Groups:
    """Pods that leave together: keys that are joined, by a tree that gets flatter (union-find)."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def root(self, key: str) -> str:
        above = self._above.setdefault(key, key)
        while above != self._above[above]:
            above = self._above[above] = self._above[self._above[above]]
        self._above[key] = above
        return above

    def join(self, one: str, other: str) -> None:
        self._above[self.root(one)] = self.root(other)


def occupants(
    pods: Iterable[PodRecord],
    *,
    gang_of: Callable[[PodRecord], str],
    jobs: Mapping[str, JobRecord],
    now: datetime,
) -> tuple[Occupant, ...]:
    """All that hold a claim or are on a node, but for pods that would come back at once.

    pods: of the cluster, without those of the gang that asks. gang_of: the gang that has placed a
    pod, as `namespace/name`, empty where none has.
    """
    groups = _Groups()
    there: list[PodRecord] = []
    for pod in pods:
        if pod.ended or not (pod.claims or pod.node) or _comes_back(pod):
            continue
        there.append(pod)
        gang = gang_of(pod)
        if gang:
            groups.join(f"pod {pod}", f"gang {gang}")
        for claim in pod.claims:
            groups.join(f"pod {pod}", f"claim {pod.namespace}/{claim}")
    together: defaultdict[str, list[PodRecord]] = defaultdict(list)
    for pod in there:
        together[groups.root(f"pod {pod}")].append(pod)
    return tuple(_occupant(found, gang_of, jobs, now) for found in together.values())


def _comes_back(pod: PodRecord) -> bool:
    return pod.owner is not None and pod.owner.kind in _MADE_AGAIN_AT_ONCE


def _occupant(
    pods: list[PodRecord],
    gang_of: Callable[[PodRecord], str],
    jobs: Mapping[str, JobRecord],
    now: datetime,
) -> Occupant:
    pods.sort(key=lambda pod: pod.key)
    used: defaultdict[str, Counter[str]] = defaultdict(Counter)
    counts: Counter[str] = Counter()
    for pod in pods:
        node = pod.node or pod.nominated
        if node:
            used[node].update(pod.amounts)
            counts[node] += 1
    amounts: dict[str, Amounts] = dict(used)
    end = durations.latest(durations.ends(pod, jobs, now) for pod in pods)
    claims = (f"{pod.namespace}/{claim}" for pod in pods for claim in pod.claims)
    return Occupant(
        name=_name(pods, gang_of),
        priority=max(pod.priority for pod in pods),
        pods=tuple(map(str, pods)),
        claims=tuple(dict.fromkeys(claims)),
        used=amounts,
        counts=dict(counts),
        lasting=float("inf") if end is None else (end - now).total_seconds(),
    )


def _name(pods: list[PodRecord], gang_of: Callable[[PodRecord], str]) -> str:
    gangs = sorted({gang for pod in pods if (gang := gang_of(pod))})
    if gangs:
        return f"gang {', '.join(gangs)}"
    more = f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else ""
    return f"pod{'s' * (len(pods) > 1)} {', '.join(map(str, pods[:_NAMED]))}{more}"
