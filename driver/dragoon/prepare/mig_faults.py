"""The MIG calls of one process in memory: each change is one effect, which may break.

Ships with the package, beside `effects_memory`, whose faults it shares.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from dragoon.errors import HardwareError
from dragoon.gpu.mig import MigCard, MigInstance
from dragoon.gpu.model import MigMode, PciAddress, Placement
from dragoon.gpu.port import MigCards


class MigHardware(MigCards, Protocol):
    """Cards, as the fake and the simulated library have them, and what befalls them."""

    def halve(self, address: PciAddress, identity: int) -> None:
        """The compute instance of that GPU instance is gone, as after a crash between two steps."""
        ...

    def reboot(self) -> None:
        """No instances, other minors, no mode but Ampere's."""
        ...


class Perform(Protocol):
    """Does one effect, or breaks in it, leaving what `when_broken` leaves."""

    def __call__(
        self,
        doing: str,
        path: object,
        effect: Callable[[], None],
        *,
        when_broken: Callable[[], None] = ...,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class FaultyMigCards:
    """`gpu.port.MigCards` over hardware. look: refuses when the process is dead."""

    hardware: MigHardware
    perform: Perform
    look: Callable[[], None]

    def card(self, address: PciAddress) -> MigCard | None:
        """See `gpu.port.MigCards`."""
        self.look()
        return self.hardware.card(address)

    def instances(self, address: PciAddress) -> tuple[MigInstance, ...]:
        """See `gpu.port.MigCards`."""
        self.look()
        return self.hardware.instances(address)

    def set_mode(self, address: PciAddress, *, enabled: bool) -> MigMode:
        """See `gpu.port.MigCards`."""
        word = "on" if enabled else "off"
        self.perform(
            f"MIG mode {word} of",
            address,
            lambda: _ignored(self.hardware.set_mode(address, enabled=enabled)),
        )
        return MigMode(enabled=enabled, pending=enabled)

    def create(self, address: PciAddress, profile: str, placement: Placement) -> MigInstance:
        """See `gpu.port.MigCards`. What breaks it leaves a GPU instance with nothing in it."""
        made: list[MigInstance] = []

        def half() -> None:
            with suppress(HardwareError):  # what cannot be made leaves nothing
                one = self.hardware.create(address, profile, placement)
                self.hardware.halve(address, one.identity)

        self.perform(
            f"make {profile} at {placement} of",
            address,
            lambda: made.append(self.hardware.create(address, profile, placement)),
            when_broken=half,
        )
        return made[0]

    def destroy(self, address: PciAddress, identity: int, uuid: str | None) -> None:
        """See `gpu.port.MigCards`. What breaks it leaves a GPU instance with nothing in it."""
        self.perform(
            f"remove instance {uuid} of",
            address,
            lambda: self.hardware.destroy(address, identity, uuid),
            when_broken=lambda: self.hardware.halve(address, identity),
        )


def _ignored(answer: object) -> None:
    del answer
