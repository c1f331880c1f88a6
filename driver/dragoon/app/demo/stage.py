"""What the demo's story needs of the place where it plays, and of who tells it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dragoon.api.claims import AllocatedDevice
from dragoon.errors import DragoonError
from dragoon.prepare.injection import Injected

Object = dict[str, Any]


class DemoError(DragoonError):
    """A step of the demo did not come true."""

    code = "Demo"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the scheduler made of a claim: its devices, none if nothing fits, and why, in lines."""

    devices: tuple[AllocatedDevice, ...] = ()
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inside:
    """What a container sees: what the runtime adds for its CDI ids, and the spec that says so."""

    given: Injected
    spec: Path
    text: str


class Stage(Protocol):
    """A node with Dragoon on it, and a cluster to ask. Waits have deadlines: DemoError."""

    driver: str
    device_class: str

    async def slices(self) -> tuple[Object, ...]:
        """The ResourceSlices that the node has published."""
        ...

    async def ask(self, claim: Object) -> Answer:
        """Creates a ResourceClaim and waits for the scheduler's answer."""
        ...

    async def start_pod(self, claim: str) -> Inside:
        """Starts a pod that uses the claim: the kubelet prepares it. Answers what it sees."""
        ...

    async def end_pod(self, claim: str) -> None:
        """Ends the pod that uses the claim and deletes the claim: the kubelet unprepares it."""
        ...

    async def kill_plugin(self) -> int:
        """Ends it with SIGKILL; answers the process id."""
        ...

    async def restart_plugin(self) -> None:
        """Starts the plugin again and waits until the node has everything it had before."""
        ...

    async def start_again(self, claim: str) -> Inside:
        """Starts the pod's containers anew: the plugin is asked once more.

        Answers what they see.
        """
        ...


class Teller(Protocol):
    """How the story is told."""

    def section(self, title: str) -> None:
        """A new part of the story."""
        ...

    def say(self, text: str) -> None:
        """One line of plain text."""
        ...

    def block(self, label: str, text: str) -> None:
        """Text to be shown as it is, such as YAML, under a label."""
        ...

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table."""
        ...
