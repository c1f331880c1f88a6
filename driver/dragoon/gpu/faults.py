"""What changing a card can be refused for: the errors that `port.MigCards` and its siblings raise.

Each says which card, what is in the way, and what to do: a refusal must not be a dead end. Lost
cards and missing drivers have their errors in `dragoon.errors`.
"""

from dragoon.errors import HardwareError
from dragoon.gpu.mig import GpuProcess
from dragoon.gpu.obstacles import Obstacle


class FeatureMissingError(HardwareError):
    """This card, or its driver, does not have what was asked for."""

    code = "FeatureMissing"
    default_hint = "ask for another form of GPU, or for one that has it"


class BlockedError(HardwareError):
    """A card that cannot be changed as a claim needs it. obstacle: once it is known which claim."""

    code = "Blocked"
    obstacle: Obstacle | None = None


class CardInUseError(BlockedError):
    """Somebody uses the card or the instance. processes: who, as far as the driver tells."""

    code = "CardInUse"
    default_hint = (
        "end these processes; monitoring agents such as dcgm hold cards open without being listed"
    )
    default_retryable = True

    def __init__(
        self, message: str, processes: tuple[GpuProcess, ...] = (), *, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.processes = processes


class PlacementTakenError(HardwareError):
    """There is no room for the instance. Final when another instance lies there, and is named."""

    code = "PlacementTaken"
    default_hint = "remove what is in the way if nobody needs it, or leave this GPU to its owner"


class ResetRequiredError(BlockedError):
    """The card must be reset before it can be used like that; trying again does not help."""

    code = "ResetRequired"
    default_hint = (
        "drain the node, then reset the GPU (nvidia-smi --gpu-reset) or reboot; "
        "in a virtual machine only a reboot may do"
    )


class InstanceChangedError(HardwareError):
    """The instance is not the one that was meant; it was left alone."""

    code = "InstanceChanged"
    default_hint = "look again at the instances of the card; this one is not ours to touch"


class PermissionMissingError(HardwareError):
    """The driver refuses this process."""

    code = "PermissionMissing"
    default_hint = "the plugin must run as root, with access to the card's device files"
