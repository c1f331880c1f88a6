"""Why a share is refused: a tier that is not there, a limit that cannot be kept."""

from dragoon.errors import ClaimError


class TierUnavailableError(ClaimError):
    """The claim asks for a tier that this node cannot do, or GPUs cannot be shared here at all."""

    code = "EnforcementUnavailable"
    default_hint = "leave tier out for the strongest, or select on memoryEnforcement"


class UnenforceableError(ClaimError):
    """A limit of this claim cannot be kept as the claim is."""

    code = "Unenforceable"
    default_hint = "change the pod as the message says, or ask for a whole GPU"
