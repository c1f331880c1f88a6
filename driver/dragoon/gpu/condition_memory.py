"""Fakes of `port.Conditions` and `port.GpuEvents` in memory, for tests of the layers above."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dragoon.errors import HardwareError
from dragoon.gpu.condition import Condition, GpuEvent, Polled
from dragoon.gpu.model import PciAddress


@dataclass
class MemoryConditions:
    """Answers with what it was given; assign to `cards`, or to `error`, to change that."""

    cards: dict[PciAddress, Condition] = field(default_factory=dict)
    error: HardwareError | None = None
    asked: int = 0

    def __call__(self) -> Mapping[PciAddress, Condition]:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return dict(self.cards)


@dataclass
class MemoryEvents:
    """Hands out what was raised; the first answer says that it begins.

    unwatched, lost and error are told as they stand at each call.
    """

    unwatched: dict[PciAddress, str] = field(default_factory=dict)
    lost: bool = False
    error: HardwareError | None = None
    polled: int = 0
    _waiting: list[GpuEvent] = field(default_factory=list)
    _renewed: bool = True

    def raise_(self, *events: GpuEvent) -> None:
        """A card raises these, if anybody listens yet."""
        if self.polled:
            self._waiting.extend(events)

    def renew(self) -> None:
        """The library is opened anew: what was not handed out yet is lost."""
        self._waiting.clear()
        self._renewed = True

    def poll(self) -> Polled:
        self.polled += 1
        if self.error is not None:
            raise self.error
        events, renewed = tuple(self._waiting), self._renewed
        self._waiting.clear()
        self._renewed = False
        return Polled(events, renewed, dict(self.unwatched), self.lost)
