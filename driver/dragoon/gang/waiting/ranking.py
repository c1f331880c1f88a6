"""Who comes first: the higher priority, then the older. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from dragoon.api.gang import GangObject
from dragoon.gang.records import PodRecord


class Rank(NamedTuple):
    """Sorts the first before the second. behind: the priority, negative."""

    behind: int
    created: str
    namespace: str
    name: str

    @property
    def priority(self) -> int:
        """The value of the priority class."""
        return -self.behind


def rank(gang: GangObject, pods: Iterable[PodRecord]) -> Rank:
    """The place of a gang in the queue; its priority is the highest of its living pods."""
    return Rank(-priority(pods), gang.created, gang.namespace, gang.name)


def priority(pods: Iterable[PodRecord]) -> int:
    """The priority of a gang: the highest of its living pods, 0 without any."""
    return max((pod.priority for pod in pods if pod.is_alive), default=0)
