"""The health of devices, as the kubelet is told."""

import asyncio
import enum
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass

from dragoon.gpu.naming import address_of
from dragoon.health.verdict import CardHealth, Health


class State(enum.Enum):
    """Whether a device can be relied on."""

    UNKNOWN = "unknown"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """One device of the pool. message says what is wrong, or worth knowing; often empty."""

    device: str
    state: State
    message: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All devices of a pool, by name."""

    pool: str
    devices: tuple[DeviceHealth, ...]


def report(pool: str, devices: Iterable[str], health: Health, blind: str = "") -> Report:
    """What is known of the devices. Pure.

    blind: why nothing new is known of cards; verdicts from before still hold.
    """
    return Report(
        pool, tuple(_device(name, _card_of(name, health), blind) for name in sorted(devices))
    )


def _card_of(device: str, health: Health) -> CardHealth | None:
    address = address_of(device)
    return None if address is None else health.get(address)


def _device(name: str, card: CardHealth | None, blind: str) -> DeviceHealth:
    verdicts = [verdict for verdict in card.verdicts if verdict.touches(name)] if card else []
    message = "; ".join(verdict.message for verdict in verdicts)
    if any(verdict.taints for verdict in verdicts):
        return DeviceHealth(name, State.UNHEALTHY, message)
    if card is None or blind:
        return DeviceHealth(name, State.UNKNOWN, blind or "not looked at yet")
    return DeviceHealth(name, State.HEALTHY, message)


class Board:
    """Holds the newest report for whoever follows it. Belongs to one event loop.

    checked: the Unix time at which what it says was last known to be true.
    """

    def __init__(self, checked: Callable[[], float] = time.time) -> None:
        self.checked = checked
        self._report: Report | None = None
        self._changed = asyncio.Event()

    @property
    def report(self) -> Report | None:
        """The newest; None before the first."""
        return self._report

    def show(self, report: Report) -> None:
        """What holds from now on."""
        if report != self._report:
            self._report = report
            # Everybody waiting holds the old event; who comes later waits for the next change.
            self._changed.set()
            self._changed = asyncio.Event()

    async def follow(self, repeat: float) -> AsyncGenerator[Report]:
        """The report now, every newer one at once, and the same again after `repeat` seconds."""
        while True:
            changed, report = self._changed, self._report
            if report is not None:
                yield report
            try:
                async with asyncio.timeout(repeat if report is not None else None):
                    await changed.wait()
            except TimeoutError:
                continue
