"""Which tiers work on this node, and which one a share gets."""

from collections.abc import Sequence

from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import NodeEnforcement, Tier
from dragoon.api.opaque_config import SharedGpuConfig
from dragoon.errors import DragoonError
from dragoon.gpu.model import Inventory
from dragoon.prepare.enforcement.errors import TierUnavailableError, UnenforceableError
from dragoon.prepare.enforcement.tier import EnforcementTier


class Enforcement:
    """The tiers of a node, the strongest first. `found` is what the last probe said."""

    def __init__(self, tiers: Sequence[EnforcementTier] = ()) -> None:
        self._tiers = {tier.name: tier for tier in tiers}
        self.found: NodeEnforcement | None = None if tiers else NodeEnforcement()

    def __repr__(self) -> str:
        return f"<Enforcement {self.found}>"

    def probe(self, inventory: Inventory) -> NodeEnforcement:
        """Asks every tier whether it works here. Blocks. One that fails is one that does not."""
        reasons = {name: _reason(tier, inventory) for name, tier in self._tiers.items()}
        self.found = NodeEnforcement.of(
            [name for name, reason in reasons.items() if not reason],
            {name: reason for name, reason in reasons.items() if reason},
        )
        return self.found

    def choose(self, ref: ClaimRef, request: str, config: SharedGpuConfig) -> EnforcementTier:
        """The tier that the claim asks for, else the node's strongest.

        Raises TierUnavailableError with the reason (retryable before the first probe), and
        UnenforceableError for a priority that the tier does not know.
        """
        where = f"claim {ref}: request {request}"
        if self.found is None:
            raise TierUnavailableError(
                f"{where}: it is not known yet how this node can limit shares", retryable=True
            )
        name = Tier(config.tier) if config.tier else self.found.default
        if name is None or name not in self.found.tiers:
            raise self._unavailable(where, name, self.found)
        if config.priority is not None and name is not Tier.HAMI:
            raise UnenforceableError(
                f"{where}: priority: found {config.priority}, and the tier {name} knows none",
                hint="remove priority from the SharedGpuConfig, or ask for the tier hami",
            )
        return self._tiers[name]

    def _unavailable(
        self, where: str, name: Tier | None, found: NodeEnforcement
    ) -> TierUnavailableError:
        reasons = "; ".join(f"{tier}: {reason}" for tier, reason in found.unavailable.items())
        if name is None:
            return TierUnavailableError(
                f"{where}: GPUs of this node cannot be shared: {reasons or 'no tier is set up'}",
                hint="select on memoryEnforcement, so that shares go to nodes that limit them",
            )
        why = found.unavailable.get(name, "it is not set up")
        offered = ", ".join(found.tiers) or "none"
        return TierUnavailableError(
            f"{where}: tier: found {name}, allowed on this node: {offered}; {name}: {why}",
            hint="leave tier out for the strongest, or select on memoryEnforcement",
        )


def _reason(tier: EnforcementTier, inventory: Inventory) -> str:
    try:
        return tier.probe(inventory)
    except DragoonError as error:
        return str(error)
