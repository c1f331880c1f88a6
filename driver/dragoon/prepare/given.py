"""What a claim got from our driver, with its configuration: read once from the raw claim. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoon.api import claims, opaque_config
from dragoon.api.claims import AllocatedDevice, ClaimRef
from dragoon.api.forms import Form
from dragoon.api.opaque_config import Block, Config, SharedGpuConfig
from dragoon.errors import ClaimGoneError, ClaimNotAllocatedError, InvalidInputError
from dragoon.prepare import shares
from dragoon.prepare.settings import PrepareSettings

_SHARED = "-shared"
_MIG = "-mig-"


@dataclass(frozen=True, slots=True)
class Given:
    """The devices of ours in an allocation.

    owner is the pod that the claim was made for; users are the pods that reserved it; each is
    (name, UID). ignored are config blocks of other drivers that reach only devices of ours.
    """

    ref: ClaimRef
    devices: tuple[AllocatedDevice, ...] = ()
    blocks: tuple[Block, ...] = ()
    owner: tuple[str, str] | None = None
    users: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()

    def config(self, result: AllocatedDevice) -> Config | None:
        """The configuration of one device."""
        return opaque_config.for_device(self.blocks, result.request, form_of(result.device))

    @property
    def shares(self) -> tuple[AllocatedDevice, ...]:
        """Those that are parts of a card and are limited. Admin access is not."""
        return tuple(
            one
            for one in self.devices
            if form_of(one.device) is Form.SHARED and not one.admin_access
        )

    def share_config(self, result: AllocatedDevice) -> SharedGpuConfig:
        """The configuration of a share."""
        found = self.config(result)
        return found if isinstance(found, SharedGpuConfig) else SharedGpuConfig()


def form_of(device: str) -> Form:
    """What a device is, by its name."""
    if device.endswith(_SHARED):
        return Form.SHARED
    return Form.MIG if _MIG in device else Form.WHOLE


def given(raw: Mapping[str, Any], ref: ClaimRef, settings: PrepareSettings) -> Given:
    """What the claim got from our driver; results of other drivers are left out (case C42).

    Raises ClaimGoneError when the object is another claim, ClaimNotAllocatedError without an
    allocation, InvalidInputError for a config addressed to us that is not understood or does not
    fit, and for a share of no cores.
    """
    found = claims.claim_ref(raw)
    if found.uid != ref.uid:
        raise ClaimGoneError(
            f"claim {ref}: another claim of that name is there now, its UID is {found.uid}",
            hint="the kubelet asks again with the new claim's UID",
        )
    allocation = claims.allocation(raw)
    if allocation is None:
        raise ClaimNotAllocatedError(f"claim {ref} has no allocation")
    mine = tuple(result for result in allocation.devices if result.driver == settings.driver)
    if not mine:
        return Given(ref)
    answer = Given(
        ref,
        mine,
        _blocks(ref, allocation, mine, settings.driver),
        claims.owner_pod(raw),
        claims.reserved_pods(raw),
        opaque_config.foreign(allocation.config, allocation.devices, settings.driver),
    )
    if answer.shares:
        shares.check_asked(raw, ref)
    return answer


def _blocks(
    ref: ClaimRef, allocation: claims.Allocation, mine: tuple[AllocatedDevice, ...], driver: str
) -> tuple[Block, ...]:
    try:
        blocks = opaque_config.blocks(allocation.config, driver)
        opaque_config.check_forms(blocks, [(one.request, form_of(one.device)) for one in mine])
    except InvalidInputError as error:
        raise InvalidInputError(f"claim {ref}: {error.message}", hint=error.hint) from error
    return blocks
