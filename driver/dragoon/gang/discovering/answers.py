"""What the sources of groups are asked, and what they answer. Pure."""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from dragoon.api import gang
from dragoon.errors import InvalidInputError
from dragoon.gang.discovering.marks import Mark
from dragoon.gang.records import JobRecord, PodRecord, Raw
from dragoon.kube.port import Resource

_LARGE: Final = 10**9


class Objects(Protocol):
    """The objects in which other projects keep their groups."""

    def find(self, resource: Resource, namespace: str, name: str) -> Raw | None:
        """The object, None where it is not there or not known yet."""
        ...

    def missing(self, resource: Resource) -> str:
        """Why none of its kind is known, such as an API that is not served; else empty."""
        ...

    def refused(self, resource: Resource) -> str:
        """Why its API cannot be used: the versions that are served; empty where it can."""
        ...


@dataclass(frozen=True, slots=True)
class Numbers:
    """How many members a group has. minimum: None where the source does not say.

    total: how many there will be, None where it is not known. parts: the least of each part of the
    group, by its name, where a source says so. waits: what has to be there before anything is
    known; it may come by itself.
    """

    minimum: int | None = None
    total: int | None = None
    parts: Mapping[str, int] = field(default_factory=dict)
    waits: str = ""


class Proof(enum.StrEnum):
    """On what the tests of a source were run."""

    REAL = "the real project"
    SHAPES = "shapes of ours"


Reader = Callable[[PodRecord, str, "Ground"], Numbers]
"""The numbers of a pod's group: the pod, the group's key, what else is known.

Raises InvalidInputError, naming the field, what was found and what is allowed.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """One way in which pods say that they are a group.

    group: marks whose texts together name the group in its namespace. numbers: the one reader.
    slot: marks that tell one member from another; without them the index of its owner does. part:
    the mark of the part it belongs to. attempt: the mark that grows when the whole group is started
    again. stays_out: the mark of pods that are never members. minimum, total: where the numbers
    stand, for people. object: what has to be read from the API server. scheduler: whose scheduler
    holds the group too. proof: what it was tried with.
    """

    name: str
    group: tuple[Mark, ...]
    numbers: Reader
    minimum: str
    total: str = ""
    slot: tuple[Mark, ...] = ()
    part: Mark | None = None
    attempt: Mark | None = None
    stays_out: Mark | None = None
    object: Resource | None = None
    scheduler: str = ""
    proof: Proof = Proof.SHAPES


@dataclass(frozen=True, slots=True)
class Answer:
    """What one source says of one pod. source: its name. group: empty where it cannot be read.

    wrong: why the answer cannot be used: the field, what was found, what is allowed.
    """

    source: str
    group: str
    numbers: Numbers = Numbers()
    wrong: str = ""

    def __str__(self) -> str:
        return f"{self.source} {self.group}".strip()


@dataclass(frozen=True, slots=True)
class Ground:
    """What numbers are read from beside the pod; the named holder of what one look has found out.

    jobs: by UID. remembered: what was found out about pods, by `id`, with the pod so that it stays
    the same one.
    """

    objects: Objects
    jobs: Mapping[str, JobRecord] = field(default_factory=dict)
    remembered: dict[int, tuple[PodRecord, tuple[Answer, ...]]] = field(
        default_factory=dict, compare=False
    )

    def job_of(self, pod: PodRecord) -> JobRecord | None:
        """The Job that made a pod."""
        return None if pod.owner is None else self.jobs.get(pod.owner.uid)


def count(value: Any, where: str) -> int:
    """A number of members. Raises InvalidInputError."""
    number = 0
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str):
        number = gang.members_in(value) or 0
    if 0 < number <= gang.MOST_MEMBERS:
        return number
    raise InvalidInputError(f"{where}: found {shown(value)}, allowed is {gang.SIZES}")


def shown(value: Any) -> str:
    """What was found, in a message."""
    if isinstance(value, int) and abs(value) > _LARGE:
        return "a larger number"
    return "none" if value is None else repr(value)[:40]
