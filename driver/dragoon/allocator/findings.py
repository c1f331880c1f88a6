"""Why a claim gets its devices, or why not, as data: what each step leaves, and who is out."""

from dataclasses import dataclass

from dragoon.allocator.model import DeviceId


@dataclass(frozen=True, slots=True)
class Loser:
    """A device that a step took out, and why, with values."""

    device: DeviceId
    reason: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step: how many devices are left after it, how many it took out, the first of those."""

    name: str
    left: int
    lost: int
    losers: tuple[Loser, ...]


@dataclass(frozen=True, slots=True)
class Funnel:
    """All steps of one request, or of one alternative of it.

    total: devices of the usable pools. left: after all steps. needed: how many are wanted; where
    all are wanted, those that the selectors leave, at least one. chosen: what the request got,
    empty where there is no solution. passed_over: usable devices that come earlier in the order and
    were not taken. alternative_of: the request with firstAvailable, empty for a request of its own.
    """

    claim: str
    request: str
    class_name: str
    needed: int
    total: int
    steps: tuple[Step, ...]
    left: tuple[DeviceId, ...]
    chosen: tuple[DeviceId, ...] = ()
    passed_over: tuple[Loser, ...] = ()
    everything: bool = False
    alternative_of: str = ""

    @property
    def is_short(self) -> bool:
        """Whether too few devices are left, whatever other requests get."""
        return self.missing > 0

    @property
    def missing(self) -> int:
        """How many devices are left too few."""
        return max(0, self.needed - len(self.left))


@dataclass(frozen=True, slots=True)
class Group:
    """Candidates with one value of the attribute of a constraint; value in CEL's notation."""

    value: str
    devices: tuple[DeviceId, ...]


@dataclass(frozen=True, slots=True)
class GroupFinding:
    """What a constraint leaves of the candidates of its requests.

    groups: largest first. without: candidates that have no such attribute. distinct: every device
    has to be of another group; otherwise all have to be of one.
    """

    claim: str
    attribute: str
    requests: tuple[str, ...]
    needed: int
    groups: tuple[Group, ...]
    without: tuple[DeviceId, ...]
    distinct: bool = False

    @property
    def largest(self) -> int:
        """Devices in the largest group, 0 without groups."""
        return len(self.groups[0].devices) if self.groups else 0

    @property
    def is_short(self) -> bool:
        """Whether the constraint cannot be met, whatever else there is."""
        return (len(self.groups) if self.distinct else self.largest) < self.needed


@dataclass(frozen=True, slots=True)
class PoolNote:
    """A pool whose devices cannot be allocated now, and why."""

    pool: str
    problem: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything there is to say about the claims of one pod on one node."""

    node: str
    funnels: tuple[Funnel, ...] = ()
    groups: tuple[GroupFinding, ...] = ()
    pools: tuple[PoolNote, ...] = ()

    @property
    def distance(self) -> tuple[int, int, int]:
        """How far the node is from fitting, to compare nodes: devices missing, then left."""
        by_request: dict[tuple[str, str], int] = {}
        for one in self.funnels:
            key = one.claim, one.alternative_of or one.request
            by_request[key] = min(by_request.get(key, one.missing), one.missing)
        grouped = sum(one.is_short for one in self.groups)
        left = sum(len(one.left) for one in self.funnels)
        return int(not self.funnels), sum(by_request.values()) + grouped, -left
